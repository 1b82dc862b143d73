"""What boards ask: each question turns settings into the rows of an answer, best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.contracts import GLOSSARY
from leakboard.leaderboards.tables.comparisons import points_lost
from leakboard.leaderboards.tables.matching import FREE_LOSS, at_same_utility
from leakboard.leaderboards.tables.measured import Setting
from leakboard.leaderboards.tables.ranks import Contender, clearly_better, ranks, spelled
from leakboard.leaderboards.tables.standing import CERTIFIED, NOT_SHOWN, levels, told

Entry = dict[str, Any]


RANKED = (
    f"Privacy: {GLOSSARY['privacy']} Ranks: paired t-tests over seeds at 5 %, non-overlapping intervals where there is "
    "one seed; what cannot be told apart shares its ranks. Ranked is what is certified: at most (≤) so much is kept "
    "where an attack finds something that is not shown to work without the defense, and nothing is shown where it "
    "finds nothing."
)


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
        *(row for _, row in _ranked(sure, [one.privacy for one in sure])),
        *({"rank": "–", **_described(one)} for one in rest),
    ]


def matched(settings: Sequence[Setting]) -> list[Entry]:
    """Of each defense the setting that keeps most at the same utility, or that none has it."""
    found = at_same_utility(settings)
    if found is None:
        return []
    sure = [one for one in found.inside if one.standing == CERTIFIED]
    rest = [one for one in found.inside if one.standing != CERTIFIED]
    ranked = _ranked(sure, [one.privacy for one in sure])
    places = {id(one): row["rank"] for one, row in ranked}
    order = [*(one for one, _ in ranked), *rest, *found.apart, found.plain]
    places |= {id(one): "not matched" for one in found.apart}
    rows = []
    for one in order:
        row = {"rank": places.get(id(one), "–"), **_described(one)}
        if (lost := found.on_trials(one)) is not None:
            row["held-out cost"] = f"{lost:.2f}"
        rows.append(row | {"matched on": found.by})
    return rows


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


def _ranked(entries: Sequence[Setting], values: Sequence[Contender]) -> list[tuple[Setting, Entry]]:
    """Each with its row, the best first."""
    placed = ranks(values)
    order = sorted(range(len(entries)), key=lambda i: -values[i].mean)
    return [(entries[i], {"rank": spelled(*placed[i]), **_described(entries[i])}) for i in order]


def _described(one: Setting) -> Entry:
    row, how = one.row, one.standing
    ep = f"{row['ep']:.3f} [{row['ep_low']:.3f}, {row['ep_high']:.3f}]"
    return {
        "defense": row["defense"],
        "setting": row["label"],
        "privacy": told(_banded(one.privacy), how),
        "EP": told(ep, how),
        "EP at chance": levels(row),
        "cost": " ".join(points_lost(one.lost)),
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
        "matched",
        f"Which defense keeps most at the same utility, within {FREE_LOSS:g} point?",
        matched,
        "Of each defense the setting that keeps most whose mean utility lies within a point of no protection's "
        "and of that of the others here. 'Not matched': none does; its nearest setting stands there and is "
        "not compared. Which settings are matched is decided on held-out trials where each defense has some, "
        "without the settings that have none, else on the very figure that is reported; 'matched on' says "
        "which, and 'held-out cost' what a setting loses on those trials: below 0 it is better than no protection. "
        + RANKED,
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
