"""Defenses beside each other: what the matrices say of each, a column for every defense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.leaderboards.findings import offers
from leakboard.leaderboards.site.front import Answer, Told, answer
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.tables import Line, Matrix


@dataclass(frozen=True)
class Entry:
    """What is said of one defense; empty where nothing is."""

    text: str = ""
    small: str = ""
    slug: str = ""
    why: str = ""
    href: str = ""


Rows = list[tuple[str, list[Entry]]]
"""Of each row what it is about, and an entry for each defense."""


@dataclass(frozen=True)
class Beside:
    """A table with a column for each defense.

    Attributes:
        given: the two that are shown first.
        parts: the rows of each comparison, by its title.
    """

    defenses: Sequence[str]
    given: Sequence[str]
    parts: dict[str, Rows]


def beside(matrices: Sequence[Matrix], links: Links) -> Beside | None:
    """All matrices as one table; None where there is none."""
    if not matrices:
        return None
    times: dict[str, int] = {}
    for one in matrices:
        for line in one.lines:
            times[line.defense] = times.get(line.defense, 0) + 1
    names = sorted(times, key=lambda name: -times[name])
    made = {line.defense for one in matrices for line in offers(one)}
    given = [*(name for name in names if name in made), *names]
    parts = {
        one.title: _rows(one, {line.defense: line for line in matrix.lines}, names)
        for matrix, one in ((matrix, answer(matrix, links)) for matrix in matrices)
    }
    return Beside(names, given[:2], parts)


def _rows(one: Answer, lines: dict[str, Line], names: Sequence[str]) -> Rows:
    told = {line.name: line for own in one.groups.values() for line in own}
    found: Rows = [("setting", [_of(told.get(name), "setting") for name in names])]
    for place, aim in enumerate(one.aims):
        found.append((aim, [_word(told.get(name), place) for name in names]))
    found.append(("cost", [_of(told.get(name), "cost") for name in names]))
    formal = [Entry(lines[name].claimed if name in lines else "") for name in names]
    sent = [
        Entry(f"{lines[name].sent:.3g}" if name in lines and lines[name].sent is not None else "")
        for name in names
    ]
    return [*found, ("claims", formal), ("MB per epoch", sent)]


def _of(line: Told | None, what: str) -> Entry:
    if line is None:
        return Entry()
    if what == "cost":
        return Entry(line.cost, line.between)
    return Entry(line.setting or "as is")


def _word(line: Told | None, place: int) -> Entry:
    if line is None:
        return Entry()
    word = line.words[place]
    return Entry(f"{word.symbol} {word.verdict}", word.number, word.slug, word.why, word.href)
