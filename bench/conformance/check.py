"""Check of a method against the conformance rules.

This is the complete test of a method, also in external packages:

    import leakboard

    def test_my_noise_keeps_the_rules():
        leakboard.check(MyNoise).raise_if_failed()
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from leakboard.bench.backbones import load_backbone
from leakboard.bench.conformance.attack_rules import AttackRules
from leakboard.bench.conformance.defense_rules import DefenseRules
from leakboard.bench.conformance.rules import Outcome, Result, Rules
from leakboard.bench.contracts import LeakboardError, did_you_mean, notebook_html
from leakboard.bench.methods import (
    Attack,
    Defense,
    Method,
    changed_code,
    package_code,
    registry,
    reporting,
)
from leakboard.bench.records import provenance

M = TypeVar("M", bound=Method)
MODEL = "tiny-bert"
SIDE_EFFECTS = "leaves files, processes, the network and this package alone"
MOST_EFFECTS = 5
STYLE: dict[Outcome, str] = {"passed": "green", "failed": "bold red", "not applicable": "dim"}


@dataclass(frozen=True)
class Report:
    """Results of all rules for one method.

    Examples:
        >>> import leakboard as lb
        >>> report = lb.check("sap")  # doctest: +SKIP
        >>> report.passed  # doctest: +SKIP
        True
    """

    method: str
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """True if no rule failed."""
        return not self.failures

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.outcome == "failed"]

    @property
    def rows(self) -> list[Result]:
        """Results in the order of a reader: one for all rules that could not be tried, and broken rules last."""
        untried = Counter(result.detail for result in self.results if result.is_untried)
        rows = [result for result in self.results if not result.is_untried]
        for detail, n in untried.items():
            rules = "1 other rule" if n == 1 else f"{n} other rules"
            rows.append(Result(rules, "not applicable", detail, is_untried=True))
        return sorted(rows, key=lambda result: result.outcome == "failed")

    @property
    def title(self) -> str:
        """The method and the verdict on it."""
        n = len(self.failures)
        return f"{self.method} {f'breaks {n} of the rules' if n else 'follows the rules'}"

    def table(self) -> Table:
        """A row per rule, broken ones last."""
        table = Table(
            title=Text(self.title), title_justify="left", box=SIMPLE_HEAD, show_edge=False
        )
        for column in ("rule", "result", "detail"):
            table.add_column(column, overflow="fold")
        for result in self.rows:
            outcome = Text(result.outcome, STYLE[result.outcome])
            table.add_row(Text(result.rule), outcome, Text(result.detail))
        return table

    def _repr_html_(self) -> str:
        rows = [(one.rule, one.outcome, one.detail) for one in self.rows]
        return notebook_html(self.title, ("rule", "result", "detail"), rows)

    def raise_if_failed(self) -> None:
        """Raises AssertionError with all broken rules and advice."""
        if not self.passed:
            lines = [f"- {result.rule}: {result.detail}" for result in self.failures]
            raise AssertionError("\n".join([f"{self.method} breaks rules for methods:", *lines]))


def check_defense(defense: type[Defense] | Defense, model: str = MODEL) -> Report:
    """Checks a defense: an instance, or a class with its default parameters.

    It takes seconds on the tiny model, and minutes on a real one.

    Raises:
        LeakboardError: not a defense, or no such model.
        MissingExtra: it needs an extra that is not installed.
    """
    load_backbone(model)  # first, since an unknown model is no fault of the method
    return _check(lambda: DefenseRules(_expected(defense, Defense), model))


def check_attack(attack: type[Attack] | Attack, model: str = MODEL) -> Report:
    """Checks an attack; arguments and errors as in `check_defense`."""
    load_backbone(model)
    return _check(lambda: AttackRules(_expected(attack, Attack), model))


def _check(find: Callable[[], Rules[Any]]) -> Report:
    """The report on a method, and on the side effects of loading and checking it."""
    provenance("cpu")  # runs git, once
    before, effects = package_code(), list[str]()
    with reporting(effects.append):
        rules = find()
        results = rules.examine()
    effects += [f"replaces {name}" for name in changed_code(before)]
    outcome: Outcome = "failed" if effects else "passed"
    details = "; ".join(list(dict.fromkeys(effects))[:MOST_EFFECTS])
    return Report(rules.title, (*results, Result(SIDE_EFFECTS, outcome, details)))


def check_method(method: str | Path | type[Method] | Method) -> Report:
    """Checks a method: a class or an instance, or one that is registered or in a file.

    Args:
        method: a text is the name of a registered method, `path/to/file.py` or `path/to/file.py:Class`.

    Raises:
        LeakboardError: no such method or file, or no method.
        MissingExtra: it needs an extra that is not installed.
    """

    def rules() -> Rules[Any]:
        target = _find_method(str(method)) if isinstance(method, str | Path) else method
        cls = target if isinstance(target, type) else type(target)
        if issubclass(cls, Defense):
            return DefenseRules(cast(type[Defense], target), MODEL)
        if issubclass(cls, Attack):
            return AttackRules(cast(type[Attack], target), MODEL)
        raise LeakboardError(
            "method: expected a subclass of leakboard.Defense or leakboard.Attack, an instance of one, a "
            f"name, or the path of a file, got {target!r:.60}"
        )

    return _check(rules)


def _find_method(name_or_file: str) -> type[Method]:
    known: dict[str, type[Method]] = {**registry.attacks(), **registry.defenses()}
    if re.search(r"\.py(:\w+)?$", name_or_file):
        return registry.load_method(name_or_file)
    cls = registry.find(name_or_file, known)
    if cls is None:
        near = did_you_mean(name_or_file, known, ["the methods of `leakboard list`"])
        raise LeakboardError(
            f"unknown method '{name_or_file}'. {near} Give a file of your own by its path, which ends in .py."
        )
    return cls


def _expected(method: type[M] | M, base: type[Any]) -> type[M] | M:
    cls = method if isinstance(method, type) else type(method)
    if not issubclass(cls, base):
        raise LeakboardError(f"{cls.__name__} is not a subclass of leakboard.{base.__name__}")
    return method
