"""Cells in, records out. A finished cell is never run again; a killed run loses only the one at hand."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from bench import metrics
from bench.attacking import attack_all, failed, out_of_memory, told, worked_out
from bench.backbones import Backbone
from bench.costs import bottom_cost
from bench.errors import MissingExtra
from bench.inputs import Inputs
from bench.language import LanguageModel, judged
from bench.plan import Pairing, Plan, Planned, spec_of
from bench.projections import projections
from bench.provenance import peak_megabytes, provenance
from bench.record import Cell, Cost, Record, Status, attack_id
from bench.released import Released
from bench.seeds import Seeds
from bench.session import Session
from bench.shadows import with_shadows
from bench.store import Corrupt, Store
from bench.training import Diverged
from bench.transcripts import write
from bench.types import Channel, Ints, Progress, Tuned
from bench.wire import Wire

FINAL = {"ok", "diverged", "skipped"}
"""Statuses that running again would not change; other cells are tried again."""


class Reporter(Protocol):
    """What a front end shows while a plan runs."""

    def started(self, planned: Planned) -> None: ...
    def track(self, what: str, items: Iterable[Any], total: int) -> Iterable[Any]: ...
    def finished(self, record: Record, reused: bool) -> None: ...
    def warned(self, message: str) -> None: ...


class Silent:
    """Shows nothing."""

    def started(self, planned: Planned) -> None: ...
    def track(self, what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
        return items

    def finished(self, record: Record, reused: bool) -> None: ...
    def warned(self, message: str) -> None: ...


@dataclass
class Runner:
    """Runs a plan into a store."""

    plan: Plan
    store: Store
    reporter: Reporter = field(default_factory=Silent)
    transcripts: Path | None = None
    """Where the transcript of each cell that is run is kept, in a folder named by its key."""
    _last: tuple[tuple[Any, ...], Inputs] | None = None

    def run(self) -> list[Record]:
        """Runs what is missing and returns the records of all cells, in the order of the plan.

        Raises:
            LeakboardError: a record cannot be written, or an extra is missing.
        """
        return [self._run(planned) for planned in self.plan.cells]

    def missing(self, planned: Planned) -> tuple[Record | None, list[Pairing]]:
        """What stands in the store for a cell, and the attacks it still lacks.

        A damaged record is set aside and counts as absent.
        """
        key = planned.cell.key
        try:
            record = self.store.read(key)
        except Corrupt as error:
            place = self.store.set_aside(key)
            self.reporter.warned(f"{place.name}: {error}; set aside in {place.parent}, run again")
            record = None
        if record is None or record.status not in FINAL:
            return None, list(planned.pairings)
        return record, lacking(planned, record)

    def _run(self, planned: Planned) -> Record:
        self.reporter.started(planned)
        earlier, pairings = self.missing(planned)
        if earlier is not None and not pairings:
            self.reporter.finished(earlier, reused=True)
            return earlier
        planned, pairings, idle = with_shadows(planned, pairings, self.store.read)
        if earlier is not None and not any(pairing.goals for pairing in pairings):
            # Nothing to attack with, so nothing to train for: the reasons are added to the record.
            reasons = [leak for pairing in pairings for leak in pairing.skipped()]
            record = earlier.model_copy(update={"leaks": [*reasons, *idle]}).merged(earlier)
            self.store.write(record)
            self.reporter.finished(record, reused=True)
            return record
        backbone = self.plan.backbones[planned.cell.model_hash]
        inputs = self._inputs(planned)
        record = run_cell(planned, inputs, backbone, pairings, self.reporter, self.transcripts)
        if record.status == "ok":
            record = record.model_copy(update={"leaks": [*record.leaks, *idle]})
        if earlier is not None:
            if record.status != "ok":  # what was measured before still stands
                record = _unfinished(earlier, record, pairings)
            else:
                record = record.merged(earlier)
        self.store.write(record)
        self.reporter.finished(record, reused=False)
        return record

    def _inputs(self, planned: Planned) -> Inputs:
        """Tokenised once for the cells that share a task, a model and a seed: they stand together."""
        wanted = Inputs.identity(planned.cell)
        if self._last is None or self._last[0] != wanted:
            cell = planned.cell
            task, backbone = self.plan.tasks[cell.data_hash], self.plan.backbones[cell.model_hash]
            if self._last is not None and self._last[0][:-1] == wanted[:-1]:
                inputs = self._last[1].with_coins(cell, task)
            else:
                inputs = Inputs.of(cell, task, backbone, self.plan.public)
            self._last = wanted, inputs
        return self._last[1]


def lacking(planned: Planned, record: Record) -> list[Pairing]:
    """The attacks of a cell that a record of it does not hold yet, or that failed and may not again."""
    if record.status not in FINAL:
        return list(planned.pairings)
    if record.status != "ok":
        return []
    again = {attack_id(leak.attack) for leak in record.leaks if leak.status not in FINAL}
    done = {attack_id(leak.attack) for leak in record.leaks} - again
    return [p for p in planned.pairings if attack_id(spec_of(p.attack)) not in done]


def _unfinished(earlier: Record, record: Record, pairings: Sequence[Pairing]) -> Record:
    """An earlier record, in which the attacks that were to be added failed as the cell now did."""
    status: Status = "out-of-memory" if record.status == "out-of-memory" else "failed"
    reason = f"the cell, run again for this attack, ended {record.status}: {record.reason}"
    leaks = [leak for p in pairings for leak in [*failed(p, status, reason), *p.skipped()]]
    return earlier.model_copy(update={"leaks": leaks}).merged(earlier)


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
        write(transcript, kept, backbone, cell.cut, len(task.labels), cell.train)
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
