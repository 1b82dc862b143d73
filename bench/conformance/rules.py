"""Conformance rules for all methods, and their evaluation."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from leakboard.bench.contracts import LeakboardError, MissingExtra
from leakboard.bench.methods import PLUS, Attack, Method, Source, registry
from leakboard.bench.running import error_line

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""Valid names of methods."""
Outcome = Literal["passed", "failed", "not applicable"]
M = TypeVar("M", bound=Method)
R = TypeVar("R", bound=Callable[..., str | None])


@dataclass(frozen=True)
class Result:
    """Outcome of one rule."""

    rule: str
    outcome: Outcome
    detail: str = ""
    """Advice after a failure, or the reason why the rule does not apply."""
    is_untried: bool = False
    """True if it does not apply because another rule is broken."""


class Broken(LeakboardError):
    """The rule is broken; the message gives advice."""


class NotApplicable(Exception):
    """The rule does not apply to this method; the message gives the reason."""


class Untried(NotApplicable):
    """The rule cannot be tried because the method breaks another one; the message says in what."""


def rule(text: str) -> Callable[[R], R]:
    """Marks a method of `Rules` that checks one rule and returns a detail or raises."""

    def mark(examine: R) -> R:
        examine.__dict__["rule"] = text
        return examine

    return mark


def _file(cls: type[Method]) -> Path:
    """The file of a class; a registered method may also be loaded by its path."""
    return Path(getattr(sys.modules.get(cls.__module__), "__file__", None) or "").resolve()


class Rules(Generic[M]):
    """Rules for all methods.

    Args:
        method: an instance, or a class, of which the default parameters are used.
    """

    def __init__(self, method: type[M] | M, model: str) -> None:
        self.given = None if isinstance(method, type) else method
        self.cls: type[M] = method if isinstance(method, type) else type(method)
        self.model = model

    @property
    def title(self) -> str:
        name: str = getattr(self.cls, "name", self.cls.__name__)
        return name if self.given is None else str(self.given)

    @cached_property
    def method(self) -> M:
        """The checked instance."""
        if self.given is not None:
            return self.given
        try:
            return self.cls()
        except (ValidationError, TypeError):
            raise NotApplicable("the class cannot be instantiated without parameters") from None

    def examine(self) -> tuple[Result, ...]:
        """Checks all rules in their order in the source.

        Raises:
            MissingExtra: the method needs an extra that is not installed.
        """
        rules = {
            name: value.rule
            for cls in reversed(type(self).__mro__)
            for name, value in vars(cls).items()
            if hasattr(value, "rule")
        }
        return tuple(self._examined(text, getattr(self, name)) for name, text in rules.items())

    def _examined(self, text: str, examine: Callable[[], str | None]) -> Result:
        try:
            return Result(text, "passed", examine() or "")
        except MissingExtra:
            raise
        except NotApplicable as reason:
            return Result(text, "not applicable", str(reason), isinstance(reason, Untried))
        except (Exception, SystemExit) as error:  # a library under a method may call exit()
            return Result(text, "failed", error_line(error))

    @rule("has a name of its own, of lower-case words joined by '-'")
    def has_name(self) -> None:
        name = getattr(self.cls, "name", None)
        is_combination = hasattr(self.cls, "made_of")
        words = str(name).split(PLUS) if is_combination else [name]
        if not all(isinstance(word, str) and NAME.fullmatch(word) for word in words):
            raise Broken(f"set `name: ClassVar[str]`, such as 'my-method', instead of {name!r}")
        kind = "attack" if issubclass(self.cls, Attack) else "defense"
        known: dict[str, type[Method]] = {**getattr(registry, f"{kind}s")()}
        other = known.get(str(name), self.cls)
        if other is not self.cls and _file(other) != _file(self.cls):
            raise Broken(
                f"another {kind} is named '{name}', too, and records identify methods by name; rename yours"
            )

    @rule("names its source")
    def has_source(self) -> None:
        source = getattr(self.cls, "source", None)
        if not (isinstance(source, Source) and source.title):
            raise Broken('set `source: ClassVar[Source] = Source("title of the paper", "section")`')

    @rule("says in its docstring what it does")
    def has_docstring(self) -> None:
        first = (self.cls.__dict__.get("__doc__") or "").strip().split("\n")[0]
        if not first:
            raise Broken("give the class a docstring whose first sentence describes it")

    @rule("has a version of 1 or more")
    def has_version(self) -> None:
        version: Any = self.cls.version
        if not isinstance(version, int) or version < 1:
            raise Broken(f"`version` is {version!r}; it starts at 1 and rises when results change")

    @rule("gives each parameter a default and a docstring")
    def has_defaults(self) -> None:
        fields = self.cls.model_fields
        if required := [name for name, field in fields.items() if field.is_required()]:
            raise Broken(f"give a default to {', '.join(required)}")
        try:
            self.cls()
        except (ValidationError, TypeError) as error:
            raise Broken(f"it cannot be built from its defaults: {error}") from error
        if undocumented := [name for name, field in fields.items() if not field.description]:
            raise Broken(f"put a docstring below {', '.join(undocumented)}")

    @rule("has parameters that survive JSON")
    def survives_json(self) -> None:
        restored = self.cls(**json.loads(json.dumps(self.method.params)))
        if restored != self.method:
            raise Broken(
                f"{self.method.params} becomes {restored.params} after a round trip through JSON; "
                "use numbers, strings, booleans and lists of them"
            )

    @rule("refuses unknown parameters")
    def refuses_unknown(self) -> None:
        params = self.method.params | {"no_such_parameter": 1}
        try:
            self.cls(**params)
        except ValidationError:
            return
        raise Broken("an unknown parameter is accepted; leave extra='forbid' in model_config")
