"""Trials of a row of a suite, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from leakboard.bench.contracts import Record, TrainSettings
from leakboard.bench.suites import SuiteRow
from leakboard.bench.tasks import SHARE

HEAD = 0.5
"""Cost of training a head alone, in passes over the training split: one forward pass for its features."""
FIRST = 0.6
"""Share of the budget for the first round."""


@dataclass
class Trial:
    """A row with one choice of training settings, and the records of the seeds that were run."""

    row: SuiteRow
    settings: TrainSettings
    records: list[Record] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Cost of one seed, in passes over the training split."""
        head_only = self.settings.tune == "head" or self.row.defense.head_only
        return HEAD if head_only else self.settings.epochs * (1 - SHARE)

    @property
    def utility(self) -> float:
        """Mean utility over its records; failed and diverged runs count as 0."""
        found = [r.utility.value if r.utility else 0.0 for r in self.records]
        return fmean(found) if found else 0.0

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(record.key for record in self.records)


def trials_of(row: SuiteRow, base: TrainSettings, n: int, classes: int) -> list[Trial]:
    """All trials that the defense proposes, the suite's settings first. Settings of the row itself are kept.

    Args:
        base: the suite's settings of training.
        n: training examples.
        classes: 0 for language modelling.
    """
    row_train = row.over(base)
    tried = [{}, *row.defense.tried(row_train, n, classes)]
    if len(tried) == 1:
        return []
    fitting = (
        each
        for each in tried
        if each.get("tune", row_train.tune) == row.own.get("tune", each.get("tune", row_train.tune))
    )
    every = (row_train.model_copy(update={**each, **row.own}) for each in fitting)
    return [Trial(row, settings) for settings in dict.fromkeys(every)]


def affordable(trials: Sequence[Trial], budget: float) -> list[Trial]:
    """The trials of the first round: in order, as long as they fit into its share of the budget."""
    found, spent = list(trials[:1]), sum(trial.cost for trial in trials[:1])
    for trial in trials[1:]:
        if spent + trial.cost <= FIRST * budget:
            found.append(trial)
            spent += trial.cost
    return found


def best(trials: Iterable[Trial]) -> list[Trial]:
    """Trials by decreasing utility; ties keep their order."""
    return sorted(trials, key=lambda trial: -trial.utility)
