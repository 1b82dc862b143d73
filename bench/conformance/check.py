"""Check of a method against the conformance rules.

This is the complete test of a method, also in external packages:

    import leakboard

    def test_my_noise_keeps_the_rules():
        leakboard.check(MyNoise).raise_if_failed()
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from leakboard.bench.backbones import load_backbone
from leakboard.bench.conformance.attack_rules import AttackRules
from leakboard.bench.conformance.defense_rules import DefenseRules
from leakboard.bench.conformance.rules import Outcome, Result
from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.bench.methods import Attack, Defense, Method, registry

M = TypeVar("M", bound=Method)
STYLE: dict[Outcome, str] = {"passed": "green", "failed": "bold red", "not applicable": "dim"}


@dataclass(frozen=True)
class Report:
    """Every rule for one method, and whether it is kept."""

    method: str
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """True where no rule failed; one that does not apply has not failed."""
        return not self.failures

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.outcome == "failed"]

    def table(self) -> Table:
        """A row per rule."""
        verdict = "keeps the rules" if self.passed else f"breaks {len(self.failures)} of the rules"
        title = Text(f"{self.method} {verdict}")
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
        for column in ("rule", "result", "detail"):
            table.add_column(column, overflow="fold")
        for result in self.results:
            outcome = Text(result.outcome, STYLE[result.outcome])
            table.add_row(Text(result.rule), outcome, Text(result.detail))
        return table

    def raise_if_failed(self) -> None:
        """Raises AssertionError with each broken rule and what to do about it."""
        if not self.passed:
            lines = [f"- {result.rule}: {result.detail}" for result in self.failures]
            raise AssertionError("\n".join([f"{self.method} breaks rules of the house:", *lines]))


def check_defense(defense: type[Defense] | Defense, model: str = "tiny-bert") -> Report:
    """Examines a defense: a class, with its default parameters, or a configured one.

    A few seconds on the tiny model; a real one takes minutes.

    Raises:
        LeakboardError: not a defense, or no such model.
        MissingExtra: it needs an optional part that is not installed.
    """
    load_backbone(model)  # a wrong name is no fault of the method
    rules = DefenseRules(_expected(defense, Defense), model)
    return Report(rules.title, rules.examine())


def check_attack(attack: type[Attack] | Attack, model: str = "tiny-bert") -> Report:
    """Examines an attack: a class, with its default parameters, or a configured one.

    A few seconds on the tiny model; a real one takes minutes.

    Raises:
        LeakboardError: not an attack, or no such model.
        MissingExtra: it needs an optional part that is not installed.
    """
    load_backbone(model)  # a wrong name is no fault of the method
    rules = AttackRules(_expected(attack, Attack), model)
    return Report(rules.title, rules.examine())


def check_method(method: str | Path | type[Method] | Method) -> Report:
    """Examines a method: a class, a configured one, or one that is registered or stands in a file.

    Args:
        method: if text, the name of a registered one, `path/to/file.py` or `path/to/file.py:Class`.

    Raises:
        LeakboardError: no such method or file, or something else.
        MissingExtra: it needs an optional part that is not installed.
    """
    found = _find_method(str(method)) if isinstance(method, str | Path) else method
    cls = found if isinstance(found, type) else type(found)
    if issubclass(cls, Defense):
        return check_defense(cast(type[Defense], found))
    if issubclass(cls, Attack):
        return check_attack(cast(type[Attack], found))
    raise LeakboardError(
        "method: expected a subclass of leakboard.Defense or leakboard.Attack, an instance of one, a "
        f"name, or the path of a file, got {found!r:.60}"
    )


def _find_method(name_or_file: str) -> type[Method]:
    known: dict[str, type[Method]] = {**registry.attacks(), **registry.defenses()}
    if re.search(r"\.py(:\w+)?$", name_or_file):
        return registry.load_method(name_or_file)
    found = registry.find(name_or_file, known)
    if found is None:
        raise LeakboardError(
            f"unknown method '{name_or_file}'. {did_you_mean(name_or_file, known)} "
            "A file of your own is given by its path, which ends in .py."
        )
    return found


def _expected(method: type[M] | M, base: type[Any]) -> type[M] | M:
    cls = method if isinstance(method, type) else type(method)
    if not issubclass(cls, base):
        raise LeakboardError(f"{cls.__name__} is no subclass of leakboard.{base.__name__}")
    return method
