"""Successive halving (Jamieson & Talwalkar 2016) over seeds: the better half of trials gets one more seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from rich.console import Console

from leakboard.bench.contracts import (
    LeakboardError,
    Record,
    Recording,
    TrainSettings,
    TunedOn,
)
from leakboard.bench.records import Store
from leakboard.bench.running import Engine, make_plan, reporter_on
from leakboard.bench.suites import NOT_REPORTED, SELECTED_ON, Suite, SuiteRow
from leakboard.bench.tasks import HELD_OUT, ON_PUBLIC, no_public_training
from leakboard.bench.tuning.trials import Trial, affordable, best, trials_of

Selection = Literal["auto", "public", "private"]
"""Texts on which settings are selected; `auto`: public ones for rows with a formal guarantee."""
MOST = 4.0
"""Budget of a row, as a multiple of the cost of its training in the suite. Trials run no attacks, so tuning takes
at most this multiple of the suite's time."""


@dataclass(frozen=True)
class Choice:
    """The chosen settings of a row.

    Attributes:
        trials: all trials, the chosen one first, the others by utility on the held-out examples.
        tuned_on: texts on which they were trained and compared.
    """

    row: SuiteRow
    trials: Sequence[Trial]
    tuned_on: TunedOn = "private"

    @property
    def chosen(self) -> Trial:
        """The best trial."""
        return self.trials[0]

    @property
    def tuned(self) -> SuiteRow:
        """The row with the chosen settings, in addition to those that it had set."""
        every = [trial.settings.model_dump() for trial in self.trials]
        own = {
            name: value
            for name, value in every[0].items()
            if name in self.row.own or len({settings[name] for settings in every}) > 1
        }
        train = TrainSettings.model_validate(own) if own else None
        keys = dict.fromkeys(key for trial in self.trials for key in trial.keys)
        return SuiteRow(
            defense=self.row.defense, train=train, trials=tuple(keys), tuned_on=self.tuned_on
        )


@dataclass(frozen=True)
class Tuning:
    """A tuned suite.

    Attributes:
        suite: the suite with the chosen settings and the keys of the trials in each row.
        choices: of the rows that were tuned.
        records: of all trials.
        notes: messages for the user.

    Examples:
        >>> import leakboard as lb
        >>> tuning = lb.tune("smoke", limit=100)  # doctest: +SKIP
        >>> r = lb.run(tuning.suite)  # doctest: +SKIP
    """

    suite: Suite
    choices: Sequence[Choice]
    records: Sequence[Record]
    notes: Sequence[str] = field(default=())


