"""Power of comparisons: what a number of seeds can show, from the spread over the seeds of pilot records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isnan, nan, sqrt
from statistics import fmean, median, stdev, variance

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Cell, Record, grouped
from leakboard.bench.scoring import UNTUNED, gain
from leakboard.leaderboards.rendering import markdown
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    LEVEL,
    MATTERS,
    UNITS,
    ClaimVerdict,
    Interval,
    PrintedClaim,
    ResultsTable,
    Setting,
    differences_of,
    format_number,
    gain_over,
    mean_interval,
    printed_claims,
    reads_either,
    results_table,
    standard_error,
    t_quantile,
)

ANSWERED = ("replicated", "contradicted")
ENOUGH, WANTED = 0.5, 0.8
"""Power below which a plan is said not to decide, and power for which seeds are counted."""
MOST_SEEDS = 1000
CORES = 2
QUANTILES = 2000


@dataclass(frozen=True)
class Comparison:
    """A paired comparison of two settings in pilot records.

    Attributes:
        kind: 'cost', 'leakage' or 'claim'.
        subject: id of the claim, word of the goal, or 'utility'.
        gap: its mean over the pilot's seeds, with the 95 % interval.
        spread: standard deviation of the paired differences over these seeds.
        matters: smallest difference that matters, or the margin of a claim of equality.
        is_equality: the claim is that the two differ by less than `matters`.
        tests: comparisons that are corrected for together.
        settings: the two, or one for leakage, whose twin is not counted.
        example_share: share of the variance that more evaluated examples would remove; NaN where unknown.
    """

    kind: str
    subject: str
    name: str
    unit: str
    gap: Interval
    spread: float
    seeds: int
    matters: float
    settings: tuple[Setting, ...]
    is_equality: bool = False
    tests: int = 1
    example_share: float = nan

    @property
    def least(self) -> str:
        """What matters, in words: '1 point'."""
        unit = self.unit.removesuffix("s") if self.matters == 1 else self.unit
        return f"{self.matters:g}{unit}"

    def excluded(self, seeds: int) -> float:
        """Smallest difference that so many seeds exclude at 95 % if their mean is 0."""
        return t_quantile(seeds - 1) * self.spread / sqrt(seeds) if seeds > 1 else nan

    def power(self, seeds: int) -> float:
        """Probability that so many seeds decide: show what matters, or that a difference of 0 is below it."""
        return power(self.spread, self.matters, seeds, self.tests, self.is_equality)

    def seeds_needed(self) -> int | None:
        """Least number of seeds with a power of 0.8; None above 1,000."""
        needed = bisect_left(range(MOST_SEEDS + 1), WANTED, lo=2, key=self.power)
        return needed if needed <= MOST_SEEDS else None

    @property
    def task(self) -> str:
        return self.settings[0].task

    @property
    def seconds(self) -> float:
        """Seconds of one more seed of both settings, from the records."""
        return sum(_seconds(setting) for setting in self.settings)

    def hours(self, seeds: int, have: int) -> float:
        """Hours on two cores from `have` to `seeds` seeds, with one process on each core."""
        return max(seeds - have, 0) * self.seconds / CORES / 3600


def power(
    spread: float, effect: float, seeds: int, tests: int = 1, is_equality: bool = False
) -> float:
    """Power of a two-sided paired t-test at 5 %, as of the noncentral t-distribution.

    Args:
        tests: number of tests over which the 5 % are shared (Bonferroni, a lower bound for Holm's correction).
        is_equality: the probability that the 95 % interval lies within ±`effect` if the true difference is 0.
    """
    if seeds < 2:
        return nan
    if spread < 1e-9:  # the same difference in every seed
        return 1.0
    from scipy.special import ndtr  # slow to import

    level = LEVEL if is_equality else LEVEL / tests
    limit = t_quantile(seeds - 1, level / 2) * _relative_errors(seeds)
    shift = effect / spread * sqrt(seeds)
    if is_equality:
        return float((2 * ndtr(np.maximum(shift - limit, 0)) - 1).mean())
    return float((ndtr(shift - limit) + ndtr(-shift - limit)).mean())


@cache
def _relative_errors(seeds: int) -> NDArray[np.float64]:
    """Quantiles of the ratio of an estimated standard deviation to the true one."""
    from scipy.special import chdtri  # slow to import

    tails = (np.arange(QUANTILES) + 0.5) / QUANTILES
    ratios: NDArray[np.float64] = np.sqrt(chdtri(seeds - 1, tails) / (seeds - 1))
    return ratios


def comparisons(
    table: ResultsTable, claims: Iterable[PrintedClaim], cells: Iterable[Cell] | None = None
) -> list[Comparison]:
    """Claims, costs and leakages that two or more seeds of the pilot records measure.

    Args:
        cells: restricts the result to settings of these cells, such as those of a plan; None for all.
    """
    wanted = None if cells is None else {_without_seed(cell) for cell in cells}
    found = [*_claims(table, claims), *_costs(table), *_leakages(table)]
    return [
        comparison
        for comparison in found
        if wanted is None or all(_without_seed(s.first.cell) in wanted for s in comparison.settings)
    ]


def _claims(table: ResultsTable, claims: Iterable[PrintedClaim]) -> Iterator[Comparison]:
    present = {setting.defense for setting in table.settings}
    for claim in claims:
        matters = claim.margin or claim.least
        if matters is None or not {claim.a.defense, claim.b.defense} <= present:
            continue
        known = [gap for gap in differences_of(claim, table) if gap.seeds > 1]
        for gap in known:
            a, b = gap.a.setting, gap.b.setting
            yield Comparison(
                kind="claim",
                subject=claim.id,
                name=f"{claim.id}: {a.name} and {b.name}, {a.task}",
                unit=UNITS.get(claim.metric, ""),
                gap=gap.mean,
                spread=standard_error(gap.mean, gap.seeds) * sqrt(gap.seeds),
                seeds=gap.seeds,
                matters=matters,
                settings=(a, b),
                is_equality=claim.margin is not None,
                tests=len(known),
                example_share=_example_share(a, b) if claim.metric == "utility" else nan,
            )


def _costs(table: ResultsTable) -> Iterator[Comparison]:
    for group in table.groups:
        for setting in group.settings:
            cost = group.cost(setting)
            is_baseline = setting.undefended or setting.defense == UNTUNED
            if group.reference and not is_baseline and len(cost.by_seed) > 1:
                yield Comparison(
                    kind="cost",
                    subject="utility",
                    name=f"{setting.name}, {setting.task}",
                    unit=UNITS["utility"],
                    gap=cost.points,
                    spread=stdev(cost.by_seed.values()),
                    seeds=len(cost.by_seed),
                    matters=MATTERS["cost"],
                    settings=(setting, group.reference),
                    example_share=_example_share(setting, group.reference),
                )


def _leakages(table: ResultsTable) -> Iterator[Comparison]:
    for row in table:
        if row.is_certified and not row.is_baseline and len(row.leakage_by_seed) > 1:
            values = list(row.leakage_by_seed.values())
            yield Comparison(
                kind="leakage",
                subject=GOAL_WORDS[row.goal],
                name=f"{row.setting.name}, {GOAL_WORDS[row.goal]}, {row.setting.task}",
                unit="",
                gap=mean_interval(values),
                spread=stdev(values),
                seeds=len(values),
                matters=MATTERS["leakage"],
                settings=(row.setting,),
            )


def power_notes(cells: Sequence[Cell], pilot: Sequence[Record]) -> list[str]:
    """Sentences on comparisons between cells of a plan that its seeds cannot decide; none without a pilot.

    Args:
        pilot: earlier records; those count that differ from a cell in nothing but the seed.
    """
    done = {record.key for record in pilot if record.status == "ok"}
    if len({record.cell.seed for record in pilot}) < 2 or all(cell.key in done for cell in cells):
        return []
    found = comparisons(results_table(pilot), printed_claims(), cells)
    return describe_power(found, len({cell.seed for cell in cells}))


def describe_power(found: Sequence[Comparison], seeds: int) -> list[str]:
    """A sentence for each kind of comparison of which so many seeds cannot decide most, with what would."""
    sentences = []
    for kind, thing in KINDS.items():
        own = [comparison for comparison in found if comparison.kind == kind]
        weak = [comparison for comparison in own if comparison.power(seeds) < ENOUGH]
        if not weak:
            continue
        needed = [comparison.seeds_needed() or MOST_SEEDS for comparison in weak]
        words = f"power: {seeds} seeds are too few for {len(weak)} of {len(own)} {thing} (power below {ENOUGH})"
        words += f"; half of these need {median(needed):.0f} seeds or fewer"
        shares = [one.example_share for one in weak if not isnan(one.example_share)]
        if shares and (share := median(shares)) > 0.1:
            words += (
                f", and {min(share, 1):.0%} of their variance comes from too few evaluated examples"
            )
        sentences.append(f"{words}. `leakboard plan --power` lists them")
    return sentences


KINDS = {
    "claim": "comparisons that a printed claim makes",
    "cost": f"costs, where {MATTERS['cost']:g} point matters",
    "leakage": f"leakages, where {100 * MATTERS['leakage']:g} % matter",
}


def _example_share(a: Setting, b: Setting) -> float:
    """Share of the variance between seeds that is due to the sample of evaluated examples."""
    _, gaps = gain_over(a, b)
    if len(gaps) < 2 or (between := variance(gaps.values())) < 1e-9:
        return nan
    ends = [gain(a.records[s], b.records[s])[1:] for s in gaps]
    return min(fmean((100 * (high - low) / 3.92) ** 2 for low, high in ends) / between, 1.0)


def _seconds(setting: Setting) -> float:
    spent = [record.cost.total_seconds for record in setting.records.values() if record.cost]
    return fmean(spent) if spent else nan


def _without_seed(cell: Cell) -> str:
    return cell.model_copy(update={"seed": 0}).key


def claims_power(table: ResultsTable, verdicts: Sequence[ClaimVerdict]) -> str:
    """Table of what the open printed claims need, each with the cheapest of its pairs that have most seeds."""
    by_claim = grouped(
        comparisons(table, [one.claim for one in verdicts]), lambda pair: pair.subject
    )
    rows = []
    for verdict in verdicts:
        pairs = by_claim.get(verdict.claim.id, [])
        if verdict.answer in ANSWERED:
            continue
        if not pairs:
            rows.append([verdict.claim.id, verdict.answer, *["–"] * 8])
            continue
        best = min(pairs, key=lambda pair: (-pair.seeds, pair.seconds))
        best = replace(best, spread=_pooled(pairs))
        needed = best.seeds_needed()
        more = max((needed or 0) - best.seeds, 0)
        blocked = "" if needed is None or more else _obstacle(verdict)
        rows.append(
            [
                verdict.claim.id,
                verdict.answer,
                str(len(pairs)),
                f"{best.least}{' either way' * best.is_equality}",
                format_number(best.spread),
                str(best.seeds),
                format_number(best.excluded(best.seeds)),
                "> 1000" if needed is None else str(needed),
                "–" if needed is None or blocked else str(more * len(best.settings)),
                blocked or ("–" if needed is None else f"{best.hours(needed, best.seeds):.1f}"),
            ]
        )
    answers: list[str] = [verdict.answer for verdict in verdicts]
    counts = ", ".join(f"{answers.count(word)} {word}" for word in ANSWERED)
    head = (
        *("claim", "verdict", "pairs", "matters", "sd", "seeds", "excluded"),
        *("needed", "cells", "hours"),
    )
    decided = sum(answer in ANSWERED for answer in answers)
    return (
        f"{decided} of {len(answers)} claims are decided ({counts}). These are open:\n\n"
        f"{markdown(head, rows)}\n"
    )


def _obstacle(verdict: ClaimVerdict) -> str:
    """What keeps a claim open that has the seeds it needs, or an empty string."""
    if verdict.claim.margin is not None:
        return "at the margin"
    if verdict.claim.goal is not None and not any(map(reads_either, verdict.differences)):
        return "no attack works"
    return ""


def _pooled(pairs: Sequence[Comparison]) -> float:
    """Standard deviation over the seeds of all pairs."""
    freedom = sum(pair.seeds - 1 for pair in pairs)
    return sqrt(sum((pair.seeds - 1) * pair.spread**2 for pair in pairs) / freedom)


def board_power(table: ResultsTable) -> str:
    """Table of what costs and leakages need, by task."""
    found = grouped(comparisons(table, []), lambda one: (one.kind, one.subject, one.task))
    rows = []
    for (kind, subject, task), own in sorted(found.items()):
        needed = [comparison.seeds_needed() or inf for comparison in own]
        strong = sum(comparison.power(comparison.seeds) >= ENOUGH for comparison in own)
        half = median(needed)
        rows.append(
            (
                f"{kind} ({subject})" if kind == "leakage" else kind,
                task,
                own[0].least,
                str(len(own)),
                format_number(median(comparison.spread for comparison in own)),
                format_number(median(comparison.excluded(comparison.seeds) for comparison in own)),
                f"{strong} of {len(own)}",
                "> 1000" if half == inf else f"{half:.0f}",
            )
        )
    head = ("measure", "task", "matters", "settings", "sd", "excluded", "power ≥ 0.5", "needed")
    return markdown(head, rows) + "\n"
