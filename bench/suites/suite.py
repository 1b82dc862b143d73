"""Suites: what to run, from a YAML file or a dict. All errors are reported together, with their locations."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    model_validator,
)

from leakboard.bench.contracts import (
    PRECISIONS,
    LeakboardError,
    Plant,
    Recording,
    TrainSettings,
    UtilityMetric,
    did_you_mean,
    place,
    plain,
)
from leakboard.bench.methods import Attack
from leakboard.bench.suites.methods import ALL, expand_all, parse_methods, unfold
from leakboard.bench.suites.reader import SuiteReader, format_value
from leakboard.bench.suites.row import SuiteRow, as_row
from leakboard.bench.tasks import HELD_OUT, ON_PUBLIC, SplitFiles, UserTask, known_task

SUITES = Path(__file__).parent
T = TypeVar("T")


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError("must be a list with at least one entry, got []")
    seen = set[Any]()
    for name in (getattr(value, "name", value) for value in values):
        if name in seen:
            raise ValueError(f"{name!r} is listed twice")
        seen.add(name)
    return values


def _unfold(value: Any) -> Any:
    return unfold(value) if isinstance(value, Mapping) else _as_list(value)


def _split_plants(value: Any) -> Any:
    """Split canaries by number of copies, since each model gets canaries of one multiplicity only."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        return _as_list(value)
    if not value.get("canaries"):
        return [value]
    copies = tuple(_as_list(value.get("copies", Plant.model_fields["copies"].default)))
    if not all(isinstance(number, int) for number in copies):
        return [value]  # validation reports the error
    _distinct(copies)
    return [{**value, "copies": number} for number in copies]


def _kind(task: Any) -> str:
    return "own" if isinstance(task, dict | UserTask) else "named"