def tune(
    suite: Suite,
    folder: Path,
    console: Console | None = None,
    data: Path | None = None,
    device: str = "cpu",
    engine: Engine | None = None,
    on: Selection = "auto",
) -> Tuning:
    """Choose the training settings of each row on a held-out fifth of the training split, or of public texts.

    Every row has the same budget in passes over the data, at most `MOST` times the cost of the suite's training.
    All trials run with the first seed; then the better half gets one more seed, until the budget or the seeds are
    used up. The last trial continues alone, for a precise estimate by which settings of several defenses are
    matched. A trial is a cell that is evaluated on `held-out`, without attacks or planted texts. An interrupted
    tuning continues where it stopped.

    A formal guarantee covers one training on private examples, and not the trials. So rows with one are tuned on public
    labelled texts of the task, as many as there are private ones.

    Args:
        on: `public` or `private` for all rows; `auto`: public for rows with a guarantee, where the task has such texts.
        folder: for the records of the trials.
        console: for progress.
        data: folder of datasets.

    Raises:
        LeakboardError: the suite reports on examples used for selection, or nothing in it can be tuned.
    """
    if suite.evaluate in SELECTED_ON:
        raise LeakboardError(
            f"suite '{suite.name}' reports on '{suite.evaluate}', and tune selects on a part of the training "
            f"split: {NOT_REPORTED}"
        )
    if on not in get_args(Selection):
        raise LeakboardError(f"on: expected auto, public or private, got '{on}'")
    plan, base = make_plan(suite, data, device, twins=False), suite.train[0]
    notes = [
        f"{task.name} has a labelled test, and the suite reports on {suite.evaluate}"
        for task in plan.tasks.values()
        if suite.evaluate != "test" and "test" in task.splits
    ]
    n = max(min(suite.limit or math.inf, len(t.splits["train"])) for t in plan.tasks.values())
    classes = min(task.outputs for task in plan.tasks.values())
    lacking = [reason for task in plan.tasks.values() if (reason := no_public_training(task))]
    if on == "public" and lacking:
        raise LeakboardError(f"suite '{suite.name}' cannot be tuned on public texts: {lacking[0]}")

    def place_of(row: SuiteRow) -> TunedOn:
        if on == "auto":
            return "public" if row.defense.has_claim and not lacking else "private"
        return "public" if on == "public" else "private"

    if on == "auto" and lacking and any(row.defense.has_claim for row in suite.defenses):
        notes.append(f"claims do not cover this tuning, which used private examples: {lacking[0]}")
    idle = {(p.defense, p.cell.train) for p in plan.cells if p.skip_reason}
    races = {
        place: _Race(
            trials_of(row, base, int(n), classes), MOST * len(suite.seeds) * row.over(base).epochs
        )
        for place, row in enumerate(suite.defenses)
        if (row.defense, row.over(base)) not in idle
    }
    races = {place: race for place, race in races.items() if race.alive}
    if not races:
        raise LeakboardError(
            f"suite '{suite.name}': nothing in it is trained, so there is nothing to tune"
        )
    seeds, number = _seeds(suite), 0
    while running := [trial for race in races.values() for trial in race.next(number)]:
        for texts in get_args(TunedOn):
            here = [trial for trial in running if place_of(trial.row) == texts]
            if not here:
                continue
            part = _round_suite(suite, here, seeds[number], base, texts)
            own = make_plan(part, data, device, twins=False)
            if console:
                told = f"round {number + 1}: {len(own.cells)} trials on {texts} texts"
                console.print(told, highlight=False)
            with reporter_on(console, len(own.cells)) as reporter:
                records = (engine or Engine()).run(own, Store(folder), reporter, data)
            for planned, record in zip(own.cells, records, strict=True):
                for trial in here:
                    if (planned.defense, planned.cell.train) == (trial.row.defense, trial.settings):
                        trial.records.append(record)
        number += 1
        if number == len(seeds):
            break
    choices = {
        place: Choice(suite.defenses[place], race.ended, place_of(suite.defenses[place]))
        for place, race in races.items()
    }
    rows = tuple(
        choices[place].tuned if place in choices else row
        for place, row in enumerate(suite.defenses)
    )
    trials = [trial for choice in choices.values() for trial in choice.trials]
    every = {record.key: record for trial in trials for record in trial.records}
    tuned = suite.model_copy(update={"defenses": rows})
    return Tuning(tuned, list(choices.values()), list(every.values()), notes)


class _Race:
    """Successive halving among the trials of one row.

    Attributes:
        alive: the remaining trials, best first.
    """

    def __init__(self, trials: Sequence[Trial], budget: float) -> None:
        self.left = budget
        self.alive = affordable(trials, budget)
        self.every = tuple(self.alive)

    def next(self, number: int) -> list[Trial]:
        """The trials to run with one more seed in a round; empty at the end."""
        if number:
            self.alive = best(self.alive)
            half = self.alive[: math.ceil(len(self.alive) / 2)]
            if sum(trial.cost for trial in half) > self.left:
                return []
            self.alive = half
        self.left -= sum(trial.cost for trial in self.alive)
        return self.alive

    @property
    def ended(self) -> list[Trial]:
        """All trials, the best first."""
        winner = best(self.alive)[0]
        return [winner, *(trial for trial in best(self.every) if trial is not winner)]


def _seeds(suite: Suite) -> list[int]:
    """Seeds of the trials: the suite's, and more if these are few."""
    return [*suite.seeds, *range(max(suite.seeds) + 1, max(suite.seeds) + 5)]


def _round_suite(
    suite: Suite, trials: Sequence[Trial], seed: int, base: TrainSettings, texts: TunedOn
) -> Suite:
    """The suite of one round of trials on private or public texts."""
    rows = [SuiteRow(defense=trial.row.defense, train=trial.settings) for trial in trials]
    small = Recording(examples=1, megabytes=1)
    changed: dict[str, Any] = {
        "name": f"{suite.name}-trials",
        "evaluate": HELD_OUT if texts == "private" else ON_PUBLIC,
        "seeds": (seed,),
    }
    changed |= {"train": (base,), "record": small, "plant": (), "paper": None}
    return suite.model_copy(update={**changed, "defenses": tuple(rows), "attacks": ()})
