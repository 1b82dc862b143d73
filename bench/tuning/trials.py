"""Trials of a row of a suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from leakboard.bench.contracts import Record, TrainSettings
from leakboard.bench.methods import Defense
from leakboard.bench.suites import SuiteRow

TRIALS = 8
"""Settings tried for each row, the suite's own among them."""


@dataclass
class Trial:
    """A row with one choice of training settings, and the records of the seeds that were run.

    The row's defense has the parameters that belong to this choice.
    """

    row: SuiteRow
    settings: TrainSettings
    records: list[Record] = field(default_factory=list)

    @property
    def utility(self) -> float:
        """Mean utility over its records; failed and diverged runs count as 0."""
        found = [r.utility.value if r.utility else 0.0 for r in self.records]
        return fmean(found) if found else 0.0

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(record.key for record in self.records)

    def at(self, row: SuiteRow, tuned: SuiteRow) -> Trial:
        """This trial, of the row `tuned`, for another strength of the same defense."""
        changed = _differences(tuned.defense, self.row.defense)
        defense = row.defense.model_copy(update=changed)
        return replace(self, row=row.model_copy(update={"defense": defense}))


def trials_of(row: SuiteRow, base: TrainSettings, n: int, classes: int) -> list[Trial]:
    """The suite's settings, and the first that the defense proposes. Settings of the row itself are kept.

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
    every = ((_defense(row, each), _training(row, row_train, each)) for each in fitting)
    return [
        Trial(row.model_copy(update={"defense": defense}), settings)
        for defense, settings in [*dict.fromkeys(every)][:TRIALS]
    ]


def _defense(row: SuiteRow, tried: Mapping[str, Any]) -> Defense:
    """The row's defense with the parameters that are tried and that the row does not set."""
    own = TrainSettings.model_fields.keys() | row.defense.model_fields_set
    return row.defense.model_copy(update={k: v for k, v in tried.items() if k not in own})


def _training(row: SuiteRow, train: TrainSettings, tried: Mapping[str, Any]) -> TrainSettings:
    """The settings of training that are tried, but for those of the row itself."""
    settings = {k: v for k, v in tried.items() if k in TrainSettings.model_fields}
    return train.model_copy(update=settings | row.own)


def best(trials: Iterable[Trial]) -> list[Trial]:
    """Trials by decreasing utility; ties keep their order."""
    return sorted(trials, key=lambda trial: -trial.utility)


def middle_strengths(rows: Sequence[SuiteRow]) -> list[int]:
    """[n] for each row the one whose trials decide for it: the middle one of its curve, or the first of two; protection on.

    A curve is neighbouring rows of one defense that differ in nothing but one parameter.
    """
    curves, varied = list[list[int]](), ""
    for place, row in enumerate(rows):
        name = _varied(rows[place - 1], row) if place else None
        if name and varied in ("", name):
            curves[-1].append(place)
            varied = name
        else:
            curves.append([place])
            varied = ""
    found = list[int]()
    for curve in curves:
        on = [place for place in curve if not rows[place].defense.undefended] or curve
        found += [on[(len(on) - 1) // 2]] * len(curve)
    return found


def _varied(one: SuiteRow, other: SuiteRow) -> str | None:
    """The parameter in which alone two rows of a defense differ; None if there is no such."""
    if (one.defense.name, one.own) != (other.defense.name, other.own):
        return None
    changed = [*_differences(one.defense, other.defense)]
    return changed[0] if len(changed) == 1 else None


def _differences(before: Defense, after: Defense) -> dict[str, Any]:
    """The parameters in which two configurations of a defense differ, with the values of the second."""
    return {
        name: value
        for name in type(after).model_fields
        if (value := getattr(after, name)) != getattr(before, name)
    }
