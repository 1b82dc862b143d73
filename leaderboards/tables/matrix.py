"""What each defense protects, what it does not, and what it costs: defense × goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.contracts import Channel, Claim, Goal, Record
from bench.methods import registry
from bench.scoring import FLAGS
from leaderboards.tables.choices import choices
from leaderboards.tables.comparisons import Comparison, Row, by_setting, setting_of
from leaderboards.tables.frontier import PAPER, SETTING, average, deciding
from leaderboards.tables.looks import look

BUDGET = 3.0
"""Points of utility that a defense may lose by default."""
Aim = tuple[str, str]
"""A goal and, for attribute inference, the attribute; else ''."""
Tables = Mapping[tuple[Any, ...], Sequence[Row]]
"""Rows by their setting."""


@dataclass(frozen=True)
class Shield:
    """How one defense stands against one goal.

    Attributes:
        kept: EP divided by the EP that an attacker leaves who reads nothing: 1 where the strongest
            attack finds no more than he does, 0 where it finds everything. None: not measured.
        row: the mean over seeds of the strongest attack: ep, ep_low, ep_high, ep_chance, attack, ….
        authors: EP by the attack of the defense's authors, where that is not the strongest.
        why: where nothing was measured, the reason.
    """

    kept: float | None
    row: Row
    authors: float | None
    why: str

    def remarks(self, notes: dict[str, int]) -> str:
        """Numbers of the notes that belong to it, such as ' (1)'; new ones are added to `notes`."""
        flags = [flag for flag in str(self.row.get("flags", "")).split(",") if flag]
        texts = [f"{flag}: {FLAGS[flag]}" for flag in flags] or [self.why] * (self.kept is None)
        return "".join(f" ({notes.setdefault(text, len(notes) + 1)})" for text in texts)


@dataclass(frozen=True)
class Line:
    """One defense at the setting that its line stands for.

    Attributes:
        lost: points of utility against no protection: points, low, high, seeds.
        within: it loses no more than the budget; else this is its setting that loses least.
        others: how many further settings of it were measured.
        sent: megabytes that cross the trust boundary per epoch of fine-tuning, both ways.
        local: what the customer computes himself.
    """

    defense: str
    label: str
    params: str
    lost: Row
    within: bool
    others: int
    claim: Claim | None
    sent: float | None
    local: str
    shields: Mapping[Aim, Shield]
    keys: Sequence[str]


@dataclass(frozen=True)
class Matrix:
    """The lines of one comparison; `aims` are its columns."""

    comparison: Comparison
    budget: float
    aims: Sequence[Aim]
    lines: Sequence[Line]


def matrices(compared: Sequence[Comparison], budget: float = BUDGET) -> list[Matrix]:
    """One matrix for each comparison that holds several defenses.

    A defense stands at one setting, with its protection on, for all goals: of those that lose at most
    `budget` points of utility on the mean, the one that keeps most against what its authors want to
    protect (against all goals, where it has no authors or they measure none of these).
    """
    return [_matrix(one, budget) for one in compared if _defenses(one) > 1]


def _defenses(comparison: Comparison) -> int:
    return int(comparison.settings["defense"].nunique())


def _matrix(comparison: Comparison, budget: float) -> Matrix:
    rows = comparison.rows
    by = [*SETTING, "goal", "attribute"]
    strongest = average(deciding(rows), by).assign(
        kept=lambda means: (means["ep"] / means["ep_chance"]).clip(0, 1)
    )
    authors = average(deciding(rows, PAPER), by)
    told = rows[rows["goal"] != ""][["goal", "attribute"]].drop_duplicates()
    measured = set(zip(strongest["goal"], strongest["attribute"], strict=True))
    order = [str(goal) for goal in Goal]
    aims = sorted(
        (aim for aim in told.itertuples(index=False, name=None) if aim in measured),
        key=lambda aim: (order.index(aim[0]), aim[1]),
    )
    told_of = rows[[*SETTING, "key", "goal", "status", "reason"]]
    tables = by_setting(told_of), by_setting(strongest), by_setting(authors)
    lines = [
        _line(name, settings, comparison, *tables, aims, budget)
        for name, settings in comparison.settings.groupby("defense", sort=False)
    ]
    return Matrix(comparison, budget, aims, lines)


def _line(
    defense: object,
    settings: pd.DataFrame,
    comparison: Comparison,
    rows: Tables,
    strongest: Tables,
    authors: Tables,
    aims: Sequence[Aim],
    budget: float,
) -> Line:
    # With its protection off it is no defense; that setting is there to certify the attacks.
    if not settings["undefended"].all():
        settings = settings[~settings["undefended"]]
    own = look(str(defense)).measured_by
    wanted = [aim for aim in aims if aim[0] in own] or list(aims)
    own_kept = [
        _kept(strongest.get(setting_of(row), ()), wanted) for row in settings.to_dict("records")
    ]
    # What may befall a choice is no choice: its worst case speaks for it.
    offers = settings.assign(kept=own_kept, choice=choices(str(defense), settings["params"]))
    offer = offers.groupby(["choice", "cut", "setup"])
    worst, lost = offer["kept"].transform("min"), offer["points"].transform("max")
    over = lost > budget
    # Beyond the budget the least loss decides, inside it the protection.
    best = settings.assign(over=over, rank=lost.where(over, -worst), kept=own_kept)
    chosen = best.sort_values(["over", "rank", "kept"], kind="stable").iloc[0].to_dict()
    mine, found, theirs = (
        table.get(setting_of(chosen), ()) for table in (rows, strongest, authors)
    )
    keys = list(dict.fromkeys(row["key"] for row in mine))
    records = [record for record in comparison.records if record.key in keys]
    shields = {aim: _shield(aim, mine, found, theirs, str(defense)) for aim in aims}
    return Line(
        defense=str(defense),
        label=str(chosen["label"]),
        params=str(chosen["params"]),
        lost={name: chosen[name] for name in ("points", "low", "high", "seeds", "undefended")},
        within=not chosen["over"],
        others=len(settings) - 1,
        claim=next((record.claim for record in records if record.claim), None),
        sent=None if pd.isna(chosen["sent"]) else float(chosen["sent"]),
        local=_local(records[0]),
        shields=shields,
        keys=keys,
    )


def _kept(means: Sequence[Row], wanted: Sequence[Aim]) -> float:
    """The mean over the wanted goals; what was not measured there counts as nothing shown."""
    found = {(row["goal"], row["attribute"]): row["kept"] for row in means}
    return float(sum(found.get(aim, 0.0) for aim in wanted)) / max(1, len(wanted))


def _shield(
    aim: Aim, rows: Sequence[Row], strongest: Sequence[Row], authors: Sequence[Row], defense: str
) -> Shield:
    found = [row for row in strongest if (row["goal"], row["attribute"]) == aim]
    if not found:
        return Shield(None, {}, None, _why(aim[0], rows, defense))
    row = found[0]
    theirs = [
        other["ep"]
        for other in authors
        if (other["goal"], other["attribute"]) == aim
        and look(defense).measured_by.get(Goal(aim[0]))
    ]
    return Shield(row["kept"], row, theirs[0] if theirs else None, "")


def _why(goal: str, rows: Sequence[Row], defense: str) -> str:
    known = registry.defenses().get(defense)
    if known is not None:
        readers = [
            kind.threat.reads for kind in registry.attacks().values() if goal in kind.threat.goals
        ]
        if not any(reads & known.emits for reads in readers):
            if known.emits == {Channel.MODEL}:
                return "nothing but the trained model leaves the owner"
            if goal in (Goal.MEMBERSHIP, Goal.MEMORISATION):
                return "no trained model is handed out"
            return "nothing that it sends is read by such an attack"
    idle = (row["reason"] for row in rows if row["goal"] == goal and row["status"] != "ok")
    return next(filter(None, idle), "not measured")


def _local(record: Record) -> str:
    known = registry.defenses().get(record.cell.defense.name)
    emits = known.emits if known else frozenset()
    if emits == {Channel.MODEL}:
        return "trains the whole model"
    bottom = record.cost and record.cost.bottom
    if bottom and bottom.parameters:
        return f"{bottom.parameters / 1e6:.3g} M parameters, {bottom.flops / 1e6:.3g} MFLOP per example"
    return "sends tokens" if Channel.TOKENS in emits else "runs the part below the cut"
