"""Verdicts on the claims that papers print: what our pairs of settings say about each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Literal

from leakboard.leaderboards.tables.claims import PrintedClaim, Selector, matches
from leakboard.leaderboards.tables.compare import Difference, Metric, compare, holm
from leakboard.leaderboards.tables.intervals import count, format_interval, format_number
from leakboard.leaderboards.tables.pairing import (
    Reader,
    Tables,
    all_parameters,
    one_per_setting,
    pairs,
    place_by,
)
from leakboard.leaderboards.tables.results import Result, ResultsTable

UNITS = {"utility": " points", "exposure": " bits"}
Answer = Literal["replicated", "contradicted", "undecided", "not measured"]


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim, our pairs that are about it, and the verdict.

    Attributes:
        answer: of this claim; `whole` of all claims of its group together.
        differences: of the pairs that have a number, after Holm's correction among them.
        speaking: of the pairs that give this answer the one that is told; None where nothing was measured.
        reason: why nothing was measured.
    """

    claim: PrintedClaim
    answer: Answer
    whole: Answer
    differences: tuple[Difference, ...]
    speaking: Difference | None
    reason: str

    @property
    def size_is_excluded(self) -> bool:
        """Whether the printed difference lies outside the interval of the speaking pair."""
        size, one = self.claim.size, self.speaking
        return size is not None and one is not None and one.excludes(size)

    @property
    def is_much_smaller(self) -> bool:
        """Whether a difference is as printed in direction, but the whole interval lies below half its size."""
        size, one = self.claim.size, self.speaking
        if self.answer != "replicated" or size is None or one is None or self.claim.margin:
            return False
        return max(abs(one.mean.low), abs(one.mean.high)) < abs(size) / 2

    def words(self) -> tuple[str, str, str, str, str]:
        """The claim, where it stands, our difference, the verdict, and what an undecided one excludes."""
        return self.claim.claim, self.claim.where, self._ours(), self._verdict(), self._excluded()

    def _ours(self) -> str:
        """'0.5 [-0.9, 1.9] points, 10 seeds; printed 2.5'."""
        one = self.speaking
        if one is None:
            return self.reason
        unit = UNITS.get(self.claim.metric, "")
        pairs = f", {count(len(self.differences), 'pair')}" if len(self.differences) > 1 else ""
        size = "" if self.claim.size is None else f"; printed {self._number(self.claim.size)}"
        mean = format_interval(one.mean, self._digits)
        return f"{mean}{unit}, {count(one.seeds, 'seed')}{pairs}{size}"

    def _verdict(self) -> str:
        words = "replicated in direction, much smaller" if self.is_much_smaller else self.answer
        return words if self.whole == self.answer else f"{words}; with its other parts {self.whole}"

    def _excluded(self) -> str:
        one, claim = self.speaking, self.claim
        if self.answer != "undecided" or one is None:
            return "–"
        low, high = self._number(one.mean.low), self._number(one.mean.high)
        if claim.margin is not None:
            return f"below {low}, above {high}"
        if claim.size is not None and self.size_is_excluded:
            return f"the printed {self._number(claim.size)}"
        return f"above {high}" if claim.expect == "more" else f"below {low}"

    @property
    def _digits(self) -> int:
        return 2 if self.claim.metric in ("success", "leakage") else 1

    def _number(self, value: float) -> str:
        return format_number(value, self._digits)


def claim_verdicts(table: ResultsTable, claims: Iterable[PrintedClaim]) -> list[ClaimVerdict]:
    """The verdict on each claim, in their order."""
    tables = Tables(table)
    found = [_evaluate(claim, tables) for claim in claims]
    groups: dict[str, list[Answer]] = {}
    for one in found:
        groups.setdefault(one.claim.group or one.claim.id, []).append(one.answer)
    return [replace(one, whole=together(groups[one.claim.group or one.claim.id])) for one in found]


def together(answers: Sequence[Answer]) -> Answer:
    """Of claims that a paper makes in one breath: contradicted if one is, replicated if all are."""
    if "contradicted" in answers:
        return "contradicted"
    return answers[0] if len(set(answers)) == 1 else "undecided"


def verdict(claim: PrintedClaim, differences: Sequence[Difference]) -> Answer:
    """What corrected differences say about a claim.

    It is contradicted where one is clearly the other way, and replicated where one is clear and none contradicts.
    """
    answers = {_answer(claim, one) for one in differences}
    if not answers:
        return "not measured"
    if "contradicted" in answers:
        return "contradicted"
    return "replicated" if "replicated" in answers else "undecided"


def _answer(claim: PrintedClaim, one: Difference) -> Answer:
    low, high = one.mean.low, one.mean.high
    if claim.margin is not None:
        if isnan(low):
            return "undecided"
        if -claim.margin <= low and high <= claim.margin:
            return "replicated"
        beyond = low > claim.margin or high < -claim.margin
        return "contradicted" if beyond and one.is_clear else "undecided"
    if one.verdict == "undecided":
        return "undecided"
    return "replicated" if one.verdict == claim.expect else "contradicted"


def _evaluate(claim: PrintedClaim, tables: Tables) -> ClaimVerdict:
    compared = differences_of(claim, tables)
    known = tuple(one for one in compared if not one.mean.is_missing)
    answer = verdict(claim, known)
    reason = next((one.reason for one in compared), "no pair of settings was measured")
    deciding = [one for one in known if _answer(claim, one) == answer]
    speaking = min(deciding, key=lambda one: _rank(claim, one), default=None)
    return ClaimVerdict(claim, answer, answer, known, speaking, "" if known else reason)


def differences_of(claim: PrintedClaim, tables: Tables) -> list[Difference]:
    """The pairs of a claim, compared under the paper's own attacks, after Holm's correction among them."""
    channels = (claim.channel.value,) if claim.channel else ()
    rows: Sequence[Result] = tables.under(Reader(claim.attacks, channels))
    if claim.goal is None:
        rows = one_per_setting(rows)
    else:
        rows = [row for row in rows if row.goal == claim.goal]
    rows = [row for row in rows if row.setting.task in claim.task]
    cut_is_shared = claim.a.cut is None and claim.b.cut is None
    place = place_by(claim.pair_by, cut_is_shared)
    metric: Metric = "success" if claim.metric == "exposure" else claim.metric
    found = pairs(
        rows, lambda row: _matches(claim.a, row), lambda row: _matches(claim.b, row), place
    )
    return holm([compare(a, b, metric) for a, b in found])


def _matches(selector: Selector, row: Result) -> bool:
    return matches(
        selector,
        {
            "defense": row.defense,
            "params": all_parameters(row),
            "cut": row.setting.cut,
            "undefended": row.setting.undefended,
        },
    )


def _rank(claim: PrintedClaim, one: Difference) -> tuple[float, float]:
    """The pair with most seeds speaks, of these the one nearest to the printed size, or the most precise."""
    if claim.size is not None:
        return -one.seeds, abs(one.mean.value - claim.size)
    return -one.seeds, one.mean.high - one.mean.low
