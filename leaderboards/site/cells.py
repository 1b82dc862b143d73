"""What a table of the site is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Estimate
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.tables import Look, look

FEW = 24
"""Letters that stand in one line; for more a column makes room, and has several lines."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table. All text in it is plain text; the template escapes it."""

    text: str
    small: str = ""
    """Less important text behind it, such as an interval."""
    sort: float | str | None = None
    """What it is ordered by, where that is not its text; NaN stands last."""
    href: str = ""
    look: Look | None = None
    kept: float | None = None
    """Of an entry of the matrix: how much privacy is kept, 0 to 1, which shades it."""
    hidden: bool = False
    """Nothing is shown of it: hatched."""
    kind: str = ""
    """A class of the style sheet, such as that of a word of the matrix."""

    @property
    def order(self) -> str:
        if isinstance(self.sort, float):
            return "" if math.isnan(self.sort) else repr(self.sort)
        return self.text if self.sort is None else self.sort


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    name: str
    number: bool = False
    choose: bool = False
    """A filter offers its values."""
    about: str = ""


@dataclass(frozen=True)
class Table:
    """A table that a reader can sort and filter."""

    id: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    @property
    def filtered(self) -> bool:
        """Whether it is long enough to need filters."""
        return len(self.rows) > 5


def number(value: Any, low: Any = None, high: Any = None) -> Cell:
    """A measured number with its interval; '–' where it is missing."""
    if value is None or pd.isna(value):
        return Cell("–", sort=math.nan)
    ends = low is not None and high is not None and not (pd.isna(low) or pd.isna(high))
    between = f"[{low:.3f}, {high:.3f}]" if ends else ""
    return Cell(f"{value:.3f}", between, float(value))


def estimated(estimate: Estimate | None) -> Cell:
    """The same of an Estimate."""
    return number(estimate.value, estimate.low, estimate.high) if estimate else number(None)


def wordy(text: str, small: str = "", href: str = "") -> Cell:
    """An entry that may hold many words."""
    return Cell(text, small, href=href, kind="wordy" if len(text + small) > FEW else "")


def of_defense(name: str, links: Links, small: str = "") -> Cell:
    """A defense with its sign, which leads to its page."""
    return Cell(name, small, href=links.method("defense", name), look=look(name))


def of_attack(name: str, links: Links) -> Cell:
    """An attack, which leads to its page."""
    return Cell(name, href=links.method("attack", name))


def aim(goal: str, attribute: str | None) -> str:
    """What an attack guesses, in words."""
    return f"{goal}: {attribute}" if attribute else str(goal)
