"""Claims of papers as comparisons of two settings, with verdicts from our records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from leakboard.bench.contracts import Channel, Goal, LeakboardError, Part, grouped
from leakboard.bench.scoring import NEEDED
from leakboard.leaderboards.tables.compare import (
    MATTERS,
    Difference,
    Metric,
    Rows,
    differences,
    place_by,
)
from leakboard.leaderboards.tables.intervals import count, format_interval, format_number
from leakboard.leaderboards.tables.leakage import Reader
from leakboard.leaderboards.tables.results import ResultsTable
from leakboard.leaderboards.tables.settings import Setting

TABLE = Path(__file__).with_name("claims.yaml")

UNITS = {"utility": " points", "exposure": " bits"}
"""Unit of a difference in words; none for shares and perplexity."""
Answer = Literal["replicated", "contradicted", "undecided", "not measured"]


class PrintedClaim(Part):
    """A comparison of two settings, a minus b, that a paper makes. `claims.yaml` explains each key."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    paper: str = Field(min_length=1)
    where: str = Field(min_length=1)
    """Section and table or figure."""
    claim: str = Field(min_length=1)
    """The claim in one sentence."""
    group: str | None = None
    """Claims of one group must all hold."""
    goal: Goal | None = None
    metric: Literal["utility", "success", "leakage", "exposure", "perplexity"]
    """Utility in points, success and leakage as shares, exposure in bits, perplexity per token."""
    task: tuple[str, ...] = Field(min_length=1)
    """The claim is about each of these tasks."""
    a: Rows
    b: Rows
    pair_by: tuple[str, ...] = ()
    """Parameters, or `cut`, in which the settings of a pair agree."""
    expect: Literal["less", "more", "equal"]
    """The value of a relative to b."""
    size: float | None = None
    """The printed difference, a minus b, in the unit of the metric."""
    margin: float | None = Field(None, gt=0)
    """With `equal`: the largest difference either way that still counts as equal."""
    attacks: tuple[str, ...] = ()
    """The paper's attacks; empty for the strongest attack."""
    channel: Channel | None = None
    """The channel that these attacks read, if they can read several."""
    worst: bool = False
    """Success at the worst moment of each run, as the paper reports, and not at one chosen on other seeds."""
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        attacked = self.metric in ("success", "leakage", "exposure")
        if attacked != (self.goal is not None):
            needs = "needs a goal" if attacked else "has no goal"
            raise ValueError(f"goal: the metric '{self.metric}' {needs}")
        if not attacked and (self.attacks or self.channel or self.worst):
            raise ValueError(f"attacks: the metric '{self.metric}' has no attacks and no channel")
        if (self.expect == "equal") != (self.margin is not None):
            raise ValueError("margin: is only allowed with `expect: equal`")
        if self.size is None:
            return self
        is_as_expected = self.size < 0 if self.expect == "less" else self.size > 0
        if not (is_as_expected if self.margin is None else abs(self.size) <= self.margin):
            raise ValueError(
                f"size: {self.size:g} contradicts `expect: {self.expect}`; it is a minus b"
            )
        return self

    @property
    def least(self) -> float | None:
        """Smallest difference that would confirm the claim: what matters, or the printed size if that is smaller."""
        matters = MATTERS.get(self.metric)
        return matters if matters is None or not self.size else min(matters, abs(self.size))


