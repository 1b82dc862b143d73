"""What a customer has with the vendor's model, and without it, where that model is what is hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from leakboard.bench.contracts import Estimate, Goal, Leak, Record
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.tables import (
    Comparison,
    counted,
    interval,
    ranged,
    setting_named,
    setting_of,
)

PLAIN = "none"


@dataclass(frozen=True)
class Gap:
    """Points between two utilities, the mean over seeds with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[Estimate, Estimate]]) -> Gap:
        """How much higher the first of each pair is than the second."""
        gaps = [100 * (one.value - other.value) for one, other in pairs]
        # One seed has no interval: that both predicted the same examples is not on the record.
        return cls(fmean(gaps), *interval(gaps, np.nan, np.nan))

    def words(self, above: str, below: str) -> str:
        """What is clear of it; 'not told apart' where its interval holds 0, or where there is none."""
        if self.low > 0:
            return above
        return below if self.high < 0 else "not told apart"

    def __str__(self) -> str:
        ends = "" if self.low != self.low else f" [{self.low:+.1f}, {self.high:+.1f}]"
        return f"{self.value:+.1f}{ends}"


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each offer of a defense that hides the model the utility of the plug-in, beside what the customer
    predicts without the vendor and beside full tuning, seed by seed, with the bytes both ways."""
    for comparison in compared:
        plain: dict[int, Record] = {}
        offers: dict[str, list[tuple[Record, Leak]]] = {}
        labels = {
            key: setting_named(str(row["defense"]), str(row["label"]))
            for row in comparison.settings.to_dict("records")
            for key in comparison.keys[setting_of(row)]
        }
        for record in comparison.records:
            if record.utility and record.cell.defense.name == PLAIN:
                plain[record.cell.seed] = record
            held = _held(record)
            if record.utility and held and not record.undefended:
                offers.setdefault(labels[record.key], []).append((record, held))
        for name, own in offers.items():
            yield _finding(comparison, name, own, plain)


def _held(record: Record) -> Leak | None:
    """What the customer reaches with what it holds, by the attack that reaches most."""
    every = [one for one in record.leaks if one.goal == Goal.MODEL and one.channel and one.success]
    return max(every, key=lambda one: one.success.value if one.success else 0.0, default=None)


def _finding(
    comparison: Comparison,
    name: str,
    own: Sequence[tuple[Record, Leak]],
    plain: dict[int, Record],
) -> Finding:
    both = [(one.utility, leak.success) for one, leak in own if one.utility and leak.success]
    kept = Gap.of(both)
    parts = [
        f"the plug-in reaches {_mean([one for one, _ in both])}, what the customer holds without the vendor "
        f"{_mean([held for _, held in both])}, {kept} points between them: "
        + kept.words("the vendor keeps something", "the customer is better off without the vendor")
    ]
    full = [plain[one.cell.seed] for one, _ in own if one.cell.seed in plain]
    mine = {one.cell.seed: one.utility for one, _ in own}
    beside = [(a.utility, b) for a in full if a.utility and (b := mine[a.cell.seed])]
    if beside:
        lost = Gap.of(beside)
        parts.append(
            f"full tuning reaches {_mean([one for one, _ in beside])}, {lost} points more than the plug-in: "
            + lost.words("hiding the model costs utility", "the plug-in is better")
        )
    costs = [record.cost for record, _ in own if record.cost]
    if costs:
        up, down = (
            fmean(getattr(c, f"bytes_{way}") for c in costs) / 1e6 for way in ("up", "down")
        )
        parts.append(f"{up:.3g} MB go to the vendor and {down:.3g} MB come from it")
    first = own[0][0]
    return Finding(
        rule="offsite",
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}), under {name}, of "
        f"{first.utility_metric} over {counted(len(own), 'seed')}: {'; '.join(parts)}.",
        task=comparison.task,
        model=comparison.model,
        settings=(name,),
        metric=f"points of {first.utility_metric}",
        figure=kept.value,
        interval=(kept.low, kept.high),
        n=both[0][1].n,
        seeds=len(own),
        attack=own[0][1].attack.name,
        keys=tuple(record.key for record in [*(one for one, _ in own), *full]),
    )


def _mean(every: Sequence[Estimate]) -> str:
    ends = interval([one.value for one in every], every[0].low, every[0].high)
    return ranged(fmean(one.value for one in every), *ends)
