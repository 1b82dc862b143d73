"""What each defense protects, what it does not, and what it costs: defense × goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Channel, Claim, Goal, Record, known_from
from leakboard.bench.methods import registry
from leakboard.bench.scoring import FLAGS
from leakboard.leaderboards.tables.comparisons import Comparison
from leakboard.leaderboards.tables.evidence import Found, found_by, unprotected
from leakboard.leaderboards.tables.frame import Row, rows_of
from leakboard.leaderboards.tables.looks import look
from leakboard.leaderboards.tables.means import SETTING, by_setting, setting_of
from leakboard.leaderboards.tables.parameters import SYMBOLS, choices
from leakboard.leaderboards.tables.standing import (
    CERTIFIED,
    IDLE,
    NOT_SHOWN,
    Standing,
    above_floor,
    standing,
    told,
)
from leakboard.leaderboards.tables.verdicts import Verdict, verdict

BUDGET = 3.0
"""Points of utility that a defense may lose by default."""
Aim = tuple[str, str]
"""A goal and, for attribute inference, the attribute; else ''."""
BySetting = Mapping[tuple[Any, ...], Sequence[Row]]


@dataclass(frozen=True)
class Shield:
    """How one defense stands against one goal.

    Attributes:
        kept: privacy by the strongest attack: EP divided by the EP that the level leaves, from 0 (everything
            is found) to 1 (no more than at the level): the share of the privacy that is kept. It can be
            compared between goals. None: not measured, or not shown.
        row: the mean over seeds of the strongest attack: ep, ep_low, ep_high, ep_level, attack, ….
        why: where there is no number, the reason.
        standing: whether `kept` is certified, the most that can be kept, or not shown; None: not
            measured.
        verdict: the same in one word.
        leak: what the strongest attack found, with intervals; None where nothing is shown.
    """

    kept: float | None
    row: Row
    why: str
    standing: Standing | None
    verdict: Verdict
    leak: Found | None = None

    @property
    def number(self) -> str:
        """What is kept in words; '' where nothing was measured."""
        if self.standing is None:
            return ""
        return told(f"{self.kept:.2f}", self.standing) if self.kept is not None else NOT_SHOWN

    @property
    def coloured(self) -> bool:
        """Whether a colour may say how much is kept: where a certificate stands behind it."""
        return self.standing == CERTIFIED

    def remarks(self, notes: dict[str, int]) -> str:
        """Numbers of the notes that belong to it, such as ' (1)'; new ones are added to `notes`."""
        flags = [flag for flag in str(self.row.get("flags", "")).split(",") if flag in FLAGS]
        texts = [f"{flag}: {FLAGS[flag]}" for flag in flags if flag != "uncertified-attack"]
        texts = [self.why] if self.kept is None else [*texts, *above_floor(self.row)]
        return "".join(f" ({notes.setdefault(text, len(notes) + 1)})" for text in texts)


@dataclass(frozen=True)
class Line:
    """One defense at the setting that its line stands for.

    Attributes:
        lost: points of utility against no protection: points, low, high, seeds.
        within: it loses no more than the budget; else this is its setting that loses least.
        sent: megabytes that cross the trust boundary per epoch of fine-tuning, both ways.
        local: what the customer computes himself.
        keys: of the records of this setting.
    """

    defense: str
    label: str
    lost: Row
    within: bool
    claim: Claim | None
    sent: float | None
    local: str
    shields: Mapping[Aim, Shield]
    keys: tuple[str, ...]

    @property
    def named(self) -> str:
        """The defense and the setting that its line stands for."""
        label = "" if self.label == self.defense else f" {self.label}".replace(" = ", "=")
        return self.defense + label

    @property
    def claimed(self) -> str:
        """The parameters of the formal guarantee in words, or '–'."""
        if self.claim is None:
            return "–"
        every = self.claim.parameters
        formal = {n: v for n, v in every.items() if n in ("epsilon", "delta", "eta")}
        return ", ".join(f"{_named(n)} = {_number(v)}" for n, v in (formal or every).items())


def _named(parameter: str) -> str:
    """A parameter of a guarantee in words, such as 'ε per vector'."""
    return " ".join(SYMBOLS.get(part, part) for part in parameter.split("_"))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Matrix:
    """The lines of one comparison; `aims` are its columns.

    Attributes:
        idle: the columns in which the attacks leave to a model without any protection more than
            `IDLE` of the privacy that guessing leaves: no attack there works yet.
    """

    comparison: Comparison
    budget: float
    aims: Sequence[Aim]
    lines: Sequence[Line]
    idle: frozenset[Aim]


def matrices(compared: Sequence[Comparison], budget: float = BUDGET) -> list[Matrix]:
    """One matrix for each comparison that holds several defenses.

    A defense stands at one setting, with its protection on, for all goals: of those that lose at most
    `budget` points of utility on the mean, the one that keeps most against what its authors want to
    protect (against all goals, where it has no authors or they measure none of these).
    """
    several = [one for one in compared if _defenses(one) > 1]
    for one in several:
        if ("matrix", budget) not in one.made:
            one.made["matrix", budget] = _matrix(one, budget)
    return [one.made["matrix", budget] for one in several]


def _defenses(comparison: Comparison) -> int:
    return int(comparison.settings["defense"].nunique())


def _matrix(comparison: Comparison, budget: float) -> Matrix:
    rows = comparison.rows
    strongest = comparison.deciding().assign(
        kept=lambda means: (means["ep"] / means["ep_level"]).clip(0, 1)
    )
    told = rows[rows["goal"] != ""][["goal", "attribute"]].drop_duplicates()
    measured = set(zip(strongest["goal"], strongest["attribute"], strict=True))
    order = [str(goal) for goal in Goal]
    aims = sorted(
        (aim for aim in told.itertuples(index=False, name=None) if aim in measured),
        key=lambda aim: (order.index(aim[0]), aim[1]),
    )
    cells = by_setting(rows.drop_duplicates("key")[[*SETTING, "key"]])
    means, everyone = by_setting(strongest), rows_of(strongest)
    every = rows_of(rows[["key", "goal", "status", "reason"]])
    lines = []
    for name, settings in comparison.settings.groupby("defense", sort=False):
        chosen = _chosen(str(name), settings, means, aims, budget)
        here = setting_of(chosen)
        keys = {cell["key"] for cell in cells[here]}
        tried = [row for row in every if row["key"] in keys]
        shields = {
            aim: _shield(aim, tried, means.get(here, ()), everyone, str(name)) for aim in aims
        }
        lines.append(_line(chosen, tried, shields, comparison.records))
    return Matrix(comparison, budget, aims, lines, _idle(strongest))


def _idle(strongest: pd.DataFrame) -> frozenset[Aim]:
    """The goals in which even without protection most is kept."""
    least: dict[Aim, float] = {}
    for row in rows_of(strongest[strongest["undefended"]]):
        aim = (str(row["goal"]), str(row["attribute"]))
        least[aim] = min(row["kept"], least.get(aim, 1.0))
    return frozenset(aim for aim, kept in least.items() if kept > IDLE)


def _chosen(
    defense: str, settings: pd.DataFrame, means: BySetting, aims: Sequence[Aim], budget: float
) -> Row:
    """The setting that stands for a defense; `over`: it loses more than the budget."""
    # With its protection off it is no defense; that setting is there to certify the attacks.
    if not settings["undefended"].all():
        settings = settings[~settings["undefended"]]
    own = look(defense).measured_by
    wanted = [aim for aim in aims if aim[0] in own] or list(aims)
    kept = [_kept(means.get(setting_of(row), ()), wanted) for row in rows_of(settings)]
    # What may befall a choice is no choice: its worst case speaks for it.
    offers = settings.assign(kept=kept, choice=choices(defense, settings["params"]))
    offer = offers.groupby(["choice", "cut", "setup"])
    worst, lost = offer["kept"].transform("min"), offer["points"].transform("max")
    over = lost > budget
    # Beyond the budget the least loss decides, inside it the protection.
    best = settings.assign(over=over, rank=lost.where(over, -worst), kept=kept)
    return best.sort_values(["over", "rank", "kept"], kind="stable").iloc[0].to_dict()


def _line(
    chosen: Row,
    tried: Sequence[Row],
    shields: Mapping[Aim, Shield],
    records: Sequence[Record],
) -> Line:
    """The line of one setting, of which `tried` are all results."""
    defense = str(chosen["defense"])
    keys = {row["key"] for row in tried}
    records = [record for record in records if record.key in keys]
    return Line(
        defense=defense,
        label=str(chosen["label"]),
        lost={name: chosen[name] for name in ("points", "low", "high", "seeds")},
        within=not chosen["over"],
        claim=next((record.claim for record in records if record.claim), None),
        sent=None if pd.isna(chosen["sent"]) else float(chosen["sent"]),
        local=_local(records[0]),
        shields=shields,
        keys=tuple(record.key for record in records),
    )


def _kept(means: Sequence[Row], wanted: Sequence[Aim]) -> float:
    """The mean over the wanted goals; what was not measured or is not certified counts as nothing."""
    sure = (row for row in means if standing(row) == CERTIFIED)
    found = {(row["goal"], row["attribute"]): row["kept"] for row in sure}
    return float(sum(found.get(aim, 0.0) for aim in wanted)) / max(1, len(wanted))


def _shield(
    aim: Aim, tried: Sequence[Row], means: Sequence[Row], everyone: Sequence[Row], defense: str
) -> Shield:
    """How a setting stands against a goal; `means` are its own, `everyone` those of all settings."""
    row = next((row for row in means if (row["goal"], row["attribute"]) == aim), None)
    if row is None:
        why, fits = _why(aim[0], tried, defense)
        word = Verdict.NOT_SHOWN if fits else Verdict.NOT_APPLICABLE
        return Shield(None, {}, why, None, word)
    how = standing(row)
    if how == NOT_SHOWN:
        why = f"{row['attack']}: {FLAGS['uncertified-attack']}"
        return Shield(None, row, why, how, Verdict.NOT_SHOWN)
    goal = [other for other in everyone if other["goal"] == aim[0]]
    open_, leak = unprotected(row, goal), found_by(row)
    word = verdict(leak, None if open_ is None else found_by(open_), how, row)
    if word == Verdict.NOT_SHOWN:
        why = f"{row['attack']} finds nothing clear, and it is not shown that the defense is why"
        return Shield(None, row, why, NOT_SHOWN, word)
    return Shield(row["kept"], row, "", how, word, leak)


def _why(goal: str, tried: Sequence[Row], defense: str) -> tuple[str, bool]:
    """Why there is no result, and whether there could have been one: something fits what is sent."""
    known = registry.find(defense, registry.defenses())
    if known is not None:
        readers = [
            kind.threat.reads for kind in registry.attacks().values() if goal in kind.threat.goals
        ]
        if not any(reads & known_from(known.emits) for reads in readers):
            if known.emits == {Channel.MODEL}:
                return "nothing but the trained model leaves the owner", False
            if goal in (Goal.MEMBERSHIP, Goal.MEMORISATION):
                return "no trained model is handed out", False
            return "nothing that it sends is read by such an attack", False
    idle = [row for row in tried if row["goal"] == goal and row["status"] != "ok"]
    fits = not idle or any(row["status"] != "skipped" for row in idle)
    return next((row["reason"] for row in idle if row["reason"]), "not measured"), fits


def _local(record: Record) -> str:
    known = registry.find(record.cell.defense.name, registry.defenses())
    emits = known.emits if known else frozenset()
    if emits == {Channel.MODEL}:
        return "trains the whole model"
    bottom = record.cost and record.cost.bottom
    if bottom and bottom.parameters:
        return f"{bottom.parameters / 1e6:.3g} M parameters, {bottom.flops / 1e6:.3g} MFLOP per example"
    return "sends tokens" if Channel.TOKENS in emits else "runs the part below the cut"
