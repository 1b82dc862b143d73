"""What a table of the site holds, and the tables of settings, records and leaks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.contracts import Estimate, Goal, Record
from leaderboards.tables import (
    PAPER,
    SETTING,
    STRONGEST,
    Look,
    look,
    points,
    settings,
    setup,
    varying,
)

ONE_SEED = "one seed: interval inside the cell"
THEIRS = ["ep", "ep_low", "ep_high", "attack", "attack_params"]
"""What is shown of the attack of a defense's authors."""


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
        return len(self.rows) > 8


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


def per_setting(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, goal and attribute: utility, and EP by the strongest attack and the paper's.

    Returns:
        The columns of `leaderboards.tables.frontier.points` for the strongest attack, those of THEIRS with
        'paper_' before them, and `words`, the parameters that tell the setting from its peers.
    """
    same = [*SETTING, "attribute"]
    parts = []
    for goal in Goal:
        strongest = points(frame, goal, STRONGEST)
        theirs = points(frame, goal, PAPER)[[*same, *THEIRS]]
        # Without authors there is nothing but the strongest.
        authored = [bool(look(defense).measured_by) for defense in theirs["defense"]]
        theirs = theirs[pd.Series(authored, theirs.index, dtype=bool)]
        theirs = theirs.rename(columns={name: f"paper_{name}" for name in THEIRS})
        parts.append(strongest.merge(theirs, on=same, how="left"))
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    words = pd.Series("", rows.index, dtype="str")
    for defense, own in rows.groupby("defense", sort=False):
        names = varying(map(json.loads, frame.loc[frame["defense"] == defense, "params"].unique()))
        where = ["task", "model", "cut"]
        for _, peers in own[[*where, "params", "limit", "epochs", "setup"]].groupby(where):
            for index, row in zip(peers.index, peers.itertuples(), strict=True):
                told = (
                    settings(str(row.params), names),
                    setup(peers, row.limit, row.epochs, row.setup),
                )
                words[index] = ", ".join(part for part in told if part)
    return rows.assign(words=words)


def settings_table(
    rows: pd.DataFrame,
    keys: Mapping[tuple[Any, ...], str],
    links: Mapping[str, str],
    root: str = "",
) -> Table:
    """The table of `per_setting`.

    Args:
        keys: for each setting the key of its first record.
        links: page of each method, from the site's root.
        root: the way from the page to the root.
    """
    metrics = ", ".join(dict.fromkeys(text for text in rows["utility_metric"] if text))
    columns = [
        Column("task", choose=True),
        Column("model", choose=rows[["model", "cut"]].drop_duplicates().shape[0] > 1),
        Column("defense", choose=True),
        Column("setting", about="parameters that vary; the link leads to a record"),
        Column("utility", number=True, about=metrics),
        Column("goal", choose=True, about="what the attack guesses"),
        Column(
            "EP, strongest", number=True, about="empirical privacy that the strongest attack leaves"
        ),
        Column("by"),
        Column("EP, paper's", number=True, about="by the attack of the defense's authors"),
        Column("chance", number=True, about="EP that guessing without any observation leaves"),
        Column("seeds", number=True),
        Column("flags", choose=bool((rows["flags"] != "").any())),
    ]
    cells = []
    for row in rows.to_dict("records"):
        key = keys[place(row)]
        once = row["n_seeds"] == 1
        cells.append(
            [
                Cell(row["task"]),
                Cell(f"{row['model']}, cut {row['cut']}"),
                Cell(
                    row["defense"],
                    href=root + links[f"defense {row['defense']}"],
                    look=look(row["defense"]),
                ),
                Cell(row["words"] or "as is", href=f"{root}records/{key}.html"),
                number(row["utility"], row["utility_low"], row["utility_high"]),
                Cell(aim(row["goal"], row["attribute"])),
                number(row["ep"], row["ep_low"], row["ep_high"]),
                Cell(row["attack"], href=root + links[f"attack {row['attack']}"]),
                number(row["paper_ep"], row["paper_ep_low"], row["paper_ep_high"]),
                number(row["ep_chance"]),
                Cell(f"{row['n_seeds']}{'†' if once else ''}", sort=float(row["n_seeds"])),
                Cell(row["flags"].replace(",", ", ")),
            ]
        )
    note = [f"† {ONE_SEED}"] if (rows["n_seeds"] == 1).any() else []
    return Table(
        "settings", "Settings: what each costs and what it leaves private", columns, cells, note
    )


def aim(goal: str, attribute: str | None) -> str:
    """What an attack guesses, in words."""
    return f"{goal}: {attribute}" if attribute else str(goal)


def place(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    """A setting as something that can be looked up; a missing limit is None."""
    return tuple(None if pd.isna(row[name]) else row[name] for name in SETTING)


def records_table(
    records: Sequence[Record], words: Mapping[str, str], links: Mapping[str, str], root: str = ""
) -> Table:
    """One row per record; `words` are the parameters by key."""
    columns = [
        Column("key"),
        Column("task", choose=True),
        Column("model", choose=True),
        Column("cut", number=True),
        Column("defense", choose=True),
        Column("setting"),
        Column("seed", number=True),
        Column("status", choose=True),
        Column("utility", number=True),
        Column("attacks", number=True, about="attacks that were scored, of those tried"),
    ]
    rows = []
    for record in records:
        cell = record.cell
        tried = {leak.attack.name for leak in record.leaks}
        scored = {leak.attack.name for leak in record.leaks if leak.success}
        rows.append(
            [
                Cell(record.key, href=f"{root}records/{record.key}.html"),
                Cell(cell.task),
                Cell(cell.model),
                Cell(str(cell.cut), sort=float(cell.cut)),
                Cell(
                    cell.defense.name,
                    href=root + links[f"defense {cell.defense.name}"],
                    look=look(cell.defense.name),
                ),
                Cell(words[record.key] or "as is"),
                Cell(str(cell.seed), sort=float(cell.seed)),
                Cell(record.status, record.reason),
                estimated(record.utility),
                Cell(f"{len(scored)} of {len(tried)}", sort=float(len(scored))),
            ]
        )
    return Table("records", "Records", columns, rows)


def leaks_table(
    record: Record, flags: Mapping[int, Sequence[str]], links: Mapping[str, str], root: str = ""
) -> Table:
    """All that the attacks found on one cell; `flags` by index of the leak."""
    columns = [
        Column("attack", choose=True),
        Column("parameters"),
        Column("goal", choose=True),
        Column("view", choose=True),
        Column("channel", choose=True),
        Column("success", number=True, about="what the attack reached"),
        Column("metric"),
        Column("chance", number=True, about="success of guessing without any observation"),
        Column("EP", number=True, about="1 − success / ceiling"),
        Column("n", number=True, about="independent examples behind the interval"),
        Column("status", choose=True),
        Column("remarks"),
    ]
    rows = []
    for index, leak in enumerate(record.leaks):
        remarks = [*(["certificate"] if leak.certificate else []), *flags.get(index, ())]
        remarks += [f"proves ε ≥ {leak.epsilon:.2f}"] if leak.epsilon is not None else []
        params = [f"{name} = {value}" for name, value in leak.attack.params.items()]
        success = leak.success
        rows.append(
            [
                Cell(leak.attack.name, href=root + links[f"attack {leak.attack.name}"]),
                Cell(", ".join(params)),
                Cell(aim(leak.goal, leak.attribute)),
                Cell(leak.view),
                Cell(leak.channel or ""),
                estimated(success),
                Cell(leak.metric),
                number(success and success.chance),
                estimated(leak.ep),
                Cell(str(success.n), sort=float(success.n)) if success else number(None),
                Cell(leak.status, leak.reason),
                Cell(", ".join(remarks)),
            ]
        )
    return Table("leaks", "What the attacks found", columns, rows)
