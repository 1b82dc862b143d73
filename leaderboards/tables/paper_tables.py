"""Papers' printed tables, setting by setting, with our measurements of the same quantities.

EP (empirical privacy, 1 − success / ceiling) is the papers' quantity and used in no other table. It is measured by the
attacks of a paper's authors, also for baselines. Models differ, so the numbers need not agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isnan
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Channel, Estimate, Goal
from leakboard.bench.records import Row, rows_of
from leakboard.bench.suites import Suite
from leakboard.bench.tasks import copies_of
from leakboard.leaderboards.tables.compare import PERPLEXITY
from leakboard.leaderboards.tables.defenses import (
    attacks_of_authors,
    class_of,
    describe_limit,
    format_parameter,
    format_parameters,
    varying_names,
)
from leakboard.leaderboards.tables.intervals import (
    MISSING,
    Interval,
    count,
    format_interval,
    format_number,
    mean_interval,
)
from leakboard.leaderboards.tables.printed import (
    MEASURES,
    artefacts,
    mirroring_suites,
    printed_table,
)
from leakboard.leaderboards.tables.result import Result
from leakboard.leaderboards.tables.results import ResultsTable
from leakboard.leaderboards.tables.settings import Setting

NAMES = {
    "utility": "utility",
    "ep": "EP",
    "exposure": "exposure",
    "perplexity": "perplexity",
    "gradients": "XGBoost on gradients",
}
"""Names of the measures in tables."""


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper for one model.

    Attributes:
        frame: one row per printed setting, for readers: task, defense, setting, each measure as printed and as measured
            with the difference, and where ours was measured (model, seeds, folder), or why it was not.
        notes: differences of the suites that mirror it.
    """

    paper: str
    artefact: str
    model: str
    frame: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Such as 'SAP, Table 3, roberta-large'."""
        return f"{self.paper}, {self.artefact}, {self.model}"


def paper_tables(
    table: ResultsTable,
    folders: Mapping[str, frozenset[str]],
    only: Iterable[tuple[str, str]] | None = None,
) -> list[PaperTable]:
    """All printed tables, for each of their models.

    A setting matches a printed one if task, defense and all stated parameters agree (the papers' `split` is our cut).
    Parameters that are not stated have the value of the suite that mirrors the table. Settings with most of the printed
    measures count, in the mirroring suite's folder first, then in that with most seeds, examples and printed settings.

    Args:
        folders: keys of the records by folder.
        only: pairs of paper and table, such as [("SAP", "Table 3")].
    """
    found = []
    for paper, artefact in artefacts() if only is None else only:
        known, suites = printed_table(paper, artefact), mirroring_suites(paper, artefact)
        measured = _measured(table, known, folders)
        notes = tuple(one.paper.note for one in suites if one.paper and one.paper.note)
        for model, printed in known.groupby("model", sort=False):
            shown = [name for name in MEASURES if printed[name].notna().any()]
            tasks = [own for _, own in printed.groupby("task", sort=False)]
            rows = [row for own in tasks for row in _rows(own, shown, measured, suites)]
            found.append(PaperTable(paper, artefact, str(model), pd.DataFrame(rows), notes))
    return found


def nearest_printed(one: Result) -> tuple[float, float, str] | None:
    """The printed EP of the defense on this task whose parameters agree most and whose knob is nearest.

    Returns:
        The printed EP, ours by the strongest attack at this setting, and where the printed one stands.
    """
    stated = {**json.loads(one.setting.params), "split": one.setting.cut}
    knob, value = class_of(one.defense).knob, one.setting.knob_value

    def place(row: Row) -> tuple[int, float]:
        params = json.loads(row["params"])
        apart = abs((params.get(knob) or inf) - value) if knob in params else 0.0
        return sum(stated.get(n) == v for n, v in params.items() if n != knob), -apart

    own = {"task": one.setting.task, "defense": one.defense, "goal": one.goal.value}
    row = max(
        (row for row in _printed_eps() if own.items() <= row.items()), key=place, default=None
    )
    if row is None:
        return None
    words = format_parameters(row["params"], [knob or ""])
    where = "; ".join(filter(None, [words, f"{row['artefact']}, {row['model']}"]))
    return row["ep"], _ep(one).value, where


@cache
def _printed_eps() -> list[Row]:
    tables = [printed_table(paper, artefact) for paper, artefact in artefacts()]
    return [row for table in tables for row in rows_of(table.dropna(subset=["ep"]))]


@dataclass(frozen=True)
class _Measured:
    """A measured setting with its parameters as in papers, and the papers' quantities."""

    setting: Setting
    stated: Mapping[str, Any]
    means: Mapping[str, Interval]
    folders: Sequence[str]

    def agrees(self, stated: Mapping[str, Any]) -> bool:
        return all(self.stated.get(name, "") == value for name, value in stated.items())

    @property
    def weight(self) -> tuple[int, float]:
        limit = self.setting.first.cell.limit
        return len(self.setting.seeds), inf if limit is None else limit


def _measured(
    table: ResultsTable, known: pd.DataFrame, folders: Mapping[str, frozenset[str]]
) -> list[_Measured]:
    tasks, defenses = set(known["task"]), set(known["defense"])
    groups = [
        group
        for group in table.groups
        if any(one.task in tasks and one.defense in defenses for one in group.settings)
    ]
    eps: dict[int, Interval] = {}
    goal = Goal(known["goal"].iloc[0]) if known["goal"].iloc[0] else None
    if goal is not None:
        readers = [reader for one in defenses if (reader := attacks_of_authors(one, goal))]
        theirs = ResultsTable([], groups).under(
            lambda candidate: any(reads(candidate) for reads in readers)
        )
        eps = {id(row.setting): _ep(row) for row in theirs.select(goal=goal)}
    found = []
    for one in ResultsTable([], groups).settings:
        attacked = any(leak.status == "ok" for leak in one.leaks)
        if one.task in tasks and one.defense in defenses and attacked:
            means = {"utility": one.utility, "ep": eps.get(id(one), MISSING), **_others(one)}
            kept = {name: mean for name, mean in means.items() if not mean.is_missing}
            own = [name for name, keys in folders.items() if not keys.isdisjoint(one.keys)]
            found.append(_Measured(one, _stated(one), kept, own))
    return [one for one in found if "utility" in one.means]


def _ep(row: Result) -> Interval:
    value, low, high = (1 - success / row.ceiling for success in row.success.ends)
    return Interval(value, high, low)


def _others(one: Setting) -> dict[str, Interval]:
    """Means over seeds of exposure, perplexity, and the success of XGBoost on gradients."""
    found: dict[str, list[Interval]] = {}
    for record in one.records.values():
        seen: dict[str, Estimate] = {}
        if PERPLEXITY in record.measures:
            seen["perplexity"] = record.measures[PERPLEXITY]
        for leak in record.leaks:
            if leak.status != "ok" or leak.success is None:
                continue
            if leak.metric == "exposure" and copies_of(leak.view) > 0:
                seen.setdefault("exposure", leak.success)
            if leak.attack.name == "xgboost" and leak.channel == Channel.GRADIENTS:
                seen.setdefault("gradients", leak.success)
        for name, success in seen.items():
            found.setdefault(name, []).append(Interval.of(success))
    return {name: mean_interval([x.value for x in own], own[0]) for name, own in found.items()}


def _stated(one: Setting) -> dict[str, Any]:
    stated = {**json.loads(one.params), "split": one.cut}
    plant = one.first.cell.plant
    if plant and plant.canaries and len(plant.copies) == 1:
        stated["copies"] = plant.copies[0]
    return stated


def _rows(
    printed: pd.DataFrame,
    measures: Sequence[str],
    measured: Sequence[_Measured],
    suites: Sequence[Suite],
) -> Iterator[dict[str, str]]:
    """Rows of the printed settings of one task, for readers."""
    theirs = rows_of(printed)
    knobs = {class_of(row["defense"]).knob or "" for row in theirs}
    shown = sorted({*varying_names(printed["params"]), *knobs})
    near = [[one for one in measured if _is_printed(one, row, suites)] for row in theirs]
    fitting = []
    for own, row in zip(near, theirs, strict=True):
        held = [sum(not pd.isna(row[name]) for name in one.means) for one in own]
        fitting.append([one for one, n in zip(own, held, strict=True) if n == max(held) > 0])
    order = _folders_in_order(fitting, {one.name for one in suites})
    for row, alike, candidates in zip(theirs, near, fitting, strict=True):
        words = format_parameters(row["params"], shown).replace("split =", "cut =")
        cells = {"task": row["task"], "defense": row["defense"], "setting": words}
        one, folder = _counting(candidates, order)
        for name in measures:
            value, ours = float(row[name]), one.means.get(name, MISSING) if one else MISSING
            gap = ours.value - value
            cells[f"{NAMES[name]} printed"] = format_number(value)
            cells[f"{NAMES[name]} here"] = format_interval(MISSING if isnan(value) else ours)
            cells[f"{NAMES[name]} difference"] = "–" if isnan(gap) else f"{gap:+z.2f}"
        if one:
            where = f"{one.setting.model}, {count(len(one.setting.seeds), 'seed')}, "
            where += f"{describe_limit(one.setting.first.cell.limit).removesuffix(' per split')} ({folder})"
        else:
            why = "what the paper measures was not" if alike else _why_not(row, measured)
            where = f"not measured: {why}"
        yield cells | {"measured on": where}


def _is_printed(one: _Measured, theirs: Row, suites: Sequence[Suite]) -> bool:
    if (one.setting.task, one.setting.defense) != (theirs["task"], theirs["defense"]):
        return False
    stated = json.loads(theirs["params"])
    if not one.agrees(stated):
        return False
    rows = [row.defense for suite in suites for row in suite.defenses]
    chosen = [own.params for own in rows if own.name == theirs["defense"]]
    return not chosen or any(
        all(one.stated.get(name) == own[name] for name in own.keys() - stated.keys())
        for own in chosen
    )


def _folders_in_order(fitting: Sequence[Sequence[_Measured]], mirrors: set[str]) -> list[str]:
    def place(name: str) -> tuple[Any, ...]:
        held = [[one for one in own if name in one.folders] for own in fitting]
        seeds, limit = max(one.weight for own in held for one in own)
        return name in mirrors, seeds, limit, sum(map(bool, held))

    names = {name for own in fitting for one in own for name in one.folders}
    return sorted(sorted(names), key=place, reverse=True)


def _counting(
    candidates: Sequence[_Measured], folders: Sequence[str]
) -> tuple[_Measured | None, str]:
    """The matching setting in the first folder that has one, and the folder's name."""
    for name in folders:
        if own := [one for one in candidates if name in one.folders]:
            return max(own, key=lambda one: one.weight), name
    return None, ""


def _why_not(theirs: Row, measured: Sequence[_Measured]) -> str:
    """Reason why no measured setting matches the printed one."""
    task, defense = theirs["task"], theirs["defense"]
    of_task = [one for one in measured if one.setting.task == task]
    own = [one for one in of_task if one.setting.defense == defense]
    if not own:
        return f"no records of {f'{defense} on ' if of_task else ''}{task}"
    stated = json.loads(theirs["params"])
    missing = [
        _missing(name, value, own)
        for name, value in stated.items()
        if not any(one.agrees({name: value}) for one in own)
    ]
    if missing:
        return "; ".join(missing)
    if any(one.agrees(stated) for one in own):
        return "only with other values of what the paper does not state"
    return "each of its values was measured, but not all of them together"


def _missing(name: str, value: object, own: Sequence[_Measured]) -> str:
    if name == "split":
        return f"no cut after block {value}"
    known = {one.stated[name] for one in own if name in one.stated}
    numbers = sorted(one for one in known if isinstance(one, int | float))
    if isinstance(value, int | float) and numbers:
        return f"no {format_parameter(name, value)} ({', '.join(f'{one:g}' for one in numbers)})"
    return f"no {format_parameter(name, value)}"