OneOrMore = Annotated[tuple[T, ...], BeforeValidator(_as_list), AfterValidator(_distinct)]
Grid = Annotated[tuple[T, ...], BeforeValidator(_unfold), AfterValidator(_distinct)]
AnyTask = Annotated[
    Annotated[str, AfterValidator(known_task), Tag("named")] | Annotated[UserTask, Tag("own")],
    Discriminator(_kind),
]
Count = Annotated[int, Field(ge=0, lt=2**63)]
MOST_CELLS = 5_000
"""Maximum number of cells of a suite; planning a thousand takes a second."""
SELECTED_ON = (HELD_OUT, ON_PUBLIC, "train")
"""Splits with examples on which `leakboard tune` selects settings."""
NOT_REPORTED = (
    "what was selected on must not be reported. Write `evaluate: test`, or `evaluate: dev` where a task has "
    "no labelled test"
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


class Printed(_Part):
    """Published numbers that the suite reproduces."""

    paper: str
    artefact: OneOrMore[str]
    """Tables, figures or sections, as `leaderboards/tables/printed.csv` names them."""
    model: str | None = None
    """Restrict to the numbers of this model."""
    task: dict[str, str] = {}
    """Names of tasks in the paper, if they differ from those of the suite."""
    note: str = ""
    """Other differences between its numbers and ours; printed in figures."""


PARTS: dict[str | int, type[BaseModel]] = {
    "train": TrainSettings,
    "record": Recording,
    "plant": Plant,
    "paper": Printed,
    "task": UserTask,
    "path": SplitFiles,
}
"""What stands under a key, to name the keys that it could have."""


class Suite(_Part):
    """What is run: every task × model × seed × training × cut × defense, under all attacks that apply.

    In a file, `attacks: all` stands for all but the costly ones, which train a model of their own
    on each cell; those are named: `attacks: [eia-nn, eia-map]`.

    Examples:
        >>> import leakboard as lb
        >>> suite = lb.published("sap-sst2").suite
        >>> suite.override(seeds=[0, 1], limit=1000).seeds
        (0, 1)
    """

    name: str = Field(min_length=1, max_length=100, pattern=r"^\w[\w .+-]*$")
    """Letters, digits, spaces and '_.+-'; the records stand in a folder of this name."""
    description: str = ""
    task: OneOrMore[AnyTask]
    model: OneOrMore[str] = ("minilm",)
    cut: OneOrMore[Count] = (0,)
    """Layers of the model that stay with the customer."""
    seeds: OneOrMore[Count] = (0,)
    limit: int | None = Field(None, ge=1, lt=2**63)
    """At most so many examples of each split."""
    evaluate: str = "dev"
    """The split on which utility is measured."""
    utility: UtilityMetric | None = None
    """Metric of utility for tasks whose objective has it: accuracy, macro-F1 or MCC of classes, Spearman or Pearson of
    numbers, micro-F1 or macro-F1 of several labels; all are measured. By default that of the task, else the first, or
    macro-F1 for users' data whose rarest class has less than a tenth of the evaluated texts."""
    train: Grid[TrainSettings] = (TrainSettings.model_validate({}),)
    """How is fine-tuned what has no settings of its own; lists make a grid: `{precision: [float32, bf16]}`."""
    record: Recording = Recording.model_validate({})
    plant: Annotated[tuple[Plant, ...], BeforeValidator(_split_plants)] = ()
    """What is planted in the training texts; attacks on the memory of a released model need it. Canaries
    are of one multiplicity in each model: `copies: [0, 10]` makes two models."""
    defenses: tuple[Annotated[SuiteRow, BeforeValidator(as_row)], ...]
    """Each with the settings of training that belong to it; where it has none, `train` holds."""
    attacks: tuple[Attack, ...]
    paper: Printed | None = None
    _base: Path = PrivateAttr(default=Path())

    def __init__(self, **given: object) -> None:
        """A suite from the keys of a file, which may hold names of methods as in a dict.

        Raises:
            LeakboardError: its errors, one per line.
        """
        try:
            super().__init__(**given)
        except ValidationError:
            read = load_suite(given)
            super().__init__(**{key: getattr(read, key) for key in read.model_fields_set})

    # So validation, which reports errors itself, does not call it.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="after")
    def _bounded(self) -> Suite:
        axes = (
            self.task,
            self.model,
            self.cut,
            self.seeds,
            self.train,
            self.plant or [None],
            self.defenses,
        )
        cells = prod(map(len, axes))
        if cells > MOST_CELLS:
            raise ValueError(f"is {cells:,} cells; the limit is {MOST_CELLS:,}. Split the suite")
        return self

    @model_validator(mode="after")
    def _reports_on_others(self) -> Suite:
        row = next((row for row in self.defenses if row.trials), None)
        if row is not None and self.evaluate in SELECTED_ON:
            raise ValueError(
                f"reports on '{self.evaluate}', but the row '{row}' was chosen by its `trials` on a part of the "
                f"training split: {NOT_REPORTED}"
            )
        return self

    @property
    def base(self) -> Path:
        """Folder to which relative paths in the suite refer; it does not affect results."""
        return self._base

    def apart(self, settings: TrainSettings, plant: Plant | None = None) -> dict[str, object]:
        """Training settings, and copies of canaries, in which one of the suite's settings differs from the others."""
        fields = {
            name: getattr(settings, name)
            for name in TrainSettings.model_fields
            if len({getattr(each, name) for each in self.train}) > 1
        }
        return fields | ({"copies": plant.copies[0]} if plant and len(self.plant) > 1 else {})

    def override(
        self,
        *,
        task: object = None,
        model: object = None,
        seeds: object = None,
        limit: int | None = None,
        evaluate: str | None = None,
        precision: str | None = None,
    ) -> Suite:
        """This suite with some values replaced, each by one value or a list; None keeps a value.

        Args:
            precision: of training, except in rows that set their own.

        Raises:
            LeakboardError: a value is not valid in a suite.
        """
        given = {"task": task, "model": model, "seeds": seeds, "limit": limit}
        given |= {"evaluate": evaluate}
        given = {key: value for key, value in given.items() if value is not None}
        if precision is not None:
            if precision not in PRECISIONS:
                raise LeakboardError(
                    f"precision: expected {' or '.join(PRECISIONS)}, got '{precision}'"
                )
            trained = [each.model_copy(update={"precision": precision}) for each in self.train]
            given["train"] = tuple(t for i, t in enumerate(trained) if t not in trained[:i])
        page = SuiteReader(lines={(key,): 0 for key in given}, parts=PARTS)
        suite = page.built(Suite, {key: getattr(self, key) for key in Suite.model_fields} | given)
        suite._base = self._base
        return suite


def suite_names() -> list[str]:
    """The built-in suites, in alphabetical order."""
    return sorted(path.stem for path in SUITES.glob("*.yaml"))


def load_suite(given: str | Path | Mapping[str, object] | Suite) -> Suite:
    """Load a suite by the name of a built-in one, by the path of its file, or from a dict.

    A path ends in .yaml or .yml. A dict has the keys of a file; its defenses and attacks may also be classes and
    configured methods. Relative paths in a dict refer to the current folder.

    Raises:
        LeakboardError: no such suite, or its errors, one per line.
    """
    if isinstance(given, Suite):
        return given
    if isinstance(given, Mapping):
        page = SuiteReader("suite", parts=PARTS)
        return _build(page, page.taken(given, ()), Path())
    if not isinstance(given, str | Path):
        raise LeakboardError(
            "suite: expected the name of a suite, the path of a file, a dict or a leakboard.Suite, "
            f"got {format_value(given)}"
        )
    path = _find(str(given))
    page = SuiteReader(str(path), parts=PARTS, numbered=True)
    return _build(page, page.read(path), path.parent)


def _build(page: SuiteReader, given: dict[str, Any], base: Path) -> Suite:
    given["attacks"] = parse_methods(
        page, "attack", expand_all(_as_list(given.get("attacks", ALL))), base
    )
    if "defenses" in given:
        defenses = _as_list(given["defenses"])
        given["defenses"] = parse_methods(page, "defense", defenses, base)
        if not defenses:
            page.complain(("defenses",), "must be a list with at least one entry, got []")
    suite = page.built(Suite, given)
    suite._base = base
    return suite


def _find(name_or_path: str) -> Path:
    path = place(name_or_path, "suite")
    if path.suffix in (".yaml", ".yml"):
        if not path.exists():
            advice = did_you_mean(path.name, (p.name for p in path.parent.glob("*.y*ml")))
            if path.stem in suite_names():
                advice = f"The built-in suite is called '{path.stem}'."
            raise LeakboardError(f"{plain(path)}: no such file. {advice}")
        return path
    if name_or_path not in suite_names():
        if path.is_file():
            raise LeakboardError(f"{plain(path)}: not a suite. A suite file ends in .yaml")
        near = did_you_mean(name_or_path, suite_names(), ["the suites of `leakboard list suites`"])
        raise LeakboardError(
            f"unknown suite '{plain(name_or_path)}'. {near} Give a file of your own by its path, which ends in .yaml."
        )
    return SUITES / f"{name_or_path}.yaml"
