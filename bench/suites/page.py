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

from bench.contracts import LeakboardError, did_you_mean
from bench.methods import Method

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


@dataclass
class Page:
    """A suite that is being read: where everything stands, and what is wrong with it.

    Attributes:
        source: what mistakes begin with: a file, or the argument of a function, if anything.
        lines: the line of every value; of a suite from Python its number in the order of reading.
        numbered: lines are those of a file, and mistakes name them.
    """

    source: str = ""
    lines: dict[Loc, int] = field(default_factory=dict)
    parts: Mapping[str | int, type[BaseModel]] = field(default_factory=dict)
    """Models below a key, in which the nearest name of an unknown key is looked for."""
    mistakes: dict[str, int] = field(default_factory=dict)
    """Each in words, and its line."""
    numbered: bool = False

    def complain(self, loc: Loc, what: str, line: int | None = None) -> None:
        at = self.known(loc)
        line = self.lines.get(at, 1) if line is None else line
        number = f":{line}" if self.numbered else ""
        place = f"{self.source}{number}: " if self.source else ""
        key = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in at).removeprefix(".")
        self.mistakes.setdefault(f"{place}{key}: {what}" if key else f"{place}{what}", line)

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

    def taken(self, value: Any, loc: Loc) -> Any:
        """A value from Python as a file would hold it, arrays as lists; notes where everything stands."""
        self.lines.setdefault(loc, len(self.lines))
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, Mapping | list | tuple | range) and len(loc) > DEEPEST:
            self.complain(loc[:1], f"is nested more than {DEEPEST} levels deep")
        elif isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    self.complain(loc, f"expected a word as key, got {shown(key)}")
            words = {key: each for key, each in value.items() if isinstance(key, str)}
            return {key: self.taken(each, (*loc, key)) for key, each in words.items()}
        elif isinstance(value, list | tuple | range):
            return [self.taken(each, (*loc, i)) for i, each in enumerate(value)]
        return value

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
        self.approve()
        assert model is not None, "a model that cannot be built is noted as a mistake"
        return model

    def approve(self) -> None:
        """Raises LeakboardError where mistakes were noted."""
        if self.mistakes:
            raise LeakboardError("\n".join(sorted(self.mistakes, key=self.mistakes.__getitem__)))

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
    return f"must {wanted}, got {shown(errors[0]['input'])}"


def shown(value: Any) -> str:
    return "null" if value is None else reprlib.repr(value)
