"""Runs the cells of a plan into a store. A finished cell is never run again; a killed run loses only its current cell."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import (
    FINAL,
    Leak,
    LeakboardError,
    Record,
    Status,
    attack_id,
)
from leakboard.bench.exchange import has_transcript
from leakboard.bench.methods import spec_of
from leakboard.bench.records import Corrupt, Store, has_locks
from leakboard.bench.running.cell_context import CellContext, Inputs, PublicTexts, encode_public
from leakboard.bench.running.cells import run_cell
from leakboard.bench.running.grants import with_shadows
from leakboard.bench.running.isolation import free_memory
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.running.plan import Plan, PlannedCell
from leakboard.bench.running.reporting import Reporter

MIN_PAUSE, MAX_PAUSE = 0.05, 2.0
"""Seconds between two checks of cells that other processes are running."""


@dataclass
class Runner:
    """Runs a plan into a store, which other processes may do at the same time.

    Attributes:
        transcripts: folder for the transcripts of the cells that are run, each in a folder named by its key.
        since: start of the run, by the clock of the store; cells that failed later are not tried again.
        first: number of the cell to begin with; the workers of a run begin at different cells.
        workers: processes of the run on this machine.
        isolated: see `CellContext`.
    """

    plan: Plan
    store: Store
    reporter: Reporter = field(default_factory=Reporter)
    transcripts: Path | None = None
    since: float | None = None
    first: int = 0
    workers: int = 1
    isolated: bool = False
    _begun: bool = False
    _last: tuple[tuple[Any, ...], Inputs] | None = None
    _public: dict[tuple[str, str, int], PublicTexts] = field(default_factory=dict)

    def run(self) -> list[Record]:
        """Runs the cells without a record and returns the records of all cells, in the order of the plan.

        It waits for cells that other processes are running.

        Raises:
            LeakboardError: a record cannot be written, or an extra is missing.
        """
        if self.since is None:
            self.since = self.store.now()
        cells, done = self.plan.cells, dict[str, Record]()
        left, pause = [*cells[self.first :], *cells[: self.first]], MIN_PAUSE
        while left:
            # Cells wait for their shadow models, unless the plan does not contain these.
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
                pause = min(2 * pause, MAX_PAUSE)
            else:
                pause = MIN_PAUSE
            left = waiting
        return [done[planned.cell.key] for planned in cells]

    def run_one(self, planned: PlannedCell) -> Record:
        """The record of one cell; waits while another process runs the cell."""
        while (record := self._claimed(planned)) is None:
            time.sleep(MAX_PAUSE)
        return record

    def _claimed(self, planned: PlannedCell) -> Record | None:
        """The cell's record, after running it if necessary; None while another process holds its lock."""
        self._check_folder()
        with self.store.claim(planned.cell.key) as mine:
            self._begun = True
            return self._completed(planned) if mine else None

    def _check_folder(self) -> None:
        """Raise LeakboardError if the folder of the records is gone: its records would be missing at the end."""
        if self._begun and not has_locks(self.store.folder):
            raise LeakboardError(
                f"{self.store.folder}: the folder was removed during the run, with the records in it. Run again"
            )

    def missing(self, planned: PlannedCell) -> tuple[Record | None, list[Pairing]]:
        """The stored record of a cell, and the attacks that it still lacks.

        A damaged record is set aside and treated as absent.
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
        return record, missing_pairings(planned, record, retry)

    def _completed(self, planned: PlannedCell) -> Record:
        """The cell's record with all its attacks; the cell is run for those that it lacks."""
        earlier, pairings = self.missing(planned)
        self.reporter.started(planned)
        if earlier is not None and not pairings:
            lacking = self._lacks_transcript(earlier)
            if lacking:  # the record stays as it is
                self._run(replace(planned, pairings=()), [], None)
            self.reporter.finished(earlier, reused=not lacking)
            return earlier
        ready, waiting = with_shadows(replace(planned, pairings=tuple(pairings)), self.store.read)
        # Without an attack that can start, the cell need not be trained: only the reasons are recorded.
        reused = earlier is not None and not any(pairing.goals for pairing in ready.pairings)
        if earlier is not None and reused:
            reasons = [leak for pairing in ready.pairings for leak in pairing.skipped_leaks()]
            record = earlier.model_copy(update={"leaks": [*reasons, *waiting]}).merged(earlier)
        else:
            record = self._run(ready, waiting, earlier)
        self._check_folder()
        self.store.write(record)
        self.reporter.finished(record, reused)
        return record

    def _lacks_transcript(self, record: Record) -> bool:
        """Whether a transcript is asked for, and missing or incomplete."""
        if self.transcripts is None or record.status != "ok":
            return False
        return not has_transcript(self.transcripts / record.key)

    def _run(self, ready: PlannedCell, waiting: list[Leak], earlier: Record | None) -> Record:
        """Runs a cell and adds the result to its earlier record.

        Args:
            waiting: leaks of attacks that cannot start yet.
            earlier: the record so far, to which attacks are added.
        """
        backbone = self.plan.backbones[ready.cell.model_hash]
        inputs, track = self._inputs(ready), self.reporter.track
        context = CellContext(
            ready,
            inputs,
            backbone,
            track,
            self.workers,
            self.plan.secret,
            isolated=self.isolated,
        )
        record = run_cell(context, self.transcripts)
        is_shared = self.workers > 1 and backbone.device != "cpu"
        if is_shared or record.status == "out-of-memory":
            free_memory(backbone.device)  # torch keeps it, and other workers may need it
        if record.status == "ok":
            record = record.model_copy(update={"leaks": [*record.leaks, *waiting]})
        if earlier is None:
            return record
        if record.status != "ok":  # earlier measurements remain valid
            return _failed_again(earlier, record, ready.pairings)
        return record.merged(earlier)

    def _inputs(self, planned: PlannedCell) -> Inputs:
        """Inputs of a cell, tokenised once for adjacent cells with the same task, model and seed."""
        wanted = Inputs.identity(planned.cell)
        if self._last is None or self._last[0] != wanted:
            cell = planned.cell
            task, backbone = self.plan.tasks[cell.data_hash], self.plan.backbones[cell.model_hash]
            if self._last is not None and self._last[0][:-1] == wanted[:-1]:
                inputs = self._last[1].with_coins(cell, task, self.plan.secret)
            else:
                which = (cell.data_hash, cell.model_hash, cell.train.max_length)
                if which not in self._public:
                    self._public = {which: encode_public(cell, task, backbone, self.plan.public)}
                inputs = Inputs.of(cell, task, backbone, self._public[which], self.plan.secret)
            self._last = wanted, inputs
        return self._last[1]


def missing_pairings(planned: PlannedCell, record: Record, retry: bool = True) -> list[Pairing]:
    """The attacks of a cell that its record does not contain yet.

    Args:
        retry: include attacks that failed.
    """
    if record.status not in FINAL and retry:
        return list(planned.pairings)
    if record.status != "ok":
        return []
    failed = {attack_id(leak.attack) for leak in record.leaks if leak.status not in FINAL}
    done = {attack_id(leak.attack) for leak in record.leaks} - (failed if retry else set())
    return [p for p in planned.pairings if attack_id(spec_of(p.attack)) not in done]


def _failed_again(earlier: Record, record: Record, pairings: Sequence[Pairing]) -> Record:
    """An earlier record to which the new attacks are added as failed, because the cell failed."""
    status: Status = "out-of-memory" if record.status == "out-of-memory" else "failed"
    reason = f"the cell, run again for this attack, ended {record.status}: {record.reason}"
    leaks = [k for p in pairings for k in p.failed_leaks(status, reason) + p.skipped_leaks()]
    return earlier.model_copy(update={"leaks": leaks}).merged(earlier)
