"""Suites: a YAML file says what is run. All its mistakes are reported at once, with their lines."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

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
    ValidationError,
)
from pydantic_core import ErrorDetails

from bench import registry
from bench.errors import LeakboardError, did_you_mean
from bench.record import Recording, TrainSettings
from bench.tasks.catalogue import listing
from bench.tasks.own import OwnTask, SplitFiles
from bench.types import Attack, Defense, Method

SUITES = Path(__file__).with_name("suites")
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Loc = tuple[str | int, ...]
"""The way to a value: keys of mappings and places in lists."""
DEEPEST = 10
"""Levels of nesting; a list that holds itself by an alias has no bottom."""
PLAIN_TAGS = [f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")]
EXPECTED = {
    "bool_parsing": "be true or false",
    "bool_type": "be true or false",
    "dict_type": "be a mapping",
    "float_parsing": "be a number",
    "float_type": "be a number",
    "int_from_float": "be a whole number",
    "int_parsing": "be a whole number",
    "int_type": "be a whole number",
    "model_type": "be a mapping",
    "path_type": "be a path",
    "string_too_short": "be a word",
    "string_type": "be text",
}
"""pydantic's kinds of errors in our words; its own words serve for the rest."""


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


def _listing_has(name: str) -> str:
    known = [task.name for task in listing()]
    if name not in known:
        raise ValueError(f"unknown task '{name}'. {did_you_mean(name, known)}")
    return name


def _kind(task: Any) -> str:
    return "own" if isinstance(task, dict | OwnTask) else "named"


