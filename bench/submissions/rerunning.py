"""Runs cells of a submission again, if their method and data are available, and compares the records.

The cells are drawn by a seed of the verifier together with the records, so that submitters cannot predict them.
Each defense is drawn from: a reproduced baseline proves nothing about another method.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from leakboard.bench.contracts import Cost, Provenance, Record, plain
from leakboard.bench.methods import registry
from leakboard.bench.records import Outcome, compare_runs, from_bytes
from leakboard.bench.running import Reporter, is_external
from leakboard.bench.submissions.cell_process import Misbehaved, NotRun, run_in_subprocess
from leakboard.bench.submissions.judge import Order
from leakboard.bench.submissions.manifest import Submission, Verified
from leakboard.bench.submissions.reproduction import LocalResources

MOST_REASONS = 50
SWAPPED = 0.2
"""Share of the steps whose messages are swapped."""
UNCHANGED = 1e-3
"""Relative change of the loss below which swapped messages had no effect."""
TIMES = [name for name in Cost.model_fields if name.endswith(("seconds", "peak_megabytes"))]
REPORTED = (
    f"{', '.join(TIMES)} (within a factor of 1000 of those here), seconds of each attack, shadow models",
    f"provenance ({', '.join(Provenance.model_fields)})",
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
            except Misbehaved as error:
                yield "refused", _about(record, str(error))
                continue
            self.reporter.finished(again, reused=False)
            stated = from_bytes(submission.records[record.key], record.key, record.key)
            outcome, what = compare_runs(stated, again)
            if outcome == "held":
                repeated.append(record)
            yield outcome, what
        yield from self._swaps(repeated, submission, records)
        yield from self._told(order, drawn, repeated, left)
        methods = unreproduced(records, repeated)
        if methods:
            yield "note", f"no cell of {', '.join(methods)} was reproduced"
        for fields in REPORTED:
            yield "note", f"as reported, and not verified: {fields}"
        yield Verified(
            seed=self.seed,
            repeated=tuple(sorted(record.key for record in repeated)),
            defended=any(not record.undefended for record in repeated),
            methods=methods,
            left={plain(why, 290): n for why, n in left.most_common(MOST_REASONS)},
        )

    def _swaps(
        self, repeated: Sequence[Record], submission: Submission, records: Sequence[Record]
    ) -> Iterator[tuple[Outcome, str]]:
        """Train a cell of each defense from outside once more with swapped messages, and report what its loss does."""
        for record in first_of_each(repeated, 1):
            if not is_external(
                registry.defense(record.cell.defense.name)(**record.cell.defense.params)
            ):
                continue
            order = replace(self._order(record, submission, records), swapped=SWAPPED)
            try:
                swapped = run_in_subprocess(order, self.minutes, self.reporter)
            except NotRun as error:
                yield "note", f"its messages were not swapped: {_about(record, str(error))}"
                continue
            except Misbehaved as error:
                yield "refused", _about(record, str(error))
                continue
            outcome, what = swap_outcome(record, swapped)
            yield outcome, _about(record, what)

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


def swap_outcome(record: Record, swapped: Record) -> tuple[Outcome, str]:
    """Judge a training with swapped messages by its loss, beside the ordinary training of the same cell."""
    check = swapped.wire_check
    if swapped.status != "ok" or check is None:
        return "note", "nothing was swapped, since nothing is sent while it trains"
    pairs = zip(record.loss, swapped.loss, strict=False)
    if sum(abs(one - other) for one, other in pairs) < UNCHANGED * sum(record.loss):
        return "refused", (
            f"messages of {check.n} steps arrived in random order, and its loss hardly changes: it trains on "
            "something that did not cross the wire"
        )
    rises = f"the loss rises at {check.value:.0%} of {check.n} steps with swapped messages"
    if check.low > check.chance:
        return "held", rises
    return (
        "note",
        f"{rises}, which is not clearly more than half: it hardly learns from what arrives",
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
