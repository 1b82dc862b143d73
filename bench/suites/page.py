"""A suite that is being read: where every value stands, and what is wrong with it."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from leakboard.bench.contracts import LeakboardError, did_you_mean, plain
from leakboard.bench.methods import Method
from leakboard.bench.suites.composing import composed_file, fault, scalar

M = TypeVar("M", bound=BaseModel)
Loc = tuple[str | int, ...]
"""The way to a value: keys of mappings and places in lists."""
DEEPEST, MOST_VALUES, MOST_TOLD = 10, 10_000, 50
"""Levels of nesting, since a list that holds itself by an alias has no bottom; values; and mistakes
that are told."""
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
    "string_too_long": "be shorter",
    "string_type": "be text",
}
"""pydantic's kinds of errors in our words; its own words serve for the rest."""


@dataclass
class Page:
    """A suite that is being read: where everything stands, and what is wrong with it.

    Attributes:
        source: what mistakes begin with: a file, or the argument of a function, if anything.
        lines: the line of every value; of a suite from Python its number in the order of reading.
        numbered: lines are those of a file, and mistakes name them.
        values: how many were read.
        spoiled: where values stand that were left out.
    """

    source: str = ""
    lines: dict[Loc, int] = field(default_factory=dict)
    parts: Mapping[str | int, type[BaseModel]] = field(default_factory=dict)
    """Models below a key, in which the nearest name of an unknown key is looked for."""
    mistakes: dict[str, int] = field(default_factory=dict)
    """Each in words, and its line."""
    numbered: bool = False
    values: int = 0
    spoiled: set[Loc] = field(default_factory=set)

    def complain(self, loc: Loc, what: str, line: int | None = None) -> None:
        at = self.known(loc)
        if at in self.spoiled:
            return
        line = self.lines.get(at, 1) if line is None else line
        number = f":{line}" if self.numbered else ""
        place = f"{self.source}{number}: " if self.source else ""
        key = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in at).removeprefix(".")
        self.mistakes.setdefault(f"{place}{key}: {what}" if key else f"{place}{what}", line)

    def spoil(self, loc: Loc, what: str) -> None:
        """Notes what is wrong with a value that is left out; nothing more is said of it."""
        self.complain(loc, what)
        self.spoiled.add(loc)

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
        root = composed_file(path)
        if not isinstance(root, yaml.MappingNode):
            sort = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
            raise LeakboardError(
                f"{path}:1: expected a mapping with the keys name, task and defenses, "
                f"got {sort if root else 'an empty file'}"
            )
        value = self.plain(root, ())
        if not isinstance(value, dict):
            self.approve()
        found: dict[str, Any] = value
        return found

    def plain(self, node: yaml.Node, loc: Loc) -> Any:
        """A node as a plain value; notes the line of everything in it."""
        line = node.start_mark.line + 1
        self.lines.setdefault(loc, line)
        self._count(loc)
        if node.tag not in PLAIN_TAGS:
            self.spoil(loc, f"the tag {plain(node.tag, 100)} is not supported; remove it")
        elif len(loc) > DEEPEST:
            self.complain(loc[:1], f"is nested more than {DEEPEST} levels deep")
        elif isinstance(node, yaml.ScalarNode):
            return self._value(node, loc)
        elif isinstance(node, yaml.SequenceNode):
            return [self.plain(child, (*loc, i)) for i, child in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            return self.mapping(node, loc)
        return None

    def _value(self, node: yaml.ScalarNode, loc: Loc) -> str | int | float | None:
        wrong: str | None
        try:
            value = str(node.value) if node.style else scalar(node.value)
            wrong = fault(value) if isinstance(value, str) else None
        except ValueError as e:
            wrong = f"{e}, got {shown(node.value)}"
        if wrong is None:
            return value
        self.spoil(loc, wrong)
        return None

    def _count(self, loc: Loc) -> None:
        """Counts the values; aliases make millions of them from a few lines."""
        self.values += 1
        if self.values > MOST_VALUES:
            self.complain(
                loc[:1], f"holds more than {MOST_VALUES:,} values, with all that aliases mean"
            )
            self.approve()

    def taken(self, value: Any, loc: Loc) -> Any:
        """A value from Python as a file would hold it, arrays as lists; notes where everything stands."""
        self.lines.setdefault(loc, len(self.lines))
        self._count(loc)
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, Mapping | list | tuple | range) and len(loc) > DEEPEST:
            self.complain(loc[:1], f"is nested more than {DEEPEST} levels deep")
        elif isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str) or fault(key):
                    self.complain(loc, f"expected a word as key, got {shown(key)}")
            words = {key: each for key, each in value.items() if isinstance(key, str)}
            return {key: self.taken(each, (*loc, key)) for key, each in words.items()}
        elif isinstance(value, list | tuple | range):
            return [self.taken(each, (*loc, i)) for i, each in enumerate(value)]
        elif isinstance(value, str) and (wrong := fault(value)):
            self.spoil(loc, wrong)
            return None
        elif isinstance(value, int) and abs(value) >= 2**63:
            self.spoil(loc, "must be a whole number of at most 64 bits")
            return None
        return value

    def mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or fault(key.value):
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
        self.approve()
        assert model is not None, "a model that cannot be built is noted as a mistake"
        return model

    def approve(self) -> None:
        """Raises LeakboardError where mistakes were noted."""
        if self.mistakes:
            told = sorted(self.mistakes, key=self.mistakes.__getitem__)
            more = [f"and {len(told) - MOST_TOLD} more mistakes"] if len(told) > MOST_TOLD else []
            raise LeakboardError("\n".join([*told[:MOST_TOLD], *more]))

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
                    part = next(
                        (self.parts[k] for k in error["loc"][-2::-1] if k in self.parts), cls
                    )
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


def _expected(errors: Sequence[ErrorDetails]) -> str:
    """What pydantic says about one value; several errors are the alternatives of a union."""
    custom = [str(e["ctx"]["error"]) for e in errors if "error" in e.get("ctx", {})]
    if custom:
        return "; ".join(dict.fromkeys(custom))
    first, *others = dict.fromkeys(
        EXPECTED.get(e["type"]) or re.sub(r"^\w+ should ", "", e["msg"]) for e in errors
    )
    wanted = " or ".join([first, *(other.removeprefix("be ") for other in others)])
    return f"must {wanted}, got {shown(errors[0]['input'])}"


def shown(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "null" if value is None else plain(reprlib.repr(value))
