"""Runs cells of a submission again, if their method and data are available, and compares the records.

The cells are drawn by a seed of the verifier together with the records, so that submitters cannot predict them.
Each defense is drawn from: a reproduced baseline proves nothing about another method.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from leakboard.bench.contracts import Cost, Provenance, Record, plain
from leakboard.bench.records import Outcome, compare_runs, from_bytes
from leakboard.bench.running import Reporter
from leakboard.bench.submissions.cell_process import NotRun, Order, run_in_subprocess
from leakboard.bench.submissions.manifest import Submission, Verified
from leakboard.bench.submissions.reproduction import LocalResources

MOST_REASONS = 50
TIMES = [name for name in Cost.model_fields if name.endswith(("seconds", "peak_megabytes"))]
REPORTED = (
    f"{', '.join(TIMES)} (within a factor of 1000 of those here), seconds of each attack, shadow models, "
    f"and provenance ({', '.join(Provenance.model_fields)})"
)
"""Fields that depend on the machine or on its owner."""


class Reruns:
    """Runs `count` cells of each defense again, each with a time limit in minutes."""

    def __init__(
        self, count: int, seed: int, reporter: Reporter, here: LocalResources, minutes: float = 60.0
    ) -> None:
        self.count, self.seed, self.minutes = count, seed, minutes
        self.reporter, self.here = reporter, here

    def __call__(
        self, submission: Submission, records: Sequence[Record]
    ) -> Iterator[tuple[Outcome, str] | Verified]:
        """Yield an outcome with a message for each cell, and reasons why others were not run."""
        order, left = self._possible(records)
        drawn = first_of_each(
            rerun_order(order, submission.manifest.content, self.seed), self.count
        )
        repeated: list[Record] = []
        for record in drawn:
            try:
                again = run_in_subprocess(
                    self._order(record, submission, records), self.minutes, self.reporter
                )
            except NotRun as error:
                left[_about(record, str(error))] += 1
                continue
            self.reporter.finished(again, reused=False)
            stated = from_bytes(submission.records[record.key], record.key, record.key)
            outcome, what = compare_runs(stated, again)
            if outcome == "held":
                repeated.append(record)
            yield outcome, what
        yield from self._told(order, drawn, repeated, left)
        methods = unreproduced(records, repeated)
        if methods:
            yield "note", f"no cell was reproduced of {', '.join(methods)}"
        yield "note", f"as reported, and not verified: {REPORTED}"
        yield Verified(
            seed=self.seed,
            repeated=tuple(sorted(record.key for record in repeated)),
            defended=any(not record.undefended for record in repeated),
            methods=methods,
            left={plain(why, 290): n for why, n in left.most_common(MOST_REASONS)},
        )

    def _possible(self, records: Sequence[Record]) -> tuple[list[Record], Counter[str]]:
        """The cells that can be run on this machine, and the number of others by reason."""
        found, left = list[Record](), Counter[str]()
        for record in records:
            if record.cell.shadow is not None:
                left["shadow models are not run again"] += 1
            elif record.status == "ok":
                why = self.here.obstacle(record)
                if why is None:
                    found.append(record)
                else:
                    left[_about(record, why)] += 1
        return found, left

    def _told(
        self,
        order: Sequence[Record],
        drawn: Sequence[Record],
        repeated: Sequence[Record],
        left: Counter[str],
    ) -> Iterator[tuple[Outcome, str]]:
        yield (
            "note",
            f"{len(repeated)} of {len(drawn)} cells were reproduced; --seed {self.seed} drew at most "
            f"{self.count} of each defense, of {len(order)} cells that can be run on this machine",
        )
        for why, number in left.most_common():
            yield "note", f"not run again: {number} cells: {why}"

    def _order(self, record: Record, submission: Submission, records: Sequence[Record]) -> Order:
        shadows = [
            other.key
            for other in records
            if other.cell.shadow is not None
            and other.cell.model_copy(update={"shadow": None}).key == record.key
        ]
        return Order(
            key=record.key,
            record=submission.records[record.key],
            shadows={key: submission.records[key] for key in shadows},
            data=self.here.data,
            device=self.here.device,
            model=self.here.where(record.cell.model),
            threads=torch.get_num_threads(),
        )


def rerun_order(records: Sequence[Record], content: str, seed: int) -> list[Record]:
    """Records in the order in which they are run again: random, but defended cells first.

    Args:
        content: a hash of all submitted records.
    """
    order = sorted(records, key=lambda record: record.key)
    random.Random(f"{seed} {content}").shuffle(order)
    return sorted(order, key=lambda record: record.undefended)


def first_of_each(order: Sequence[Record], count: int) -> list[Record]:
    """The first `count` records of each defense, in the order that is given."""
    seen = Counter[tuple[str, int]]()
    found = []
    for record in order:
        method = method_of(record)
        seen[method] += 1
        if seen[method] <= count:
            found.append(record)
    return found


def method_of(record: Record) -> tuple[str, int]:
    """Name and version of the defense of a record."""
    return record.cell.defense.name, record.cell.defense.version


def unreproduced(records: Sequence[Record], repeated: Sequence[Record]) -> tuple[str, ...]:
    """Names of the defenses that have results, but no reproduced cell."""
    measured = [r for r in records if r.status == "ok" and r.cell.shadow is None]
    missing = {method_of(r) for r in measured} - {method_of(r) for r in repeated}
    return tuple(sorted({name for name, _ in missing}))


def _about(record: Record, why: str) -> str:
    return f"{record.cell.defense.name} on {record.cell.task}: {why}"