def printed_claims(path: Path = TABLE) -> list[PrintedClaim]:
    """All claims of a file, in its order.

    Raises:
        LeakboardError: the file is not a list of claims; the message names the file, the claim, the key and the
            expected value.
    """
    try:
        entries = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LeakboardError(f"{path}: cannot be read as YAML: {error}") from error
    if not isinstance(entries, list):
        raise LeakboardError(f"{path}: must hold a list of claims")
    claims: dict[str, PrintedClaim] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            claim = PrintedClaim.model_validate(entry)
        except ValidationError as error:
            given = entry.get("id") if isinstance(entry, dict) else None
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            message = first["msg"].removeprefix("Value error, ")
            parts = str(path), given or f"claim {number}", key, message
            raise LeakboardError(": ".join(filter(None, parts))) from error
        if claim.id in claims:
            raise LeakboardError(f"{path}: {claim.id}: id: two claims have this id; rename one")
        claims[claim.id] = claim
    return list(claims.values())


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict and the pairs of settings behind it.

    Attributes:
        answer: verdict on this claim.
        whole: joint verdict on all claims of its group.
        differences: measured differences of all pairs, after Holm's correction.
        speaking: the reported pair among those that give this verdict; None if nothing was measured.
        reason: reason why nothing was measured.
    """

    claim: PrintedClaim
    answer: Answer
    whole: Answer
    differences: tuple[Difference, ...]
    speaking: Difference | None
    reason: str

    @property
    def size_is_excluded(self) -> bool:
        """Whether the printed difference is outside of the interval of the reported pair."""
        size, gap = self.claim.size, self.speaking
        return size is not None and gap is not None and gap.excludes(size)

    @property
    def is_much_smaller(self) -> bool:
        """Whether the claim is replicated in direction, but the interval is below half of the printed size."""
        size, gap = self.claim.size, self.speaking
        if self.answer != "replicated" or size is None or gap is None or self.claim.margin:
            return False
        return max(abs(gap.mean.low), abs(gap.mean.high)) < abs(size) / 2

    @property
    def is_negligible(self) -> bool:
        """Whether the claim is contradicted because all pairs exclude a difference that matters."""
        gap = self.speaking
        if self.answer != "contradicted" or gap is None:
            return False
        return _answer(self.claim, gap) != "contradicted"

    def words(self) -> tuple[str, str, str, str, str]:
        """The claim, its place in the paper, our difference, the verdict, and the values that it excludes.

        The difference is such as '0.5 [-0.9, 1.9] points, 10 seeds; printed 2.5'.
        """
        claim, gap, pairs = self.claim, self.speaking, len(self.differences)
        ours, answer, excluded = self.reason, str(self.answer), "–"
        if gap is not None:
            unit = UNITS.get(claim.metric, "")
            digits = 2 if claim.metric in ("success", "leakage") else 1
            numbers = (gap.mean.low, gap.mean.high, claim.least or nan, claim.size or 0.0)
            low, high, least, printed = (format_number(number, digits) for number in numbers)
            ours = f"{format_interval(gap.mean, digits)}{unit}, {count(gap.seeds, 'seed')}"
            ours += f", {count(pairs, 'pair')}" if pairs > 1 else ""
            ours += "" if claim.size is None else f"; printed {printed}"
            if self.is_much_smaller:
                answer = "replicated in direction, much smaller"
            elif self.is_negligible:
                answer = f"contradicted: less than {least}{unit}"
            elif self.answer == "undecided" and claim.margin is not None:
                excluded = f"below {low}, above {high}"
            elif self.answer != "contradicted" and claim.margin is None and self.size_is_excluded:
                excluded = f"the printed {printed}"
            elif self.answer == "undecided":
                excluded = f"above {high}" if claim.expect == "more" else f"below {low}"
        if self.whole != self.answer:
            answer += f"; with its other parts {self.whole}"
        return claim.claim, claim.where, ours, answer, excluded


def claim_verdicts(table: ResultsTable, claims: Iterable[PrintedClaim]) -> list[ClaimVerdict]:
    """Verdicts on the claims, in their order."""
    found = [_evaluate(claim, table) for claim in claims]
    groups = grouped(found, lambda judged: judged.claim.group)
    return [
        replace(judged, whole=joint_answer([one.answer for one in groups[judged.claim.group]]))
        if judged.claim.group
        else judged
        for judged in found
    ]


def joint_answer(answers: Sequence[Answer]) -> Answer:
    """Joint verdict on a group of claims: contradicted if one is, replicated if all are."""
    if "contradicted" in answers:
        return "contradicted"
    return answers[0] if len(set(answers)) == 1 else "undecided"


def verdict(claim: PrintedClaim, differences: Sequence[Difference]) -> Answer:
    """Verdict on a claim from corrected differences.

    Contradicted if one is clear in the other direction, or if all exclude an effect that matters; replicated if one is
    clear on each task and none contradicts. No mean may lie beyond the margin of a replicated claim of equality.
    """
    answers = [_answer(claim, gap) for gap in differences]
    if not answers:
        return "not measured"
    if "contradicted" in answers or all(_is_negligible(claim, gap) for gap in differences):
        return "contradicted"
    if claim.margin and any(abs(gap.mean.value) > claim.margin for gap in differences):
        return "undecided"
    told = zip(differences, answers, strict=True)
    shown = {gap.a.setting.task for gap, answer in told if answer == "replicated"}
    return "replicated" if shown == {*claim.task} else "undecided"


def _is_negligible(claim: PrintedClaim, gap: Difference) -> bool:
    """Whether the interval excludes each difference that matters in the direction of the claim.

    Where attacks are compared, one must work on one of the two settings: two that read nothing differ in nothing.
    """
    if claim.margin is not None or claim.least is None:
        return False
    if claim.goal is not None and not reads_either(gap):
        return False
    return gap.mean.high < claim.least if claim.expect == "more" else gap.mean.low > -claim.least


def reads_either(gap: Difference) -> bool:
    """Whether an attack is shown to work on one of the two settings."""
    return any(row.advantage.low > NEEDED for row in (gap.a, gap.b))


def _answer(claim: PrintedClaim, gap: Difference) -> Answer:
    low, high = gap.mean.low, gap.mean.high
    if claim.margin is not None:
        if -claim.margin <= low and high <= claim.margin:
            return "replicated"
        beyond = low > claim.margin or high < -claim.margin
        return "contradicted" if beyond and gap.is_clear else "undecided"
    if gap.verdict == "undecided":
        return "undecided"
    return "replicated" if gap.verdict == claim.expect else "contradicted"


def _evaluate(claim: PrintedClaim, table: ResultsTable) -> ClaimVerdict:
    compared = differences_of(claim, table)
    known = tuple(gap for gap in compared if not gap.mean.is_missing)
    answer = verdict(claim, known)
    reason = next((gap.reason for gap in compared), "no pair of settings was measured")
    deciding = [gap for gap in known if _answer(claim, gap) == answer] or known
    speaking = min(deciding, key=_rank, default=None)
    return ClaimVerdict(claim, answer, answer, known, speaking, "" if known else reason)


def differences_of(claim: PrintedClaim, table: ResultsTable) -> list[Difference]:
    """Differences of the pairs of a claim under the paper's attacks, after Holm's correction."""
    channels = (claim.channel.value,) if claim.channel else ()
    every = table.under(Reader(claim.attacks, channels, worst=claim.worst))
    rows = [row for row in every if row.setting.task in claim.task]
    place = place_by(claim.pair_by, cut=claim.a.cut is None and claim.b.cut is None)
    metric: Metric = "success" if claim.metric == "exposure" else claim.metric
    found = differences(rows, claim.goal, metric, claim.a, claim.b, place)
    if metric == "utility":
        found = _best_trained(found)
    return [gap for gap in found if claim.margin is None or _is_alike(gap.a.setting, gap.b.setting)]


def _best_trained(gaps: Sequence[Difference]) -> list[Difference]:
    """Each method gets its best training: tuned pairs replace the untuned ones of their task and model."""
    best = list[Difference]()
    for pairs in grouped(gaps, lambda gap: (gap.a.setting.task, gap.a.setting.model)).values():
        tuned = [gap for gap in pairs if gap.a.setting.trials]
        best += tuned if any(not gap.mean.is_missing for gap in tuned) else pairs
    return best


def _is_alike(a: Setting, b: Setting) -> bool:
    """Whether two settings were trained alike, or tuned; otherwise the training alone may tell them apart."""
    return bool(a.trials) or a.first.cell.train == b.first.cell.train


def _rank(gap: Difference) -> tuple[float, float]:
    """Order of pairs: most seeds first, then most precise. It does not depend on what the paper prints."""
    return -gap.seeds, gap.mean.high - gap.mean.low
