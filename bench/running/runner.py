"""Cells in, records out. A finished cell is never run again; a killed run loses only the one at hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import (
    Leak,
    Record,
    Status,
    attack_id,
)
from leakboard.bench.methods import spec_of
from leakboard.bench.records import Corrupt, Store
from leakboard.bench.running.cells import run_cell
from leakboard.bench.running.failures import failed
from leakboard.bench.running.inputs import Inputs, Public, public_of
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.running.plan import Plan, Planned
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.scene import Scene
from leakboard.bench.running.shadows import with_shadows

FINAL = {"ok", "diverged", "skipped"}
"""Statuses that running again would not change; other cells are tried again."""
SHORTEST, LONGEST = 0.05, 2.0
"""Seconds between two looks for cells that others are at."""


@dataclass
class Runner:
    """Runs a plan into a store, beside any others that do the same.

    Attributes:
        transcripts: where the transcript of each cell that is run is kept, in a folder named by its key.
        since: when the run began, by the clock of the store; what failed after that is not tried again.
        first: the number of the cell to begin with; workers of one run begin at different ones.
        workers: how many processes of the run share the machine.
    """

    plan: Plan
    store: Store
    reporter: Reporter = field(default_factory=Reporter)
    transcripts: Path | None = None
    since: float | None = None
    first: int = 0
    workers: int = 1
    _last: tuple[tuple[Any, ...], Inputs] | None = None
    _public: dict[tuple[str, str, int], Public] = field(default_factory=dict)

    def run(self) -> list[Record]:
        """Runs what is missing and returns the records of all cells, in the order of the plan.

        A cell that somebody else is at is waited for; then its record is there.

        Raises:
            LeakboardError: a record cannot be written, or an extra is missing.
        """
        if self.since is None:
            self.since = self.store.now()
        cells, done = self.plan.cells, dict[str, Record]()
        left, pause = [*cells[self.first :], *cells[: self.first]], SHORTEST
        while left:
            # A plan may hold a cell without the shadow models that it needs.
            ahead = {planned.cell.key for planned in left}
            waiting = []
            for planned in left:
                key = planned.cell.key
                record = None if ahead & set(planned.needs) else self._claimed(planned)
                if record is None:
                    waiting.append(planned)
                else:
                    done[key] = record
                    ahead.discard(key)
            if len(waiting) == len(left):
                time.sleep(pause)
                pause = min(2 * pause, LONGEST)
            else:
                pause = SHORTEST
            left = waiting
        return [done[planned.cell.key] for planned in cells]

    def one(self, planned: Planned) -> Record:
        """The record of one cell, which is waited for where somebody else is at it."""
        while (record := self._claimed(planned)) is None:
            time.sleep(LONGEST)
        return record

    def _claimed(self, planned: Planned) -> Record | None:
        """The cell's record, after running it if necessary; None while another process holds its lock."""
        with self.store.claim(planned.cell.key) as mine:
            return self._completed(planned) if mine else None

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
        retry = self.since is None or self.store.written(key) <= self.since
        if record is None or (record.status not in FINAL and retry):
            return None, list(planned.pairings)
        return record, lacking(planned, record, retry)

    def _completed(self, planned: Planned) -> Record:
        """The cell's record with all its attacks; the cell is run for those that it lacks."""
        earlier, pairings = self.missing(planned)
        self.reporter.started(planned)
        if earlier is not None and not pairings:
            self.reporter.finished(earlier, reused=True)
            return earlier
        ready, idle = with_shadows(replace(planned, pairings=tuple(pairings)), self.store.read)
        # Without an attack that can start, the cell need not be trained: only the reasons are recorded.
        reused = earlier is not None and not any(pairing.goals for pairing in ready.pairings)
        if earlier is not None and reused:
            reasons = [leak for pairing in ready.pairings for leak in pairing.skipped()]
            record = earlier.model_copy(update={"leaks": [*reasons, *idle]}).merged(earlier)
        else:
            record = self._run(ready, idle, earlier)
        self.store.write(record)
        self.reporter.finished(record, reused)
        return record

    def _run(self, ready: Planned, idle: list[Leak], earlier: Record | None) -> Record:
        """Runs a cell and adds the result to its earlier record.

        Args:
            idle: leaks of attacks that cannot start yet.
            earlier: the record so far, to which attacks are added.
        """
        backbone = self.plan.backbones[ready.cell.model_hash]
        inputs, track = self._inputs(ready), self.reporter.track
        scene = Scene(ready, inputs, backbone, track, self.workers, self.plan.secret)
        record = run_cell(scene, self.transcripts)
        if record.status == "ok":
            record = record.model_copy(update={"leaks": [*record.leaks, *idle]})
        if earlier is None:
            return record
        if record.status != "ok":  # earlier measurements remain valid
            return _unfinished(earlier, record, ready.pairings)
        return record.merged(earlier)

    def _inputs(self, planned: Planned) -> Inputs:
        """Tokenised once for the cells that share a task, a model and a seed: they stand together."""
        wanted = Inputs.identity(planned.cell)
        if self._last is None or self._last[0] != wanted:
            cell = planned.cell
            task, backbone = self.plan.tasks[cell.data_hash], self.plan.backbones[cell.model_hash]
            if self._last is not None and self._last[0][:-1] == wanted[:-1]:
                inputs = self._last[1].with_coins(cell, task, self.plan.secret)
            else:
                which = (cell.data_hash, cell.model_hash, cell.train.max_length)
                if which not in self._public:
                    self._public = {which: public_of(cell, task, backbone, self.plan.public)}
                inputs = Inputs.of(cell, task, backbone, self._public[which], self.plan.secret)
            self._last = wanted, inputs
        return self._last[1]


def lacking(planned: Planned, record: Record, retry: bool = True) -> list[Pairing]:
    """The attacks of a cell that a record of it does not hold yet.

    Args:
        retry: also what failed, and may not again.
    """
    if record.status not in FINAL and retry:
        return list(planned.pairings)
    if record.status != "ok":
        return []
    failed_ = {attack_id(leak.attack) for leak in record.leaks if leak.status not in FINAL}
    again = failed_ if retry else set()
    done = {attack_id(leak.attack) for leak in record.leaks} - again
    return [p for p in planned.pairings if attack_id(spec_of(p.attack)) not in done]


def _unfinished(earlier: Record, record: Record, pairings: Sequence[Pairing]) -> Record:
    """An earlier record, in which the attacks that were to be added failed as the cell now did."""
    status: Status = "out-of-memory" if record.status == "out-of-memory" else "failed"
    reason = f"the cell, run again for this attack, ended {record.status}: {record.reason}"
    leaks = [leak for p in pairings for leak in [*failed(p, status, reason), *p.skipped()]]
    return earlier.model_copy(update={"leaks": leaks}).merged(earlier)
