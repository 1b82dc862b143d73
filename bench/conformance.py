"""The rules of the house, examined on one method. Usable from outside:

    from bench.conformance import check_defense

    def test_my_noise_keeps_the_rules():
        check_defense(MyNoise).raise_if_failed()
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar, cast

import torch
from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bench import registry
from bench.attacking import told
from bench.errors import LeakboardError, MissingExtra, did_you_mean
from bench.record import Leak, Record
from bench.trial import Trained, Trial, alike, copied, fingerprint, undefended, variants
from bench.types import Attack, Channel, Defense, Goal, Knows, Method, Source, Transcript

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TOLERANCE = 1e-3
"""Class scores that differ by less are the same: batches of another shape round differently."""
LARGER = (1000, 3)
"""Examples and epochs of the second chance of an attack that needs more than the small slice."""

Outcome = Literal["passed", "failed", "not applicable"]
STYLE: dict[Outcome, str] = {"passed": "green", "failed": "bold red", "not applicable": "dim"}


@dataclass(frozen=True)
class Result:
    """One rule and whether it is kept."""

    rule: str
    outcome: Outcome
    detail: str = ""
    """What to do where it failed; why where it could not be examined."""


@dataclass(frozen=True)
class Report:
    """All rules for one method."""

    method: str
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """True where no rule failed; a rule that does not apply is none that failed."""
        return not self.failures

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.outcome == "failed"]

    def table(self) -> Table:
        """A row per rule."""
        verdict = "keeps the rules" if self.passed else f"breaks {len(self.failures)} of the rules"
        table = Table(title=f"{self.method} {verdict}", title_justify="left", box=SIMPLE_HEAD)
        for column in ("rule", "result", "detail"):
            table.add_column(column, overflow="fold")
        for result in self.results:
            outcome = Text(result.outcome, STYLE[result.outcome])
            table.add_row(Text(result.rule), outcome, Text(result.detail))
        return table

    def raise_if_failed(self) -> None:
        """Raises AssertionError with each broken rule and what to do about it."""
        if not self.passed:
            lines = [f"  {result.rule}: {result.detail}" for result in self.failures]
            raise AssertionError("\n".join([f"{self.method} breaks rules:", *lines]))


class Broken(LeakboardError):
    """The rule is not kept; the message says what to do."""


class Unfit(Exception):
    """The rule cannot be examined; the message says why."""


def check_defense(defense: type[Defense] | Defense, model: str = "tiny-bert") -> Report:
    """Examines a defense, given as a class (with its default parameters) or configured.

    Raises:
        LeakboardError: not a defense, or no such model.
    """
    case = DefenseCase(defense, Defense, model)
    return case.report(METHOD_RULES | DEFENSE_RULES)


def check_attack(attack: type[Attack] | Attack, model: str = "tiny-bert") -> Report:
    """Examines an attack, given as a class (with its default parameters) or configured.

    Raises:
        LeakboardError: not an attack, or no such model.
    """
    case = AttackCase(attack, Attack, model)
    return case.report(METHOD_RULES | ATTACK_RULES)


def check_method(name_or_file: str) -> Report:
    """Examines a registered method, or the one in `path/to/file.py` or `path/to/file.py:ClassName`.

    Raises:
        LeakboardError: no such method or file.
    """
    known: dict[str, type[Method]] = {**registry.attacks(), **registry.defenses()}
    if re.search(r"\.py(:\w+)?$", name_or_file):
        cls = registry.load_method(name_or_file)
    elif name_or_file in known:
        cls = known[name_or_file]
    else:
        advice = did_you_mean(name_or_file, known)
        raise LeakboardError(
            f"unknown method '{name_or_file}'. {advice} A file is given by its path, which ends in .py."
        )
    return check_defense(cls) if issubclass(cls, Defense) else check_attack(cast(type[Attack], cls))


M = TypeVar("M", bound=Method)
C = TypeVar("C", bound="Case[Method]")
