"""Lists of methods in suites: names, parameters with grids, classes, and configured methods.

A defense may have its own training settings next to its name, also as a grid. `attacks: all` means every attack
except the costly ones, which must be named explicitly.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from leakboard.bench.contracts import LeakboardError, TrainSettings, TunedOn, plain
from leakboard.bench.methods import Attack, Defense, Method, combine, registry
from leakboard.bench.suites.reader import Loc, SuiteReader, format_value
from leakboard.bench.suites.row import SuiteRow
from leakboard.bench.suites.yaml_nodes import parse_nodes

ALL = "all"
ROW_KEYS = ("train", "trials", "tuned_on")
"""Keys of a row next to the name of its defense."""
COMBINE = "combine"
"""Key of a list of defenses that protect one fine-tuning together."""
MOST_SETTINGS = 1000
"""Maximum number of settings of all methods in a list; the grid of a paper has hundreds."""
FILE = re.compile(r"\.py(:\w+)?$")
"""End of the name of a method in a Python file."""
Kind = Literal["attack", "defense"]
M = TypeVar("M", bound=Method)


def methods_named(kind: Kind, words: Sequence[Any]) -> tuple[Any, ...]:
    """Methods given on the command line, written as in a suite: `sap`, `sap: {eta: 75}`.

    From Python, all entries of a suite dict are accepted. An empty list means all attacks except the costly ones.

    Raises:
        LeakboardError: invalid YAML, or errors as in a suite.
    """
    page, entries = SuiteReader(), []
    for i, word in enumerate(words):
        where: Loc = (f"{kind}s", i)
        if not isinstance(word, str):
            entries.append(page.taken(word, where))
            continue
        try:
            node = parse_nodes(word, kind)
        except LeakboardError as e:
            raise LeakboardError(
                f"{kind} '{plain(word, 80)}': expected a name, or 'name: {{parameter: value}}'"
            ) from e
        entries.append(page.plain(node, where) if node else None)
    found = parse_methods(page, kind, entries or _cheap())
    page.approve()
    return tuple(row.defense for row in found) if kind == "defense" else found


def expand_all(entries: Sequence[Any]) -> Sequence[Any]:
    """Replace the entry `all` by every attack that is not listed and not costly.

    Other entries keep their positions, by which errors are located in the file.
    """
    words = [i for i, entry in enumerate(entries) if isinstance(entry, str) and entry == ALL]
    if not words:
        return entries
    named = {name for entry in entries for name in _names(entry)}
    meant = [name for name in _cheap() if name not in named]
    at = words[0]
    return [*entries[:at], *meant[:1], *entries[at + 1 :], *meant[1:]]


def _names(entry: Any) -> Sequence[Any]:
    if isinstance(entry, dict):
        return list(entry)
    return [entry if isinstance(entry, str) else getattr(entry, "name", None)]


def _cheap() -> list[str]:
    """Names of all attacks except the costly ones."""
    return [name for name, attack in registry.attacks().items() if not attack.costly]


def parse_methods(
    page: SuiteReader, kind: Kind, entries: Sequence[Any], folder: Path = Path()
) -> tuple[Any, ...]:
    """The attacks or rows of a list, with grids unfolded; errors are added to the reader.

    Args:
        folder: place to which relative paths of Python files refer.
    """
    known: dict[str, type[Method]]
    known = dict(registry.attacks() if kind == "attack" else registry.defenses())
    for name, place in _files(kind, entries).items():
        try:
            known[name] = registry.load_method(str(folder / Path(name).expanduser()))
        except LeakboardError as error:
            page.complain(place, str(error))
            return ()
    base: type[Method] = Attack if kind == "attack" else Defense
    found: list[Method] = []
    rows: list[SuiteRow] = []
    settings = set[tuple[type, str]]()
    for i, entry in enumerate(entries):
        loc: Loc = (f"{kind}s", i)
        if len(found) > MOST_SETTINGS:
            page.complain(
                loc[:1], f"must be at most {MOST_SETTINGS:,} settings, all grids unfolded"
            )
            break
        bare, row_settings = _split_row(kind, entry)
        trains = _trainings(page, row_settings.get("train"), (*loc, "train"))
        trials = _keys(page, row_settings.get("trials", ()), (*loc, "trials"))
        tuned_on = _tuned_on(page, row_settings.get("tuned_on"), (*loc, "tuned_on"))
        for method, train in product(_methods(page, kind, base, known, bare, loc), trains):
            own, other = type(method), known.get(method.name)
            twin = next((m for m in found if m.name == method.name and type(m) is not own), None)
            canonical = method.model_dump_json() + (train.model_dump_json() if train else "")
            if (other or own) is not own or twin is not None:
                # Records identify methods by name only.
                page.complain(loc, f"another {kind} is named '{method.name}', too; rename yours")
            elif (own, canonical) in settings:
                page.complain(loc, f"'{method}' is listed twice")
            else:
                settings.add((own, canonical))
            found.append(method)
            if isinstance(method, Defense):
                rows.append(SuiteRow(defense=method, train=train, trials=trials, tuned_on=tuned_on))
    return tuple(rows if kind == "defense" else found)


def _files(kind: Kind, entries: Sequence[Any]) -> dict[str, Loc]:
    """Python files among the names of a list, with their first position."""
    found: dict[str, Loc] = {}
    for i, entry in enumerate(entries):
        parts = entry.get(COMBINE) if isinstance(entry, dict) else None
        combined = parts if isinstance(parts, list | tuple) else ()
        for name in (name for one in (entry, *combined) for name in _names(one)):
            if isinstance(name, str) and FILE.search(name):
                found.setdefault(name, (f"{kind}s", i))
    return found


def _split_row(kind: Kind, entry: Any) -> tuple[Any, Mapping[str, Any]]:
    """Split an entry into the method and the other keys of a defense."""
    if isinstance(entry, SuiteRow):
        return entry.defense, {key: getattr(entry, key) for key in ROW_KEYS}
    if kind == "attack" or not isinstance(entry, dict) or len(entry) < 2:
        return entry, {}
    row_settings = {key: entry[key] for key in ROW_KEYS if key in entry}
    return {key: value for key, value in entry.items() if key not in row_settings}, row_settings


def _trainings(page: SuiteReader, given: Any, loc: Loc) -> list[TrainSettings | None]:
    """Training settings of a row, one for each combination of listed values."""
    if given is None or isinstance(given, TrainSettings):
        return [given]
    if not isinstance(given, Mapping) or not given:
        page.complain(loc, f"expected settings such as {{epochs: 30}}, got {format_value(given)}")
        return [None]
    try:
        every = unfold(given)
    except ValueError as error:
        page.complain(loc, str(error))
        return [None]
    return [page.build(TrainSettings, each, loc) for each in every]


def _keys(page: SuiteReader, given: Any, loc: Loc) -> tuple[str, ...]:
    keys = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(key, str) and re.fullmatch(r"[0-9a-f]{16}", key) for key in keys):
        page.complain(loc, f"expected keys of records, each in quotes, got {format_value(given)}")
        return ()
    return tuple(keys)


def _tuned_on(page: SuiteReader, given: Any, loc: Loc) -> TunedOn | None:
    if given in (None, *get_args(TunedOn)):
        return given  # type: ignore[no-any-return]
    page.complain(loc, f"expected private or public, got {format_value(given)}")
    return None


def unfold(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Unfold a grid: one dict for each combination of listed values, in order.

    Raises:
        ValueError: a key has no values, or there are too many combinations.
    """
    axes = {key: each if isinstance(each, list | tuple) else [each] for key, each in given.items()}
    size = prod(map(len, axes.values()))
    if size > MOST_SETTINGS:
        raise ValueError(f"is a grid of {size:,} settings; the limit is {MOST_SETTINGS:,}")
    if not size:
        raise ValueError("must have at least one value for each key, got []")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _methods(
    page: SuiteReader,
    kind: Kind,
    base: type[M],
    known: Mapping[str, type[M]],
    entry: Any,
    loc: Loc,
) -> Iterator[M]:
    """The methods of one entry of a list."""
    match entry:
        case Method():
            if isinstance(entry, base):
                yield entry
            else:
                page.complain(loc, f"expected one {kind}, got {entry!r}")
        case type():
            usable = hasattr(entry, "name") and not inspect.isabstract(entry)
            if issubclass(entry, base) and usable:
                yield from _grid(page, entry, None, loc)
            else:
                page.complain(
                    loc,
                    f"expected one {kind}, got the class {entry.__name__}, which is not a subclass of "
                    f"leakboard.{base.__name__} that sets `name` and leaves nothing abstract",
                )
        case str() | dict() if isinstance(entry, str) or len(entry) == 1:
            [(name, params)] = entry.items() if isinstance(entry, dict) else [(entry, None)]
            if name == COMBINE and kind == "defense":
                combined, params = _combined(page, known, params, (*loc, name))
                if combined is not None:  # else the reader has the error
                    yield from _grid(page, combined, params, (*loc, name))
                return
            cls = known.get(name) or registry.combination(str(name), known)
            if cls is not None and not issubclass(cls, base):
                page.complain(loc, f"expected one {kind}, but {name} holds {cls.__name__}")
            elif cls is not None:
                yield from _grid(page, cls, params, (*loc, name))
            else:
                page.complain(loc, f"unknown {kind} '{name}'. {registry.name_hint(name, known)}")
        case None:
            word = "For training without protection write the word none."
            advice = word if kind == "defense" else "Remove the entry."
            page.complain(loc, f"expected the name of a {kind}, got null. {advice}")
        case _:
            page.complain(
                loc,
                f"expected one {kind}, got {format_value(entry)}. Write a name, or "
                "name: {parameter: value}, with parameters indented deeper than the name.",
            )


