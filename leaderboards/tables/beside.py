"""Ours beside the numbers that papers print: every printed setting, and what was measured of it here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Record
from leakboard.bench.suites import Suite
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.here import NOTHING, Here, settings_here
from leakboard.leaderboards.tables.intervals import count
from leakboard.leaderboards.tables.parameters import (
    describe_limit,
    format_parameters,
    varying_names,
)
from leakboard.leaderboards.tables.printed import MEASURES, mirroring_suites
from leakboard.leaderboards.tables.printed import printed_table as table
from leakboard.leaderboards.tables.strongest import number, ranged
from leakboard.leaderboards.tables.styles import style_of
from leakboard.leaderboards.tables.unmeasured import why_not

NAMES = {
    "utility": "utility",
    "ep": "EP",
    "exposure": "exposure",
    "perplexity": "perplexity",
    "gradients": "read of gradients",
}
"""What tables call the measures."""


@dataclass(frozen=True)
class Laid:
    """One table of a paper, as it was printed for one model, beside what was measured here.

    Attributes:
        pairs: a row for each printed setting: `task`, `defense`, `setting` (in words), `params` (as printed);
            for each measure the mean here with `_low` and `_high`, and `_printed`, NaN where there is none;
            `here`, the setting that was measured, or None; `where`, on what it was measured and in which
            folder, or why it was not.
        every: all settings that were measured of its tasks and defenses.
        notes: what the suites that mirror it say of the difference.
    """

    paper: str
    artefact: str
    model: str
    pairs: pd.DataFrame
    every: Sequence[Here]
    notes: Sequence[str]

    @property
    def title(self) -> str:
        """Such as 'SAP, Table 3, roberta-large'."""
        return f"{self.paper}, {self.artefact}, {self.model}"

    @property
    def measured(self) -> pd.DataFrame:
        """The rows that were measured here."""
        return self.pairs[self.pairs["here"].notna()]

    @property
    def measures(self) -> list[str]:
        """Those that it prints."""
        return [name for name in MEASURES if self.pairs[f"{name}_printed"].notna().any()]


def beside(
    paper: str,
    artefact: str,
    frame: pd.DataFrame,
    records: Sequence[Record],
    folders: Mapping[str, frozenset[str]],
) -> list[Laid]:
    """One table of a paper beside what was measured here, for each model that it is printed for.

    Two settings are the same where task, defense and all that the paper states of its parameters agree; its
    `split` is our cut. What it does not state has the value that the suite has which mirrors the table.
    Where several folders hold a setting, that speaks which is the mirroring suite's, else which holds most of
    the printed settings, else most seeds, else most examples.
    The models differ, so the numbers need not agree.

    Args:
        frame: of the records, as `leakboard.leaderboards.tables.frame.frame` builds it.
        folders: the keys of the records of each folder.
    """
    suites, known = mirroring_suites(paper, artefact), table(paper, artefact)
    every = settings_here(frame, records, known)
    laid = []
    for model, printed in known.groupby("model", sort=False):
        rows = [
            row
            for _, own in printed.groupby("task", sort=False)
            for row in _rows(own, every, suites, folders)
        ]
        notes = [one.paper.note for one in suites if one.paper and one.paper.note]
        laid.append(Laid(paper, artefact, str(model), pd.DataFrame(rows), every, notes))
    return laid


def _rows(
    printed: pd.DataFrame,
    every: Sequence[Here],
    suites: Sequence[Suite],
    folders: Mapping[str, frozenset[str]],
) -> list[dict[str, Any]]:
    """The printed settings of one task, each beside ours."""
    theirs = rows_of(printed)
    knobs = {style_of(row["defense"]).knob or "" for row in theirs}
    told = sorted({*varying_names(printed["params"]), *knobs})
    alike = [[one for one in every if same(one, row, suites)] for row in theirs]
    fitting = [
        [one for one in own if _shared(one, row)] for own, row in zip(alike, theirs, strict=True)
    ]
    order = _in_order(fitting, folders, {one.name for one in suites})
    rows = []
    for row, near, candidates in zip(theirs, alike, fitting, strict=True):
        here, folder = _speaking(candidates, order)
        why = "what the paper measures was not" if near else why_not(row, every)
        means = here.means if here else {}
        words = format_parameters(row["params"], told).replace("split =", "cut =")
        own = {"task": row["task"], "defense": row["defense"], "setting": words}
        own |= {"params": row["params"], "here": here}
        own["where"] = _where(here, folder) if here else f"not measured: {why}"
        for name in MEASURES:
            own[f"{name}_printed"] = row[name]
            ends = means.get(name, NOTHING)
            own |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        rows.append(own)
    return rows


def same(here: Here, theirs: Row, suites: Sequence[Suite]) -> bool:
    """Whether a setting is the printed one."""
    if (here.row["task"], here.row["defense"]) != (theirs["task"], theirs["defense"]):
        return False
    stated = json.loads(theirs["params"])
    if any(here.stated.get(name, "") != value for name, value in stated.items()):
        return False
    rows = [row.defense for one in suites for row in one.defenses]
    chosen = [own.params for own in rows if own.name == theirs["defense"]]
    return not chosen or any(
        all(here.stated.get(name) == value for name, value in own.items() if name not in stated)
        for own in chosen
    )


def _shared(here: Here, theirs: Row) -> list[str]:
    """The measures that were measured and are printed."""
    return [name for name in here.means if not pd.isna(theirs[name])]


def _in_order(
    fitting: Sequence[Sequence[Here]], folders: Mapping[str, frozenset[str]], mirrors: set[str]
) -> dict[str, frozenset[str]]:
    """The folders that hold settings of a table, the one that speaks where it can first."""

    def place(name: str) -> tuple[Any, ...]:
        held = [[one for one in own if one.keys & folders[name]] for own in fitting]
        found = [one for own in held for one in own]
        most = max(one.seeds for one in found), max(one.examples for one in found)
        return name in mirrors, sum(map(bool, held)), *most

    keys = {key for own in fitting for one in own for key in one.keys}
    names = [name for name in sorted(folders) if folders[name] & keys]
    return {name: folders[name] for name in sorted(names, key=place, reverse=True)}


def _speaking(
    candidates: Sequence[Here], order: Mapping[str, frozenset[str]]
) -> tuple[Here | None, str]:
    """Of the settings that are the printed one that of the first folder which holds any, and its name."""
    for name, keys in order.items():
        if own := [one for one in candidates if one.keys & keys]:
            return max(own, key=lambda one: (one.seeds, one.examples)), name
    return None, ""


def _where(here: Here, folder: str) -> str:
    """On what a setting was measured, and the folder that holds it."""
    limit = here.row["limit"]
    told = [str(here.row["model"]), count(here.seeds, "seed")]
    told += [describe_limit(None if pd.isna(limit) else int(limit)).removesuffix(" per split")]
    return f"{', '.join(told)} ({folder})"


def worded(laid: Laid) -> pd.DataFrame:
    """A printed table for people: what is printed, ours with its interval, and ours less printed."""
    pairs = laid.pairs
    told = pairs[["task", "defense", "setting"]].copy()
    for name in laid.measures:
        printed, ours = pairs[f"{name}_printed"], pairs[name]
        ends = zip(ours, pairs[f"{name}_low"], pairs[f"{name}_high"], strict=True)
        told[f"{NAMES[name]} printed"] = [number(value) for value in printed]
        told[f"{NAMES[name]} here"] = [ranged(*three) for three in ends]
        told[f"{NAMES[name]} apart"] = [number(value, "+.3f") for value in ours - printed]
    return told.assign(where=pairs["where"])
