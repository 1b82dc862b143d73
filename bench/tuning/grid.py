"""A grid search, with the same number of trials for every row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from rich.console import Console

from leakboard.bench.backbones import TRAINED_ON
from leakboard.bench.contracts import (
    FINAL,
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
from leakboard.bench.tuning.trials import Trial, best, middle_strengths, trials_of

Selection = Literal["auto", "public", "private"]
"""Texts on which settings are selected; `auto`: public ones for rows with a formal guarantee."""
SEEDS = 2
"""Seeds of each trial, above those of the suite: what is chosen is reported on other seeds."""


@dataclass(frozen=True)
class Choice:
    """The chosen settings of a row.

    Attributes:
        trials: all trials, the chosen one first, the others by utility on the held-out examples.
        tuned_on: texts on which they were trained and compared.
        alike: whether they are of another strength of the defense, whose choice this row shares.
    """

    row: SuiteRow
    trials: Sequence[Trial]
    tuned_on: TunedOn = "private"
    alike: bool = False

    @property
    def chosen(self) -> Trial:
        """The best trial."""
        return self.trials[0]

    def tried(self, name: str) -> set[Any]:
        """The values of a setting in all trials."""
        return {getattr(trial.settings, name) for trial in self.trials}

    @property
    def is_at_edge(self) -> bool:
        """True if no higher learning rate, or no longer training, was tried than the chosen one."""
        return any(
            len(tried := self.tried(name)) > 1 and getattr(self.chosen.settings, name) == max(tried)
            for name in ("learning_rate", "epochs")
        )

    @property
    def tuned(self) -> SuiteRow:
        """The row with the chosen settings, in addition to those that it had set."""
        own = {
            name: value
            for name, value in self.chosen.settings.model_dump().items()
            if name in self.row.own or len(self.tried(name)) > 1
        }
        train = TrainSettings.model_validate(own) if own else None
        keys = dict.fromkeys(key for trial in self.trials for key in trial.keys)
        return SuiteRow(
            defense=self.chosen.row.defense,
            train=train,
            trials=tuple(keys),
            tuned_on=self.tuned_on,
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
    one_strength: bool = False,
) -> Tuning:
    """Choose the training settings of each row on a held-out fifth of the training split, or of public texts.

    Every row has the same number of trials, `TRIALS` settings with `SEEDS` seeds each, or fewer if it sets some of them
    itself. The best mean is chosen. A trial is a cell that is evaluated on `held-out`, without attacks or planted texts.
    An interrupted tuning continues where it stopped.

    A formal guarantee covers one training on private examples, and not the trials. So rows with one are tuned on public
    labelled texts of the task, as many as there are private ones.

    Args:
        on: `public` or `private` for all rows; `auto`: public for rows with a guarantee, where the task has such texts
            that the model was not trained on.
        one_strength: tune the middle strength of each defense, and train the others alike.
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
    lacking += [
        f"model '{model}' was trained on the public texts of task '{task.name}'"
        for model in suite.model
        for task in plan.tasks.values()
        if task.name in TRAINED_ON.get(model, ())
    ]
    if on == "public" and lacking:
        raise LeakboardError(f"suite '{suite.name}' cannot be tuned on public texts: {lacking[0]}")

    def place_of(row: SuiteRow) -> TunedOn:
        if on == "auto":
            return "public" if row.defense.has_claim and not lacking else "private"
        return "public" if on == "public" else "private"

    if on == "auto" and lacking and any(row.defense.has_claim for row in suite.defenses):
        notes.append(f"claims do not cover this tuning, which used private examples: {lacking[0]}")
    deciding = middle_strengths(suite.defenses) if one_strength else range(len(suite.defenses))
    idle = {(p.defense, p.cell.train) for p in plan.cells if p.skip_reason}
    rows = {
        place: trials
        for place, row in enumerate(suite.defenses)
        if place in deciding
        and (row.defense, row.over(base)) not in idle
        and (trials := trials_of(row, base, int(n), classes))
    }
    if not rows:
        raise LeakboardError(
            f"suite '{suite.name}': nothing in it is trained, so there is nothing to tune"
        )
    for texts in get_args(TunedOn):
        here = [t for trials in rows.values() for t in trials if place_of(t.row) == texts]
        if not here:
            continue
        own = make_plan(_trials_suite(suite, here, base, texts), data, device, twins=False)
        if console:
            console.print(f"{len(own.cells)} trials on {texts} texts", highlight=False)
        with reporter_on(console, len(own.cells)) as reporter:
            records = (engine or Engine()).run(own, Store(folder), reporter, data)
        if lost := [r for r in records if r.status not in FINAL]:
            notes.append(
                f"{len(lost)} of {len(records)} trials on {texts} texts were not trained and count as 0, so that other "
                f"settings may have been chosen for it: {lost[0].reason}. The same command tries them again"
            )
        for planned, record in zip(own.cells, records, strict=True):
            for trial in here:
                if (planned.defense, planned.cell.train) == (trial.row.defense, trial.settings):
                    trial.records.append(record)
    choices = {
        place: Choice(
            row,
            [trial.at(row, suite.defenses[lead]) for trial in best(rows[lead])],
            place_of(suite.defenses[lead]),
            alike=lead != place,
        )
        for place, (row, lead) in enumerate(zip(suite.defenses, deciding, strict=True))
        if lead in rows
    }
    if edges := [str(c.row) for c in choices.values() if c.is_at_edge and not c.alike]:
        notes.append(
            "the highest learning rate or the most epochs that were tried are best for "
            f"{', '.join(edges)}: with more of them in the suite's `train`, tune would look further"
        )
    tuned_rows = tuple(
        choices[place].tuned if place in choices else row
        for place, row in enumerate(suite.defenses)
    )
    trials = [trial for choice in choices.values() for trial in choice.trials]
    every = {record.key: record for trial in trials for record in trial.records}
    tuned = suite.model_copy(update={"defenses": tuned_rows})
    return Tuning(tuned, list(choices.values()), list(every.values()), notes)


def _trials_suite(
    suite: Suite, trials: Sequence[Trial], base: TrainSettings, texts: TunedOn
) -> Suite:
    """The suite of the trials on private or public texts."""
    rows = [SuiteRow(defense=trial.row.defense, train=trial.settings) for trial in trials]
    small, first = Recording(examples=1, megabytes=1), max(suite.seeds) + 1
    changed: dict[str, Any] = {
        "name": f"{suite.name}-trials",
        "evaluate": HELD_OUT if texts == "private" else ON_PUBLIC,
        "seeds": tuple(range(first, first + SEEDS)),
    }
    changed |= {"train": (base,), "record": small, "plant": (), "paper": None}
    return suite.model_copy(update={**changed, "defenses": tuple(rows), "attacks": ()})