def _combined(
    page: SuiteReader, known: Mapping[str, type[M]], entries: Any, loc: Loc
) -> tuple[Any, dict[str, Any]]:
    """The class of a combination and its parameters, from a list of names with the parameters of each part."""
    words = entries if isinstance(entries, list | tuple) else []
    parts = [
        one if isinstance(one, dict) else {one: {}} for one in words if isinstance(one, str | dict)
    ]
    given = {name: params or {} for part in parts for name, params in part.items()}
    unknown = next((name for name in given if name not in known), None)
    if len(given) < 2 or len(given) < len(words):
        page.complain(
            loc, "expected a list of at least two different defenses, such as [sap, frozen]"
        )
    elif unknown is not None:
        page.complain(
            loc, f"unknown defense '{unknown}'. {registry.name_hint(str(unknown), known)}"
        )
    elif not all(isinstance(params, dict) for params in given.values()):
        page.complain(loc, "expected parameters such as {name: value} for each part")
    else:
        named: dict[str, Any] = {name: known[name] for name in given}
        parts_of: dict[str, type[Defense]] = {
            name: cls for name, cls in named.items() if issubclass(cls, Defense)
        }
        if len(parts_of) < len(named):
            page.complain(loc, "expected defenses, got an attack")
            return None, {}
        cls = combine(*parts_of.values())
        own = dict(zip(cls.made_of, cls.names, strict=True))
        # An unknown parameter keeps its name, so that the error says it.
        merged = {
            own[parts_of[name]].get(p, p): value
            for name, params in given.items()
            for p, value in params.items()
        }
        return cls, merged
    return None, {}


def _grid(page: SuiteReader, cls: type[M], params: Any, loc: Loc) -> Iterator[M]:
    """One method for each combination of listed values, in order."""
    params = {} if params is None else params
    if not isinstance(params, dict):
        page.complain(
            loc, f"expected parameters such as {{name: value}}, got {format_value(params)}"
        )
        return
    axes = {key: value if isinstance(value, list) else [value] for key, value in params.items()}
    for key, values in axes.items():
        if not values:
            page.complain((*loc, key), "expected at least one value, got an empty list")
    size = prod(len(values) for values in axes.values())
    if size > MOST_SETTINGS:
        page.complain(loc, f"is a grid of {size:,} settings; the limit is {MOST_SETTINGS:,}")
        return
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
