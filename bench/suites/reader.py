"""Reader of suites, which keeps the location of every value and collects all errors."""

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
from leakboard.bench.suites.yaml_nodes import fault, read_nodes, scalar

M = TypeVar("M", bound=BaseModel)
Loc = tuple[str | int, ...]
"""Location of a value: keys of mappings and indices of lists."""
DEEPEST, MOST_VALUES, MOST_TOLD = 10, 10_000, 50
"""Maximum levels of nesting (a list may contain itself by an alias), values, and reported errors."""
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
"""Messages for pydantic's error types; other types keep pydantic's message."""


@dataclass
class SuiteReader:
    """Values, locations and errors of a suite that is being read.

    Attributes:
        source: prefix of error messages: a file, or the name of an argument, or empty.
        lines: the line of every value; for a suite from Python, its position in reading order.
        numbered: whether lines are those of a file and are part of messages.
        values: number of values read.
        spoiled: locations of invalid values, which were left out.
    """

    source: str = ""
    lines: dict[Loc, int] = field(default_factory=dict)
    parts: Mapping[str | int, type[BaseModel]] = field(default_factory=dict)
    """Models of the keys, in which similar names of unknown keys are searched."""
    mistakes: dict[str, int] = field(default_factory=dict)
    """Error messages with their lines."""
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
        """Add an error about a value that is left out; later errors about it are suppressed."""
        self.complain(loc, what)
        self.spoiled.add(loc)

    def known(self, loc: Loc) -> Loc:
        """The part of a pydantic location that exists in the file, without union tags and implied lists."""
        at: Loc = ()
        for step in loc:
            if (*at, step) in self.lines:
                at = (*at, step)
        return at

    def read(self, path: Path) -> dict[str, Any]:
        """Read a file as plain values.

        Raises:
            LeakboardError: it cannot be read, is not YAML, or is not a mapping.
        """
        root = read_nodes(path)
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
        """Convert a node to a plain value, and store the line of every value in it."""
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
            wrong = f"{e}, got {format_value(node.value)}"
        if wrong is None:
            return value
        self.spoil(loc, wrong)
        return None

    def _count(self, loc: Loc) -> None:
        """Count a value, since aliases can create millions from a few lines."""
        self.values += 1
        if self.values > MOST_VALUES:
            self.complain(
                loc[:1], f"holds more than {MOST_VALUES:,} values, with all that aliases mean"
            )
            self.approve()

    def taken(self, value: Any, loc: Loc) -> Any:
        """Convert a value from Python as in a file, with arrays as lists, and store all locations."""
        self.lines.setdefault(loc, len(self.lines))
        self._count(loc)
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, Mapping | list | tuple | range) and len(loc) > DEEPEST:
            self.complain(loc[:1], f"is nested more than {DEEPEST} levels deep")
        elif isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str) or fault(key):
                    self.complain(loc, f"expected a word as key, got {format_value(key)}")
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
        """Validate a model.

        Raises:
            LeakboardError: all errors so far, including those of these values.
        """
        model = self.build(cls, given)
        self.approve()
        assert model is not None, "a model that cannot be built is noted as a mistake"
        return model

    def approve(self) -> None:
        """Raise LeakboardError with all errors, if there are any."""
        if self.mistakes:
            ordered = sorted(self.mistakes, key=self.mistakes.__getitem__)
            more = (
                [f"and {len(ordered) - MOST_TOLD} more mistakes"]
                if len(ordered) > MOST_TOLD
                else []
            )
            raise LeakboardError("\n".join([*ordered[:MOST_TOLD], *more]))

    def build(
        self,
        cls: type[M],
        given: Mapping[str, Any],
        loc: Loc = (),
        chosen: Mapping[str | int, int] = MappingProxyType({}),
    ) -> M | None:
        """Validate a model; returns None and adds the errors if it is invalid.

        Args:
            chosen: by key, the index in its list from which the value was taken.
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
                # Among alternatives of a union, the one with the deepest error was meant.
                if not any(other[: len(at)] == at != other for other in [*wrong, *deeper]):
                    self.complain(at, _expected(errors))
        return None


def _expected(errors: Sequence[ErrorDetails]) -> str:
    """Message for pydantic's errors about one value; several errors are alternatives of a union."""
    custom = [str(e["ctx"]["error"]) for e in errors if "error" in e.get("ctx", {})]
    if custom:
        return "; ".join(dict.fromkeys(custom))
    first, *others = dict.fromkeys(
        EXPECTED.get(e["type"]) or re.sub(r"^\w+ should ", "", e["msg"]) for e in errors
    )
    wanted = " or ".join([first, *(other.removeprefix("be ") for other in others)])
    return f"must {wanted}, got {format_value(errors[0]['input'])}"


def format_value(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "null" if value is None else plain(reprlib.repr(value))
