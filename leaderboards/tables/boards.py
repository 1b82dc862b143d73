"""Leaderboards: each answers one question about records, with ranks that show ties as ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from leakboard.leaderboards.tables.comparisons import Comparison
from leakboard.leaderboards.tables.deciding import STRONGEST
from leakboard.leaderboards.tables.measured import Setting, measured_settings
from leakboard.leaderboards.tables.questions import QUESTIONS

PAPERS = "papers"
"""The board that stands apart: ours beside what a paper prints, see `leakboard.leaderboards.tables.beside`."""


@dataclass(frozen=True)
class Board:
    """The answer to one question in one comparison, for one goal.

    Attributes:
        rows: one per entry, best first; every number stands with its interval as text.
        note: what a reader needs besides, such as how the ranks were made.
    """

    name: str
    question: str
    task: str
    model: str
    words: str
    goal: str
    rows: pd.DataFrame
    note: str


def boards(compared: Sequence[Comparison], attack: str = STRONGEST) -> list[Board]:
    """All boards that these comparisons can answer, one by one and goal by goal.

    Args:
        attack: the one that decides, as for `leakboard.leaderboards.tables.deciding.deciding`.
    """
    return [
        board
        for comparison in compared
        for (goal, attribute), settings in measured_settings(comparison, attack)
        for board in _of(comparison, f"{goal} {attribute}".strip(), settings)
    ]


def _of(comparison: Comparison, goal: str, settings: Sequence[Setting]) -> Iterator[Board]:
    if len({str(one.row["defense"]) for one in settings}) < 2:
        return
    about = (comparison.task, comparison.model, comparison.words, goal)
    for name, question, make, note in QUESTIONS:
        rows = make(settings)
        if len(rows):
            yield Board(name, question, *about, pd.DataFrame(rows), note)
