"""What may be tried for a row of a suite, and what a trial costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from leakboard.bench.contracts import Record, TrainSettings
from leakboard.bench.suites import SuiteRow
from leakboard.bench.tasks import SHARE

HEAD = 0.5
"""What a head alone costs, in passes over the training split: its features are computed once, and forward."""
FIRST = 0.6
"""Of the budget, what the first round may take; the rest tells the best ones apart."""


@dataclass
class Trial:
    """One row trained in one way, with as many seeds as it has come to."""

    row: SuiteRow
    settings: TrainSettings
    records: list[Record] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Of one seed, in passes over the whole training split."""
        return HEAD if self.settings.tune == "head" else self.settings.epochs * (1 - SHARE)

    @property
    def utility(self) -> float:
        """Mean over its records; one that failed or diverged is worth nothing."""
        found = [r.utility.value if r.utility else 0.0 for r in self.records]
        return fmean(found) if found else 0.0

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(record.key for record in self.records)


def trials_of(row: SuiteRow, base: TrainSettings, n: int, classes: int) -> list[Trial]:
    """All that its defense would try, the suite's settings first; what the row sets itself stays.

    Args:
        base: the suite's settings of training.
        n: training examples.
        classes: 0 for language modelling.
    """
    here = row.over(base)
    tried = [{}, *row.defense.tried(here, n, classes)]
    if len(tried) == 1:
        return []
    fitting = (
        each
        for each in tried
        if each.get("tune", here.tune) == row.own.get("tune", each.get("tune", here.tune))
    )
    every = (here.model_copy(update={**each, **row.own}) for each in fitting)
    return [Trial(row, settings) for settings in dict.fromkeys(every)]


def affordable(trials: Sequence[Trial], budget: float) -> list[Trial]:
    """Those of the first round: in their order, while they fit into its share of the budget."""
    found, spent = list(trials[:1]), sum(trial.cost for trial in trials[:1])
    for trial in trials[1:]:
        if spent + trial.cost <= FIRST * budget:
            found.append(trial)
            spent += trial.cost
    return found


def best(trials: Iterable[Trial]) -> list[Trial]:
    """The best first; of equal ones that which was listed first."""
    return sorted(trials, key=lambda trial: -trial.utility)