OneOrMore = Annotated[tuple[T, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
AnyTask = Annotated[
    Annotated[str, AfterValidator(_listing_has), Tag("named")] | Annotated[OwnTask, Tag("own")],
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


PARTS: dict[str | int, type[BaseModel]] = {
    "train": TrainSettings,
    "record": Recording,
    "paper": Printed,
    "task": OwnTask,
    "path": SplitFiles,
}
"""What stands under a key, to name the keys that it could have."""


class Suite(_Part):
    """What is run: every task × model × cut × seed × defense, under all attacks that apply."""

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
        page = _Page("", {(key,): 0 for key in given})
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
    page = _Page(str(path))
    given = page.read(path)
    attacks = given.get("attacks", "all")
    attacks = list(registry.attacks()) if attacks == "all" else _listed(attacks)
    given["attacks"] = _methods(page, "attack", registry.attacks(), attacks)
    if "defenses" in given:
        defenses = _listed(given["defenses"])
        given["defenses"] = _methods(page, "defense", registry.defenses(), defenses)
        if not defenses:
            page.complain(("defenses",), "must be a list with at least one entry, got []")
    suite = page.built(Suite, given)
    suite._base = path.parent
    return suite


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
    page: _Page, kind: str, known: Mapping[str, type[M]], entries: Sequence[Any]
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
                    f"expected one {kind}, got {_shown(entry)}. Write a name, or "
                    "name: {parameter: value}, with parameters indented deeper than the name.",
                )
                continue
        if name not in known:
            page.complain(loc, f"unknown {kind} '{name}'. {did_you_mean(name, known)}")
            continue
        for method in _grid(page, known[name], params, (*loc, name)):
            if method in found:
                page.complain(loc, f"{name}({method}) is listed twice")
            found.append(method)
    return tuple(found)


def _grid(page: _Page, cls: type[M], params: Any, loc: Loc) -> Iterator[M]:
    """One method for each combination of the listed values, in the written order."""
    params = {} if params is None else params
    if not isinstance(params, dict):
        page.complain(loc, f"expected parameters such as {{name: value}}, got {_shown(params)}")
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


@dataclass
class _Page:
    """A suite file that is being read: where everything stands, and what is wrong with it."""

    file: str
    lines: dict[Loc, int] = field(default_factory=dict)
    mistakes: dict[tuple[int, str], None] = field(default_factory=dict)

    def complain(self, loc: Loc, what: str, line: int | None = None) -> None:
        at = self.known(loc)
        line = self.lines.get(at, 1) if line is None else line
        place = f"{self.file}:{line}: " if self.file else ""
        key = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in at).removeprefix(".")
        self.mistakes[line, f"{place}{key}: {what}" if key else f"{place}{what}"] = None

    def known(self, loc: Loc) -> Loc:
        """The part of a location that stands in the file: no union tags, no implied lists."""
        at: Loc = ()
        for step in loc:
            if (*at, step) in self.lines:
                at = (*at, step)
        return at

    def read(self, path: Path) -> dict[str, Any]:
        """The file as plain values.

        Raises:
            LeakboardError: it cannot be read, is not YAML, or is not a mapping.
        """
        try:
            text = path.read_bytes().decode("utf-8-sig")
            root = yaml.compose(text, Loader=yaml.BaseLoader)
        except OSError as e:
            raise LeakboardError(f"{path}: cannot be read: {e.strerror}") from e
        except UnicodeDecodeError as e:
            line = e.object[: e.start].count(b"\n") + 1
            raise LeakboardError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8") from e
        except yaml.MarkedYAMLError as e:
            mark = e.problem_mark or e.context_mark
            line = mark.line + 1 if mark else 1
            advice = "; indent with spaces" if "'\\t'" in str(e.problem) else ""
            what = ": ".join(part for part in (e.context, e.problem) if part)
            raise LeakboardError(f"{path}:{line}: not valid YAML: {what}{advice}") from e
        except yaml.reader.ReaderError as e:
            line = text[: e.position].count("\n") + 1
            raise LeakboardError(f"{path}:{line}: not valid YAML: {e.reason}") from e
        except RecursionError as e:
            raise LeakboardError(f"{path}:1: is nested too deeply to be read") from e
        if not isinstance(root, yaml.MappingNode):
            sort = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
            raise LeakboardError(
                f"{path}:1: expected a mapping with the keys name, task and defenses, "
                f"got {sort if root else 'an empty file'}"
            )
        value: dict[str, Any] = self.plain(root, ())
        return value

    def plain(self, node: yaml.Node, loc: Loc) -> Any:
        """A node as a plain value; notes the line of everything in it."""
        line = node.start_mark.line + 1
        self.lines.setdefault(loc, line)
        if node.tag not in PLAIN_TAGS:
            self.complain(loc, f"the tag {node.tag} is not supported; remove it", line)
        elif len(loc) > DEEPEST:
            self.complain(loc[:1], f"is nested more than {DEEPEST} levels deep")
        elif isinstance(node, yaml.ScalarNode):
            return node.value if node.style else _scalar(node.value)
        elif isinstance(node, yaml.SequenceNode):
            return [self.plain(child, (*loc, i)) for i, child in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            return self.mapping(node, loc)
        return None

    def mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.complain(loc, "expected a word as key", line)
            elif key.value in found:
                first = self.lines[*loc, key.value]
                self.complain(loc, f"the key '{key.value}' already stands in line {first}", line)
            else:
                self.lines[*loc, key.value] = line
                found[key.value] = self.plain(child, (*loc, key.value))
        return found

    def built(self, cls: type[M], given: Mapping[str, Any]) -> M:
        """The validated model.

        Raises:
            LeakboardError: all mistakes noted so far, and those of the values given here.
        """
        model = self.build(cls, given)
        if model is None or self.mistakes:
            ordered = sorted(self.mistakes, key=lambda mistake: mistake[0])
            raise LeakboardError("\n".join(text for _, text in ordered))
        return model

    def build(
        self,
        cls: type[M],
        given: Mapping[str, Any],
        loc: Loc = (),
        chosen: Mapping[str | int, int] = MappingProxyType({}),
    ) -> M | None:
        """The validated model, or None after noting what is wrong with it.

        Args:
            chosen: the place in its list from which each value was taken.
        """
        try:
            return cls.model_validate(given)
        except LeakboardError as e:
            self.complain(loc, str(e))
        except ValidationError as e:
            word = "parameter" if issubclass(cls, Method) else "key"
            wrong: dict[Loc, list[ErrorDetails]] = {}
            deeper: list[Loc] = []
            for error in e.errors(include_url=False):
                head, rest = error["loc"][:1], error["loc"][1:]
                at = (*loc, *head, *(chosen[key] for key in head if key in chosen), *rest)
                above = self.known((*loc, *error["loc"][:-1]))
                if error["type"] == "missing":
                    self.complain(above, f"missing {word} '{error['loc'][-1]}'")
                elif error["type"] == "extra_forbidden":
                    name = str(error["loc"][-1])
                    part = next((PARTS[k] for k in error["loc"][-2::-1] if k in PARTS), cls)
                    what = f"unknown {word} '{name}'. {did_you_mean(name, part.model_fields)}"
                    self.complain(above, what, self.lines.get(self.known(at)))
                else:
                    wrong.setdefault(self.known(at), []).append(error)
                    continue
                deeper.append((*above, error["loc"][-1]))
            for at, errors in wrong.items():
                # Of a union's alternatives the one that was meant is the one that went further.
                if not any(other[: len(at)] == at != other for other in [*wrong, *deeper]):
                    self.complain(at, _expected(errors))
        return None


def _scalar(text: str) -> str | int | float | None:
    """An unquoted YAML value. Unlike in YAML 1.1, 1e-3 is a number, and no and on are words.

    So are true and false: a yes-or-no field reads them from the words, and a number refuses them.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text):
        return float(text)
    return text


def _expected(errors: Sequence[ErrorDetails]) -> str:
    """What pydantic says about one value; several errors are the alternatives of a union."""
    custom = [str(e["ctx"]["error"]) for e in errors if "error" in e.get("ctx", {})]
    if custom:
        return "; ".join(custom)
    first, *others = dict.fromkeys(
        EXPECTED.get(e["type"]) or re.sub(r"^\w+ should ", "", e["msg"]) for e in errors
    )
    wanted = " or ".join([first, *(other.removeprefix("be ") for other in others)])
    return f"must {wanted}, got {_shown(errors[0]['input'])}"


def _shown(value: Any) -> str:
    return "null" if value is None else reprlib.repr(value)
