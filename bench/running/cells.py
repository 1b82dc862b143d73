"""One cell: fine-tuned once, attacked, scored."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leakboard.bench.backbones import bottom_cost
from leakboard.bench.contracts import (
    BottomCost,
    Channel,
    Cost,
    Ints,
    MissingExtra,
    Record,
    Status,
    fingerprint,
)
from leakboard.bench.exchange import Diverged, Session, Tuned, Wire, write_transcript
from leakboard.bench.records import peak_megabytes, provenance
from leakboard.bench.running.answers import answers
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.failures import give_back, out_of_memory, told
from leakboard.bench.running.grants import recomputed, worked_out
from leakboard.bench.running.plan import Planned
from leakboard.bench.running.scene import Scene
from leakboard.bench.scoring import answered, judged, metrics, projections


def run_cell(scene: Scene, transcripts: Path | None = None) -> Record:
    """Fine-tunes one cell, attacks what the vendor saw, and scores. Failures are records, too.

    Args:
        transcripts: the folder in which the transcript is kept, in one named by the cell's key.
    """
    planned, device = scene.planned, scene.backbone.device
    if planned.refused:
        return ended(planned, "skipped", planned.refused, device)
    try:
        return _attacked(scene, transcripts)
    except MissingExtra:
        raise
    except Diverged as error:
        return ended(planned, "diverged", str(error), device)
    except Exception as error:
        if not out_of_memory(error):
            return ended(planned, "failed", told(error), device)
        record = ended(planned, "out-of-memory", str(error) or "out of memory", device)
    give_back(device)
    return record


def ended(planned: Planned, status: Status, reason: str, device: str) -> Record:
    """The record of a cell without a result."""
    return Record(**_head(planned), status=status, reason=reason, provenance=provenance(device))


def _head(planned: Planned) -> dict[str, Any]:
    """What stands in every record of the cell, however it ended."""
    return {
        "key": planned.cell.key,
        "cell": planned.cell,
        "undefended": planned.defense.undefended,
        "claim": planned.defense.claim(),
    }


def _attacked(scene: Scene, transcripts: Path | None) -> Record:
    start = time.perf_counter()
    cell, task, backbone = scene.cell, scene.inputs.task, scene.backbone
    defense = scene.planned.defense
    wire = Wire(defense.sends, scene.inputs.recorded, cell.record.megabytes * 2**20)
    session = scene.session(wire)
    tuned = defense.fine_tune(session)
    scene = replace(scene, tuned=tuned)
    train_seconds = time.perf_counter() - start
    trained_up, trained_down = wire.bytes_up, wire.bytes_down
    useful = _usefulness(tuned, scene)
    seen = wire.transcript()
    if transcripts and not (kept := transcripts / cell.key).exists():
        write_transcript(seen, kept, backbone, cell.cut, scene.classes, cell.train)
    attack_start = time.perf_counter()
    seen = recomputed(scene, seen)
    recompute_seconds = time.perf_counter() - attack_start
    seen = worked_out(scene, seen)
    claim, plant = session.claim, cell.plant
    if claim is not None and plant is not None and plant.per_author is not None:
        claim = claim.of_authors(plant.per_author)
    leaks = attack_all(scene, seen, claim)
    end = time.perf_counter()
    head = _head(scene.planned)
    return Record(
        **head | {"claim": claim or head["claim"]},
        status="ok",
        **useful,
        loss=session.loss,
        leaks=leaks,
        projections=projections(seen, task.splits["train"].labels),
        dropped_bytes=seen.dropped_bytes,
        cost=Cost(
            bytes_up=wire.bytes_up,
            bytes_down=wire.bytes_down,
            trained_parameters=session.trained_parameters,
            calls=session.calls or None,
            client_seconds=session.fit_seconds - session.server_seconds if session.calls else None,
            skipped_batches=session.skipped_batches,
            train_seconds=train_seconds,
            attack_seconds=end - attack_start,
            recompute_seconds=recompute_seconds if Channel.RECOMPUTED in seen.channels else None,
            total_seconds=end - start,
            peak_megabytes=peak_megabytes(backbone.device),
            epoch_bytes_up=trained_up / cell.train.epochs,
            epoch_bytes_down=trained_down / cell.train.epochs,
            bottom=_bottom(scene, session),
        ),
        provenance=provenance(
            backbone.device,
            scene.workers,
            fingerprint(scene.secret),
            scene.planned.trials,
        ),
    )


def _bottom(scene: Scene, session: Session) -> BottomCost | None:
    """What the customer's part of the model asks of it: up to the cut, or all where texts become one vector."""
    cell, emits, backbone = scene.cell, scene.planned.defense.sends, scene.backbone
    if Channel.REPRESENTATIONS in emits:
        cut = cell.cut
    elif Channel.ACTIVATIONS in emits and Channel.TOKENS not in emits:
        cut = backbone.blocks
    else:
        return None
    return bottom_cost(backbone, cut, session.train.lengths, cell.train.batch_size)


def _usefulness(tuned: Tuned, scene: Scene) -> dict[str, Any]:
    """Fields of a record that say what the tuned model is good for, on the evaluated split."""
    cell, inputs = scene.cell, scene.inputs
    split, tokens = inputs.task.splits[cell.evaluate], inputs.tokens[cell.evaluate]
    if inputs.task.objective == "language modelling":
        lost, hits = tuned.per_token(tokens, cell.evaluate)
        read = judged(lost, hits, scene.backbone, split, tokens, cell.train.max_length)
        if split.pairs is None:
            return read
        return answered(answers(tuned, tokens, cell.evaluate, scene.backbone), split.pairs, read)
    truth = split.labels
    predicted = _classes(tuned.predict(tokens, cell.evaluate), len(truth))
    utility = metrics.share(
        (predicted == truth).astype(np.int64),
        np.ones(len(truth), np.int64),
        metrics.most_frequent_share(truth),
    )
    predictions = {"predicted": predicted.tolist(), "truth": truth.tolist()}
    return {"utility": utility, "predictions": predictions}


def _classes(scores: torch.Tensor, n: int) -> Ints:
    if scores.ndim != 2 or len(scores) != n or not bool(torch.isfinite(scores).all()):
        raise ValueError(
            f"the tuned model returned scores of shape {tuple(scores.shape)} for {n} examples, "
            "or scores that are not finite"
        )
    return scores.argmax(1).numpy()
