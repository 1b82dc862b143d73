"""The tables of settings, records and leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Record
from leakboard.bench.scoring import NEEDED, provable
from leakboard.leaderboards.site.cells import (
    Cell,
    Column,
    Table,
    aim,
    estimated,
    number,
    of_attack,
    of_defense,
    wordy,
)
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.tables import NOT_SHOWN, Row, distinct, rows_of, setting_of, told

ONE_SEED = "one seed: interval inside the cell"


def settings_table(rows: pd.DataFrame, keys: Mapping[tuple[Any, ...], str], links: Links) -> Table:
    """The table of `leakboard.leaderboards.tables.points.per_setting`; `keys` has the first record of each setting."""
    columns = [
        Column("defense", choose=True),
        Column("setting", about="parameters that vary; the link leads to a record"),
        Column("task", choose=rows["task"].nunique() > 1),
        Column("model", choose=rows[["model", "cut"]].drop_duplicates().shape[0] > 1),
        Column("utility", number=True, about=distinct(rows["utility_metric"])),
        Column("goal", choose=True, about="what the attack guesses"),
        Column("EP, strongest", number=True),
        Column("by"),
        Column("EP, paper's", number=True),
        Column("EP at chance", number=True),
        Column("EP at level", number=True),
        Column("seeds", number=True, choose=rows["n_seeds"].nunique() > 1),
        Column("flags", choose=bool((rows["flags"] != "").any())),
    ]
    cells = []
    for row in rows_of(rows):
        record = links.record(keys[setting_of(row)])
        once = row["n_seeds"] == 1
        cells.append(
            [
                of_defense(row["defense"], links),
                wordy(row["words"] or "as is", href=record),
                Cell(row["task"]),
                Cell(f"{row['model']}, cut {row['cut']}"),
                number(row["utility"], row["utility_low"], row["utility_high"]),
                Cell(aim(row["goal"], row["attribute"])),
                _privacy(row, ""),
                of_attack(row["attack"], links),
                _privacy(row, "paper_"),
                number(row["ep_chance"]),
                number(row["ep_level"]),
                Cell(f"{row['n_seeds']}{'†' if once else ''}", sort=float(row["n_seeds"])),
                Cell(row["flags"].replace(",", ", ")),
            ]
        )
    note = [f"† {ONE_SEED}"] if (rows["n_seeds"] == 1).any() else []
    return Table(
        "settings", "Settings: what each costs and what it leaves private", columns, cells, note
    )


def _privacy(row: Row, whose: str) -> Cell:
    """EP by the strongest attack or the paper's, where anything is said of it."""
    how, kept = (
        row[f"{whose}standing"],
        number(*(row[f"{whose}ep{end}"] for end in ("", "_low", "_high"))),
    )
    if how == NOT_SHOWN:
        return Cell(NOT_SHOWN, sort=math.nan, hidden=True)
    return replace(kept, text=told(kept.text, str(how)))


def records_table(records: Sequence[Record], words: Mapping[str, str], links: Links) -> Table:
    """One row per record; `words` are the parameters by key."""
    columns = [
        Column("key"),
        Column("task", choose=True),
        Column("model", choose=True),
        Column("cut", number=True),
        Column("defense", choose=True),
        Column("setting"),
        Column("seed", number=True),
        Column("utility", number=True),
        Column("attacks", number=True, about="attacks that were scored, of those tried"),
        Column("status", choose=True),
    ]
    rows = []
    for record in records:
        cell = record.cell
        tried = {leak.attack.name for leak in record.leaks}
        scored = {leak.attack.name for leak in record.leaks if leak.success}
        rows.append(
            [
                Cell(record.key, href=links.record(record.key)),
                Cell(cell.task),
                Cell(cell.model),
                Cell(str(cell.cut), sort=float(cell.cut)),
                of_defense(cell.defense.name, links),
                wordy(words[record.key] or "as is"),
                Cell(str(cell.seed), sort=float(cell.seed)),
                estimated(record.utility),
                Cell(f"{len(scored)} of {len(tried)}", sort=float(len(scored))),
                wordy(record.status, record.reason),
            ]
        )
    return Table("records", "Records", columns, rows)


def leaks_table(
    record: Record,
    flags: Mapping[int, Sequence[str]],
    strengths: Mapping[int, float],
    links: Links,
) -> Table:
    """All that the attacks found on one cell; `flags` and certificates by index of the leak."""
    columns = [
        Column("attack", choose=True),
        Column("parameters"),
        Column("goal", choose=True),
        Column("view", choose=True),
        Column("channel", choose=True),
        Column("success", number=True),
        Column("metric"),
        Column("chance", number=True),
        Column("floor", number=True),
        Column("EP", number=True),
        Column("n", number=True, about="independent examples behind the interval"),
        Column("status", choose=True),
        Column("remarks"),
    ]
    rows = []
    for index, leak in enumerate(record.leaks):
        sure = strengths.get(index, 0.0) >= NEEDED
        remarks = [f"certificate {strengths[index]:.2f}"] if sure else []
        remarks += flags.get(index, ())
        silent = "uncertified-attack" in flags.get(index, ())
        if leak.epsilon is not None:
            remarks.append(f"proves ε ≥ {leak.epsilon:.2f}")
        if (most := provable(record, leak)) is not None:
            remarks.append(f"a perfect attacker proves ε ≥ {most:.2f}")
        params = [f"{name} = {value}" for name, value in leak.attack.params.items()]
        success = leak.success
        rows.append(
            [
                of_attack(leak.attack.name, links),
                wordy(", ".join(params)),
                Cell(aim(leak.goal, leak.attribute)),
                Cell(leak.view),
                Cell(leak.channel or ""),
                estimated(success),
                Cell(leak.metric),
                number(success and success.chance),
                number(leak.floor and leak.floor.value),
                Cell(NOT_SHOWN, sort=math.nan, hidden=True) if silent else estimated(leak.ep),
                Cell(str(success.n), sort=float(success.n)) if success else number(None),
                wordy(leak.status, leak.reason),
                Cell(", ".join(remarks)),
            ]
        )
    return Table("leaks", "What the attacks found", columns, rows)
