"""One cell: fine-tuned once, attacked, scored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.backbones import Backbone, LanguageModel, bottom_cost
from bench.contracts import (
    Cell,
    Channel,
    Cost,
    Ints,
    MissingExtra,
    Progress,
    Record,
    Seeds,
    Status,
)
from bench.exchange import Diverged, Released, Session, Tuned, Wire, write_transcript
from bench.records import peak_megabytes, provenance
from bench.running.attacks import attack_all
from bench.running.failures import out_of_memory, told
from bench.running.grants import worked_out
from bench.running.inputs import Inputs
from bench.running.pairing import Pairing
from bench.running.plan import Planned
from bench.running.reporting import Reporter
from bench.scoring import judged, metrics, projections


def run_cell(
    planned: Planned,
    inputs: Inputs,
    backbone: Backbone,
    pairings: Sequence[Pairing],
    reporter: Reporter,
    transcripts: Path | None = None,
) -> Record:
    """Fine-tunes one cell, attacks what the vendor saw, and scores. Failures are records, too.

    Args:
        transcripts: the folder in which the transcript is kept, in one named by the cell's key.
    """
    start = time.perf_counter()
    base: dict[str, Any] = {
        "key": planned.cell.key,
        "cell": planned.cell,
        "undefended": planned.defense.undefended,
        "claim": planned.defense.claim(),
    }

    def ended(status: Status, reason: str) -> Record:
        return Record(**base, status=status, reason=reason, provenance=provenance(backbone.device))

    if planned.refused:
        return ended("skipped", planned.refused)
    try:
        return _attacked(planned, inputs, backbone, pairings, reporter, transcripts, base, start)
    except MissingExtra:
        raise
    except Diverged as error:
        return ended("diverged", str(error))
    except Exception as error:
        if out_of_memory(error):
            return ended("out-of-memory", str(error) or "out of memory")
        return ended("failed", told(error))


def session_of(
    cell: Cell, inputs: Inputs, backbone: Backbone, wire: Wire, seeds: Seeds, progress: Progress
) -> Session:
    """What the defense of a cell is given."""
    return Session(
        train=inputs.tokens["train"],
        labels=torch.from_numpy(inputs.task.splits["train"].labels),
        classes=len(inputs.task.labels),
        backbone=backbone,
        cut=cell.cut,
        wire=wire,
        seeds=seeds,
        settings=cell.train,
        progress=progress,
        texts=inputs.task.splits["train"],
        canaries=inputs.planted.canaries or {},
    )


def _attacked(
    planned: Planned,
    inputs: Inputs,
    backbone: Backbone,
    pairings: Sequence[Pairing],
    reporter: Reporter,
    transcripts: Path | None,
    base: dict[str, Any],
    start: float,
) -> Record:
    cell, task = planned.cell, inputs.task
    seeds = Seeds.of(cell.seed, cell.shadow)
    wire = Wire(planned.defense.emits, inputs.recorded, cell.record.megabytes * 2**20)
    session = session_of(cell, inputs, backbone, wire, seeds, reporter.track)
    tuned = planned.defense.fine_tune(session)
    train_seconds = time.perf_counter() - start
    trained_up, trained_down = wire.bytes_up, wire.bytes_down
    useful = _usefulness(tuned, cell, inputs, backbone)
    base |= {"claim": session.claim or base["claim"]}
    transcript = wire.transcript()
    if transcripts and not (kept := transcripts / cell.key).exists():
        write_transcript(transcript, kept, backbone, cell.cut, len(task.labels), cell.train)
    attack_start = time.perf_counter()
    transcript = worked_out(planned, transcript, backbone, len(task.labels), pairings)
    delta = session.claim.parameters.get("delta", 0.0) if session.claim else 0.0
    leaks = attack_all(
        planned, transcript, inputs, backbone, pairings, seeds, reporter.track, delta
    )
    end = time.perf_counter()
    return Record(
        **base,
        status="ok",
        **useful,
        loss=session.loss,
        leaks=leaks,
        projections=projections(transcript, task.splits["train"].labels),
        dropped_bytes=transcript.dropped_bytes,
        cost=Cost(
            bytes_up=wire.bytes_up,
            bytes_down=wire.bytes_down,
            trained_parameters=session.trained_parameters,
            calls=session.calls or None,
            client_seconds=session.fit_seconds - session.server_seconds if session.calls else None,
            skipped_batches=session.skipped_batches,
            train_seconds=train_seconds,
            attack_seconds=end - attack_start,
            total_seconds=end - start,
            peak_megabytes=peak_megabytes(backbone.device),
            epoch_bytes_up=trained_up / cell.train.epochs,
            epoch_bytes_down=trained_down / cell.train.epochs,
            bottom=bottom_cost(backbone, cell.cut, session.train.lengths, cell.train.batch_size)
            if Channel.REPRESENTATIONS in planned.defense.emits
            else None,
        ),
        provenance=provenance(backbone.device),
    )


def _usefulness(tuned: Tuned, cell: Cell, inputs: Inputs, backbone: Backbone) -> dict[str, Any]:
    """Fields of a record that say what the tuned model is good for, on the evaluated split."""
    split, tokens = inputs.task.splits[cell.evaluate], inputs.tokens[cell.evaluate]
    if inputs.task.objective == "language modelling":
        if not (isinstance(tuned, Released) and isinstance(tuned.network, LanguageModel)):
            raise ValueError("on texts without labels a defense returns a released language model")
        return judged(tuned.network, backbone, split, tokens, cell.train.max_length)
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
