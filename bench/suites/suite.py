"""Suites: a YAML file says what is run. All its mistakes are reported at once, with their lines.

`attacks: all` stands for every attack but those that declare themselves costly; such a one is
named explicitly, in a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
)

from bench.contracts import LeakboardError, Plant, Recording, TrainSettings, did_you_mean
from bench.methods import Attack, Defense, registry
from bench.suites.page import Loc, Page, shown
from bench.tasks import OwnTask, SplitFiles, known_task

SUITES = Path(__file__).parent
ALL = "all"
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError("must be a list with at least one entry, got []")
    names = [getattr(value, "name", value) for value in values]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{name!r} is listed twice")
    return values


def _kind(task: Any) -> str:
    return "own" if isinstance(task, dict | OwnTask) else "named"


OneOrMore = Annotated[tuple[T, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
AnyTask = Annotated[
    Annotated[str, AfterValidator(known_task), Tag("named")] | Annotated[OwnTask, Tag("own")],
    Discriminator(_kind),
]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", coerce_numbers_to_str=True, use_attribute_docstrings=True
    )


class Printed(_Part):
    """The published numbers to lay beside ours."""

    paper: str
    artefact: OneOrMore[str]
    """Tables, figures or sections, as `leaderboards/published.csv` names them."""
    model: str | None = None
    """Only the numbers of this model."""
    task: dict[str, str] = {}
    """What the paper calls a task of the suite, where the names differ."""
    note: str = ""
    """What else differs between its numbers and ours; figures print it."""


PARTS: dict[str | int, type[BaseModel]] = {
    "train": TrainSettings,
    "record": Recording,
    "plant": Plant,
    "paper": Printed,
    "task": OwnTask,
    "path": SplitFiles,
}
"""What stands under a key, to name the keys that it could have."""


class Suite(_Part):
    """What is run: every task × model × cut × seed × defense, under all attacks that apply.

    In a file, `attacks: all` stands for all but the costly ones, which train a model of their own
    on each cell; those are named: `attacks: [eia-nn, eia-map]`.
    """

    name: str = Field(min_length=1)
    description: str = ""
    task: OneOrMore[AnyTask]
    model: OneOrMore[str] = ("minilm",)
    cut: OneOrMore[Count] = (0,)
    """Layers of the model that stay with the customer."""
    seeds: OneOrMore[Count] = (0,)
    limit: int | None = Field(None, ge=1)
    """At most so many examples of each split."""
    evaluate: str = "dev"
    """The split on which utility is measured."""
    train: TrainSettings = TrainSettings.model_validate({})
    record: Recording = Recording.model_validate({})
    plant: Plant | None = None
    """What is planted in the training texts; attacks on the memory of a released model need it."""
    defenses: tuple[Defense, ...]
    attacks: tuple[Attack, ...]
    paper: Printed | None = None
    _base: Path = PrivateAttr(default=Path())

    @property
    def base(self) -> Path:
        """The folder of the file, where relative paths in it start; it decides no result."""
        return self._base

    def override(
        self,
        *,
        task: Any = None,
        model: Any = None,
        seeds: Any = None,
        limit: int | None = None,
    ) -> Suite:
        """This suite with some values replaced, each by one or a list; None keeps a value.

        Raises:
            LeakboardError: a value that a suite file could not hold either.
        """
        given = {"task": task, "model": model, "seeds": seeds, "limit": limit}
        given = {key: value for key, value in given.items() if value is not None}
        page = Page("", {(key,): 0 for key in given}, PARTS)
        suite = page.built(Suite, {key: getattr(self, key) for key in Suite.model_fields} | given)
        suite._base = self._base
        return suite


def suite_names() -> list[str]:
    """The built-in suites, in alphabetical order."""
    return sorted(path.stem for path in SUITES.glob("*.yaml"))


def load_suite(name_or_path: str) -> Suite:
    """A built-in suite by its name, or a suite file by its path, which ends in .yaml or .yml.

    Raises:
        LeakboardError: no such suite, or the file's mistakes, one on each line.
    """
    path = _find(name_or_path)
    page = Page(str(path), parts=PARTS)
    given = page.read(path)
    attacks = _with_all(_listed(given.get("attacks", ALL)))
    given["attacks"] = _methods(page, "attack", registry.attacks(), attacks)
    if "defenses" in given:
        defenses = _listed(given["defenses"])
        given["defenses"] = _methods(page, "defense", registry.defenses(), defenses)
        if not defenses:
            page.complain(("defenses",), "must be a list with at least one entry, got []")
    suite = page.built(Suite, given)
    suite._base = path.parent
    return suite


def methods_named(kind: Literal["attack", "defense"], words: Sequence[str]) -> tuple[Any, ...]:
    """Methods as the command line gives them, each written as in a suite: `sap`, `sap: {eta: 75}`.

    No words mean all attacks but the costly ones.

    Raises:
        LeakboardError: not YAML, or mistakes as in a suite.
    """
    page, entries = Page(""), []
    for i, word in enumerate(words):
        try:
            node = yaml.compose(word, Loader=yaml.BaseLoader)
        except yaml.YAMLError as e:
            raise LeakboardError(
                f"--{kind} '{word}': expected a name, or 'name: {{parameter: value}}'"
            ) from e
        entries.append(page.plain(node, (f"{kind}s", i)) if node else None)
    known: Mapping[str, type[Any]] = registry.attacks() if kind == "attack" else registry.defenses()
    found = _methods(page, kind, known, entries or _cheap())
    page.approve()
    return found


def _with_all(entries: Sequence[Any]) -> Sequence[Any]:
    """The word `all` as what it means: every attack but those beside it, and but the costly ones.

    The other entries keep their places, by which mistakes are found in the file.
    """
    if ALL not in entries:
        return entries
    named = {name for entry in entries for name in (entry if isinstance(entry, dict) else [entry])}
    meant = [name for name in _cheap() if name not in named]
    at = entries.index(ALL)
    return [*entries[:at], *meant[:1], *entries[at + 1 :], *meant[1:]]


def _cheap() -> list[str]:
    """Every attack but the costly ones, which a suite must name."""
    return [name for name, attack in registry.attacks().items() if not attack.costly]


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        if not path.exists():
            near = [str(p) for p in path.parent.glob("*.y*ml")]
            advice = did_you_mean(name_or_path, near)
            if path.stem in suite_names():
                advice = f"The built-in suite is called '{path.stem}'."
            raise LeakboardError(f"{path}: no such file. {advice}")
        return path
    if name_or_path not in suite_names():
        raise LeakboardError(
            f"unknown suite '{name_or_path}'. {did_you_mean(name_or_path, suite_names())} "
            "A file of your own is given by its path, which ends in .yaml."
        )
    return SUITES / f"{name_or_path}.yaml"


def _methods(
    page: Page, kind: str, known: Mapping[str, type[M]], entries: Sequence[Any]
) -> tuple[M, ...]:
    """The methods of a list, grids unfolded; mistakes are noted on the page."""
    found: list[M] = []
    for i, entry in enumerate(entries):
        loc: Loc = (f"{kind}s", i)
        match entry:
            case str(name):
                params: Any = None
            case dict() if len(entry) == 1:
                [(name, params)] = entry.items()
            case None:
                word = "For training without protection write the word none."
                advice = word if kind == "defense" else "Remove the entry."
                page.complain(loc, f"expected the name of a {kind}, got null. {advice}")
                continue
            case _:
                page.complain(
                    loc,
                    f"expected one {kind}, got {shown(entry)}. Write a name, or "
                    "name: {parameter: value}, with parameters indented deeper than the name.",
                )
                continue
        if name not in known:
            page.complain(loc, f"unknown {kind} '{name}'. {did_you_mean(name, known)}")
            continue
        for method in _grid(page, known[name], params, (*loc, name)):
            if method in found:
                page.complain(loc, f"'{method}' is listed twice")
            found.append(method)
    return tuple(found)


def _grid(page: Page, cls: type[M], params: Any, loc: Loc) -> Iterator[M]:
    """One method for each combination of the listed values, in the written order."""
    params = {} if params is None else params
    if not isinstance(params, dict):
        page.complain(loc, f"expected parameters such as {{name: value}}, got {shown(params)}")
        return
    axes = {key: value if isinstance(value, list) else [value] for key, value in params.items()}
    for key, values in axes.items():
        if not values:
            page.complain((*loc, key), "expected at least one value, got an empty list")
    for places in product(*(range(len(values)) for values in axes.values())):
        chosen = dict(zip(axes, places, strict=True))
        method = page.build(cls, {key: axes[key][i] for key, i in chosen.items()}, loc, chosen)
        if method is None:
            continue
        for key, i in chosen.items():
            value = getattr(method, key)
            if isinstance(value, float) and not isfinite(value):
                page.complain((*loc, key, i), f"must be a finite number, got {value}")
        yield method
