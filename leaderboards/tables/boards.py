"""Leaderboards: each answers one question about records, with ranks that show ties as ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboards.tables.comparisons import Comparison, points_lost
from leaderboards.tables.deciding import STRONGEST
from leaderboards.tables.frame import Row
from leaderboards.tables.means import SETTING, average, by_setting, setting_of
from leaderboards.tables.parameters import choices
from leaderboards.tables.ranks import Contender, clearly_better, ranks, spelled
from leaderboards.tables.standing import (
    CERTIFIED,
    NOT_SHOWN,
    Standing,
    levels,
    standing,
    told,
)

PAPERS = "papers"
"""The board that stands apart: ours beside what a paper prints, see `leaderboards.tables.beside`."""
FREE_LOSS = 1.0
"""Points of utility that the question of the best privacy grants."""
Entry = dict[str, Any]


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


@dataclass(frozen=True)
class Setting:
    """One setting of a defense against one goal, over its seeds.

    Attributes:
        standing: only what is certified is ranked.
    """

    row: Row
    lost: Row
    utility: Contender
    privacy: Contender
    choice: str
    standing: Standing


RANKED = (
    "Privacy is EP divided by the EP that guessing leaves, or the untrained model where that is less (its "
    "floor): 1 where the strongest attack finds no more than that. Ranks: paired t-tests over seeds at 5 %, non-overlapping intervals where there is "
    "one seed; what cannot be told apart shares its ranks. Ranked is what is certified: at most (≤) so much is kept "
    "where an attack finds something that is not shown to work without the defense, and nothing is shown where it "
    "finds nothing."
)


def boards(compared: Sequence[Comparison], attack: str = STRONGEST) -> list[Board]:
    """All boards that these comparisons can answer, one by one and goal by goal.

    Args:
        attack: the one that decides, as for `leaderboards.tables.deciding.deciding`.
    """
    return [
        board
        for comparison in compared
        for (goal, attribute), settings in _settings(comparison, attack)
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


def _settings(
    comparison: Comparison, attack: str
) -> Iterator[tuple[tuple[str, str], list[Setting]]]:
    """By goal and attribute the settings under the attack that decides."""
    rows = comparison.decided(attack)
    rows = rows[rows["ep_level"] > 0]  # elsewhere there is nothing to find out
    rows = rows.assign(privacy=(rows["ep"] / rows["ep_level"]).clip(0, 1))
    lost = {setting_of(row): row for row in comparison.settings.to_dict("records")}
    told = [
        *SETTING,
        "seed",
        "utility",
        "utility_low",
        "utility_high",
        "privacy",
        "ep_low",
        "ep_high",
    ]
    for aim, same in rows.groupby(["goal", "attribute"], sort=False):
        found, seeds_of = [], by_setting(same[told])
        for mean in average(same, [*SETTING, "goal", "attribute"]).to_dict("records"):
            known, seeds = lost.get(setting_of(mean)), seeds_of[setting_of(mean)]
            if known is None:
                continue
            found.append(
                Setting(
                    row=mean | {"label": known["label"]},
                    lost=known,
                    utility=_contender(seeds, "utility", 1.0),
                    privacy=_contender(seeds, "privacy", float(mean["ep_level"]), "ep"),
                    choice=choices(str(mean["defense"]), [str(mean["params"])])[0],
                    standing=standing(mean),
                )
            )
        yield (str(aim[0]), str(aim[1])), found


def _contender(seeds: Sequence[Row], name: str, scale: float, ends: str = "") -> Contender:
    first, ends = seeds[0], ends or name
    values = {int(row["seed"]): float(row[name]) for row in seeds}
    return Contender(values, first[f"{ends}_low"] / scale, first[f"{ends}_high"] / scale)


def best_privacy(settings: Sequence[Setting]) -> list[Entry]:
    """The settings that lose at most `FREE_LOSS` points, by privacy."""
    free = [one for one in settings if one.lost["points"] <= FREE_LOSS]
    if all(one.row["undefended"] for one in free):
        return []
    sure = [one for one in free if one.standing == CERTIFIED]
    rest = sorted(
        (one for one in free if one not in sure), key=lambda one: one.standing == NOT_SHOWN
    )
    return [
        *_ranked(sure, [one.privacy for one in sure]),
        *({"rank": "–", **_described(one)} for one in rest),
    ]


def front(settings: Sequence[Setting]) -> list[Entry]:
    """Every setting, and whether another one is better in both utility and privacy."""

    def on(one: Setting) -> str:
        if one.standing != CERTIFIED:
            return "–"
        others = [o for o in settings if o is not one and o.standing == CERTIFIED]
        if any(_beaten(one, other, clearly_better) for other in others):
            return "no"
        higher = any(_beaten(one, other, lambda a, b: a.mean > b.mean) for other in others)
        return "not told apart" if higher else "yes"

    order = sorted(settings, key=lambda one: -one.utility.mean)
    return [{"on the front": on(one), **_described(one)} for one in order]


def _beaten(one: Setting, other: Setting, better: Any) -> bool:
    pairs = [(other.utility, one.utility), (other.privacy, one.privacy)]
    return all(better(theirs, mine) for theirs, mine in pairs)


def hypervolume(settings: Sequence[Setting]) -> list[Entry]:
    """Per defense the area below its steps in utility (as a share of what fine-tuning gains) × privacy.

    Settings that are not certified add nothing; a defense that has no other is not shown.
    """
    without = [one for one in settings if one.row["undefended"]]
    if not without:  # nothing tells what fine-tuning gains
        return []
    plain = max(without, key=lambda one: one.utility.mean)
    by_defense: dict[str, list[Setting]] = {}
    for one in settings:
        own = by_defense.setdefault(str(one.row["defense"]), [])
        own += [one] if one.standing == CERTIFIED else []
    found = []
    for defense, own in by_defense.items():
        if not own:
            continue
        seeds = set.intersection(*(set(one.privacy.values) for one in own))
        areas = {
            seed: _area(own, plain, seed) for seed in sorted(seeds & plain.utility.values.keys())
        }
        if areas:
            found.append((defense, len(own), Contender(areas, np.nan, np.nan)))
    placed = ranks([area for _, _, area in found])
    order = sorted(range(len(found)), key=lambda i: -found[i][2].mean)
    shown = [
        {
            "rank": spelled(*placed[i]) if len(found[i][2].values) > 1 else "–",
            "defense": found[i][0],
            "hypervolume": _banded(found[i][2]),
            "settings": found[i][1],
            "seeds": len(found[i][2].values),
        }
        for i in order
    ]
    empty = {"rank": "–", "hypervolume": NOT_SHOWN, "settings": 0, "seeds": 0}
    return [*shown, *({**empty, "defense": name} for name, own in by_defense.items() if not own)]


def _area(own: Sequence[Setting], plain: Setting, seed: int) -> float:
    base = float(plain.row["utility_chance"])
    gain = plain.utility.values[seed] - base
    worst: dict[str, tuple[float, float]] = {}
    for one in own:
        share = float(np.clip((one.utility.values[seed] - base) / gain, 0, 1)) if gain > 0 else 0.0
        u, p = worst.get(one.choice, (1.0, 1.0))
        worst[one.choice] = min(u, share), min(p, one.privacy.values[seed])
    area, reached = 0.0, 0.0
    for u, p in sorted(worst.values(), reverse=True):
        area += u * max(0.0, p - reached)
        reached = max(reached, p)
    return area


def cost(settings: Sequence[Setting]) -> list[Entry]:
    """What the customer pays for each setting, cheapest traffic first."""
    order = sorted(settings, key=lambda one: (one.lost["sent"], -one.privacy.mean))
    return [
        {**_described(one), "MB per epoch": f"{one.lost['sent']:.3g}"}
        for one in order
        if not pd.isna(one.lost["sent"])
    ]


def _ranked(entries: Sequence[Setting], values: Sequence[Contender]) -> list[Entry]:
    placed = ranks(values)
    order = sorted(range(len(entries)), key=lambda i: -values[i].mean)
    return [{"rank": spelled(*placed[i]), **_described(entries[i])} for i in order]


def _described(one: Setting) -> Entry:
    row, how = one.row, one.standing
    ep = f"{row['ep']:.3f} [{row['ep_low']:.3f}, {row['ep_high']:.3f}]"
    return {
        "defense": row["defense"],
        "setting": row["label"],
        "privacy": told(_banded(one.privacy), how),
        "EP": told(ep, how),
        "chance EP": levels(row),
        "lost": " ".join(points_lost(one.lost)),
        "attack": row["attack"],
        "seeds": row["n_seeds"],
        "flags": row["flags"],
    }


def _banded(value: Contender) -> str:
    low, high = value.band
    return f"{value.mean:.3f}" + (
        "" if np.isnan(low) else f" [{max(0.0, low):.3f}, {min(1.0, high):.3f}]"
    )


QUESTIONS = (
    (
        "best-privacy",
        f"Which defense keeps most for at most {FREE_LOSS:g} point of utility?",
        best_privacy,
        RANKED,
    ),
    (
        "front",
        "Which settings does no other one improve on in both utility and privacy?",
        front,
        "'Not told apart': another one is better in both means, but not beyond chance. " + RANKED,
    ),
    (
        "hypervolume",
        "Which defense offers the best choice between utility and privacy as a whole?",
        hypervolume,
        "The area under a defense's own steps, of 1: utility as a share of what fine-tuning gains over "
        "guessing, times privacy. It grows with the number of settings that were measured. "
        + RANKED,
    ),
    (
        "cost",
        "What does privacy cost in traffic?",
        cost,
        "Megabytes that cross the trust boundary per epoch of fine-tuning, both ways.",
    ),
)
