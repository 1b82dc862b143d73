"""A measured number beside what it should be, and the table of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

STYLES = {"met": "green", "within the limit": "yellow", "missed": "bold red"}


@dataclass(frozen=True)
class Figure:
    """A number of a comparison.

    Attributes:
        name: what was measured, and against what.
        goal: what it should be, at most, or at least where `more` is better.
        limit: beyond it something has been broken.
    """

    name: str
    value: float
    goal: float | None = None
    limit: float | None = None
    unit: str = ""
    more: bool = False

    @property
    def verdict(self) -> str:
        """Whether it is as good as it should be; nothing where nobody says what it should be."""
        if self.goal is None or self.limit is None:
            return ""
        if self._holds(self.goal):
            return "met"
        return "within the limit" if self._holds(self.limit) else "missed"

    def _holds(self, bound: float) -> bool:
        return self.value >= bound if self.more else self.value <= bound

    def told(self, value: float | None, bound: bool = False) -> str:
        """A number of this kind in words; a bound says on which side it is."""
        if value is None:
            return "–"
        sign = ("≥ " if self.more else "≤ ") if bound else ""
        number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        return f"{sign}{number} {self.unit}".strip()


def table(title: str, figures: Iterable[Figure]) -> Table:
    """Every figure with its goal, its limit and the verdict."""
    shown = Table(title=title)
    shown.add_column("figure")
    for name in ("measured", "goal", "limit"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    for one in figures:
        verdict = one.verdict
        shown.add_row(
            one.name,
            one.told(one.value),
            one.told(one.goal, bound=True),
            one.told(one.limit, bound=True),
            Text(verdict, STYLES.get(verdict, "")),
        )
    return shown
