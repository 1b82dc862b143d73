"""Pairs of rows that differ in what a comparison is about and agree in the rest."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from leakboard.bench.methods import registry
from leakboard.leaderboards.tables.leakage import Candidate
from leakboard.leaderboards.tables.results import Result, ResultsTable

GIVEN = "given"
"""As the value of a parameter: any but none."""
Pair = tuple[Result, Result]


@dataclass(frozen=True)
class Rows:
    """A selection of rows. A tuple holds alternatives; what is not named is free.

    Attributes:
        params: of the defense; one that is younger than a record has its default there.
        train: settings of the training, such as `precision`.
    """

    defense: str | tuple[str, ...] | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    cut: int | tuple[int, ...] | None = None
    undefended: bool | None = None
    task: str | tuple[str, ...] | None = None
    train: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, row: Result) -> bool:
        setting = row.setting
        train = setting.first.cell.train
        return (
            (self.defense is None or _admits(self.defense, row.defense))
            and (self.cut is None or _admits(self.cut, setting.cut))
            and self.undefended in (None, setting.undefended)
            and (self.task is None or _admits(self.task, setting.task))
            and all(_admits(wanted, parameter(row, n)) for n, wanted in self.params.items())
            and all(_admits(wanted, getattr(train, n)) for n, wanted in self.train.items())
        )


def _admits(wanted: object, value: object) -> bool:
    if isinstance(wanted, tuple):
        return any(_admits(one, value) for one in wanted)
    return value is not None if wanted == GIVEN else wanted == value


def _is_fixed(wanted: object) -> bool:
    return wanted != GIVEN and not isinstance(wanted, tuple)


def parameter(row: Result, name: str) -> Any:
    """A parameter of the row's defense, or its default today where the record is older than it."""
    return all_parameters(row).get(name)


def all_parameters(row: Result) -> Mapping[str, Any]:
    """All parameters of the row's defense, those that are younger than the record with their default."""
    return _parameters(row.defense, row.setting.params)


@lru_cache(maxsize=4096)
def _parameters(defense: str, params: str) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(params)
    return {name: f.default for name, f in _fields(defense).items()} | given


def _fields(defense: str) -> Mapping[str, Any]:
    known = registry.now(defense, registry.defenses())
    return known.model_fields if known else {}


def pairs(
    rows: Iterable[Result],
    is_a: Callable[[Result], bool],
    is_b: Callable[[Result], bool],
    place: Callable[[Result], Hashable],
) -> list[Pair]:
    """Each `a` with the `b` of its place that was trained alike, or with all of them where none was."""
    found = list(rows)
    others: dict[Hashable, list[Result]] = {}
    for row in filter(is_b, found):
        others.setdefault(place(row), []).append(row)
    made = []
    for a in filter(is_a, found):
        near = [b for b in others.get(place(a), ()) if b.setting is not a.setting]
        alike = [b for b in near if b.setting.first.cell.train == a.setting.first.cell.train]
        made += [(a, b) for b in alike or near]
    return made


def place_but(names: Collection[str], a: Rows, b: Rows) -> Callable[[Result], Hashable]:
    """A place that holds all that two selections share: group, goal, cut and parameters, but some names.

    Parameters that one of the selections fixes to one value are no part of it, nor those that one defense alone has.
    With `precision` among the names, rows of different groups share a place where they differ in it alone.
    """
    fixed = [n for one in (a, b) for n, wanted in one.params.items() if _is_fixed(wanted)]
    owner_is_shared = a.defense == b.defense
    owners = [d for one in (a, b) for d in _tuple(one.defense)]
    common = set.intersection(*(set(_fields(name)) for name in owners)) - {*names, *fixed}
    cut_is_free = "cut" in names or isinstance(a.cut, int) or isinstance(b.cut, int)

    def place(row: Result) -> Hashable:
        setting, cell = row.setting, row.setting.first.cell
        group = setting.group
        if "precision" in names:
            train = cell.train.model_copy(update={"precision": "float32"})
            group = cell.model_copy(update={"seed": 0, "train": train}).key
        params = [repr(parameter(row, name)) for name in sorted(common)]
        where = setting.task, setting.model, row.goal, row.attribute
        params += [row.defense] if owner_is_shared else []
        return (group, *where, None if cut_is_free else setting.cut, *params)

    return place


def place_by(names: Sequence[str], cut: bool) -> Callable[[Result], Hashable]:
    """A place that holds group, goal and the named parameters, and the cut where asked."""

    def place(row: Result) -> Hashable:
        params = [repr(parameter(row, name)) for name in names if name != "cut"]
        where = row.setting.group, row.goal, row.attribute
        return (*where, row.setting.cut if cut or "cut" in names else None, *params)

    return place


def one_per_setting(rows: Iterable[Result]) -> list[Result]:
    """The first row of each setting, for comparisons of utility, which is the same for every goal."""
    return list({id(row.setting): row for row in reversed(list(rows))}.values())[::-1]


@dataclass(frozen=True)
class Reader:
    """Attacks that count, by name, by the channel they read and by parameters; empty means all."""

    names: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)

    def counts(self, candidate: Candidate) -> bool:
        name, given, channel, _ = candidate
        return (
            (not self.names or name in self.names)
            and (not self.channels or channel in self.channels)
            and (not self.params or self.params.items() <= dict(literal_eval(given)).items())
        )


ALL = Reader()


class Tables:
    """A results table, and the same under some attacks alone, each computed once."""

    def __init__(self, table: ResultsTable) -> None:
        self.whole = table
        self._under: dict[str, ResultsTable] = {}

    def under(self, reader: Reader) -> ResultsTable:
        if reader == ALL:
            return self.whole
        name = repr(reader)
        if name not in self._under:
            self._under[name] = self.whole.under(reader.counts)
        return self._under[name]


def _tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value or "",)
