"""What the records say of one method: of a defense what it hides, of an attack where it works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings import listed, protects
from leakboard.leaderboards.site.cells import Cell, Column, Table, aim, number, of_defense
from leakboard.leaderboards.site.front import Answer, Told
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.site.scatter import Dot
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    PROVEN,
    SETTING,
    Matrix,
    Row,
    Verdict,
    look,
    means_of,
    rows_of,
    setting_of,
    standing,
)


@dataclass(frozen=True)
class Standing:
    """A defense in one comparison.

    Attributes:
        aims: what each word of its line is about.
        sentence: all of it in words.
    """

    title: str
    task: str
    aims: Sequence[str]
    line: Told
    sentence: str


def standings_of(defense: str, answers: Sequence[tuple[Matrix, Answer]]) -> list[Standing]:
    """What the matrices say of a defense."""
    found = []
    for matrix, one in answers:
        for line in (line for own in one.groups.values() for line in own):
            if line.name == defense:
                task = matrix.comparison.task
                told = _sentence(line, one.aims, task)
                found.append(Standing(one.title, task, one.aims, line, told))
    return found


def _sentence(line: Told, aims: Sequence[str], task: str) -> str:
    """What it hides, what it leaks, at what cost, and to which attack."""
    by: dict[Verdict, list[str]] = {}
    for name, word in zip(aims, line.words, strict=True):
        kept = (
            f" ({word.number} kept{f', {word.attack}' if word.attack else ''})"
            if word.number
            else ""
        )
        by.setdefault(word.verdict, []).append(name + kept)
    verbs = {
        Verdict.PROTECTS: "protects",
        Verdict.PARTLY: "partly hides",
        Verdict.LEAKS: "leaks",
        Verdict.NOT_SHOWN: "is not shown to hide or leak",
    }
    parts = [f"{verb} {listed(by[word])}" for word, verb in verbs.items() if word in by]
    setting = f" with {line.setting}" if line.setting else ""
    if not parts:
        return f"On {task}, nothing that it sends is read by an attack that was tried."
    return f"On {task}{setting} it {listed(parts)}; it costs {line.cost} {line.between} points of utility."


def dots_of(defense: str, matrix: Matrix, one: Answer, links: Links) -> Iterator[Dot]:
    """All settings of a defense by what they leak of what it hides, the other defenses pale behind them.

    Of what is not shown there is no dot.
    """
    own, goals = matrix.comparison, protects(defense)
    lost = own.lost
    read: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(own.deciding()):
        where = setting_of(row)
        ours = row["defense"] == defense and Goal(row["goal"]) in goals and where in lost
        if ours and standing(row) != NOT_SHOWN:
            read.setdefault(where, []).append(row)
    for where, rows in read.items():
        most, label, points = min(rows, key=_kept), lost[where]["label"], lost[where]["points"]
        if points == points:
            told = f"{label}: {points:.1f} points of utility lost; {most['attack']} reaches {most['success']:.3f}"
            href = links.record(own.keys[where][0])
            bound = standing(most) == PROVEN
            yield Dot(
                str(label), 1 - _kept(most), float(points), look(defense), href, told, bound=bound
            )
    yield from (replace(dot, name="", pale=True) for dot in one.dots if dot.name != defense)


def _kept(row: Row) -> float:
    """The privacy that is kept; where there is nothing to find, all of it."""
    level = row["ep_level"]
    return float(min(1.0, max(0.0, row["ep"] / level))) if level > 0 else 1.0


def reach(own: pd.DataFrame, links: Links) -> Table | None:
    """Where an attack works and where not: a row for each defense on each task.

    Args:
        own: its rows of a frame.
    """
    rows = own[own["status"] == "ok"].dropna(subset=["ep"])
    rows = rows[rows["attack_version"] == rows["attack_version"].max()]
    rows = rows.drop_duplicates(["key", "attack_params", "goal", "attribute", "channel"])
    if rows.empty:
        return None
    by: dict[tuple[Any, ...], list[Row]] = {}
    for row in means_of(rows, [*SETTING, "attack_params", "goal", "attribute", "channel"]):
        where = tuple(row[name] for name in ("task", "model", "defense", "goal", "attribute"))
        by.setdefault(where, []).append(row)
    cells = []
    for (task, model, defense, goal, attribute), same in by.items():
        best, works = min(same, key=_kept), sum(row["advantage_low"] > 0 for row in same)
        word = "works" if works == len(same) else "in part" if works else "finds nothing clear"
        slug = "leaks" if works == len(same) else "partly" if works else ""
        cells.append(
            [
                of_defense(str(defense), links),
                Cell(word, kind=slug),
                Cell(f"{works} of {len(same)}", sort=works / len(same)),
                Cell(f"{task}, {model}"),
                Cell(aim(str(goal), str(attribute) or None)),
                number(best["success"], best["success_low"], best["success_high"]),
                number(best["chance"]),
                Cell(str(best["metric"])),
            ]
        )
    columns = [
        Column("defense", choose=True),
        Column("does it work", choose=True),
        Column("settings", number=True, about="at which it clearly finds something, of all"),
        Column("task", choose=True),
        Column("goal", choose=True),
        Column("success", number=True, about="where it finds most"),
        Column("chance", number=True),
        Column("metric"),
    ]
    return Table("reach", "Where it works, where not", columns, cells)
