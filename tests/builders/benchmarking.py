"""Benchmarks as ratios within one run: interleaved rounds, and figures with goals and limits.

Machines are shared and noisy. So most figures are ratios of two ways to do the same work, which run in turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

STYLES = {"met": "green", "within the limit": "yellow", "missed": "bold red"}


@dataclass(frozen=True)
class Figure:
    """A measured number.

    Attributes:
        name: the work that was measured, and its reference.
        goal: a good value: at most this, or at least this if `more` is better.
        limit: a benchmark fails beyond it.
    """

    name: str
    value: float
    goal: float | None = None
    limit: float | None = None
    unit: str = ""
    more: bool = False

    @property
    def verdict(self) -> str:
        """`met`, `within the limit` or `missed`; empty without a goal."""
        if self.goal is None or self.limit is None:
            return ""
        if self._meets(self.goal):
            return "met"
        return "within the limit" if self._meets(self.limit) else "missed"

    def _meets(self, bound: float) -> bool:
        return self.value >= bound if self.more else self.value <= bound

    def format(self, value: float | None, is_bound: bool = False) -> str:
        """A value with its unit; a bound has the side on which it lies."""
        if value is None:
            return "–"
        sign = ("≥ " if self.more else "≤ ") if is_bound else ""
        number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        return f"{sign}{number} {self.unit}".strip()

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The row of the table: name, value, goal, limit, verdict."""
        goal, limit = (self.format(bound, is_bound=True) for bound in (self.goal, self.limit))
        return self.name, self.format(self.value), goal, limit, self.verdict


def table(title: str, figures: Iterable[Figure]) -> Table:
    """All figures with goal, limit and verdict."""
    rows = Table(title=title)
    rows.add_column("figure")
    for name in ("measured", "goal", "limit"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("verdict", no_wrap=True)
    for figure in figures:
        *cells, verdict = figure.cells
        rows.add_row(*cells, Text(verdict, STYLES.get(verdict, "")))
    return rows


@dataclass
class Comparison:
    """The `benchmark` of a test, the references of its ratios, and its figures.

    Attributes:
        benchmark: the fixture of pytest-benchmark.
        figures: those of all tests; the ones of this test are added.
        seconds: [n] of each round of the measured work.
        references: [n] the same of each reference, in the order of `measure`.
    """

    benchmark: Any
    figures: list[Figure]
    seconds: list[float] = field(default_factory=list)
    references: list[list[float]] = field(default_factory=list)

    def measure(
        self, work: Callable[[], object], *references: Callable[[], object], rounds: int = 3
    ) -> Any:
        """Value of the work, which runs in rounds; before each round each reference runs once.

        A round of warm-up comes first, unless there is one round only.
        """
        warmup_rounds = int(rounds > 1)
        self.references = [[] for _ in references]

        def run_references() -> None:
            for reference, seconds in zip(references, self.references, strict=True):
                start = time.perf_counter()
                reference()
                seconds.append(time.perf_counter() - start)

        value = self.benchmark.pedantic(
            work, setup=run_references, rounds=rounds, warmup_rounds=warmup_rounds
        )
        if self.benchmark.stats is not None:
            self.seconds = self.benchmark.stats.stats.data
            self.references = [seconds[warmup_rounds:] for seconds in self.references]
        return value

    @property
    def median(self) -> float:
        """Median seconds of the work; nan under `--benchmark-disable`."""
        return statistics.median(self.seconds or [float("nan")])

    def ratio(self, reference: int = 0) -> float:
        """Median over the rounds of seconds of the work over those of a reference; nan if disabled."""
        rounds = zip(self.seconds, self.references[reference], strict=False)
        return statistics.median([a / b for a, b in rounds] or [float("nan")])

    def report(self, *figures: Figure) -> None:
        """Record the figures as `extra_info` and for the table, and fail if one is beyond its limit.

        Under `--benchmark-disable` there is nothing to report.
        """
        if self.benchmark.disabled:
            return
        self.figures += figures
        for figure in figures:
            self.benchmark.extra_info[figure.name.strip()] = {
                "value": figure.value,
                "goal": figure.goal,
                "limit": figure.limit,
                "unit": figure.unit,
                "verdict": figure.verdict,
            }
        missed = [" ".join(figure.cells) for figure in figures if figure.verdict == "missed"]
        if missed:
            pytest.fail("beyond the limit: " + "; ".join(missed), pytrace=False)
