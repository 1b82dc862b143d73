"""Which defense keeps most of what several are made to hide, where they keep as much utility."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, called, keys_of, listed, protects
from leakboard.leaderboards.tables import (
    CERTIFIED,
    FREE_LOSS,
    NOT_SHOWN,
    Comparison,
    Matched,
    Setting,
    at_same_utility,
    clearly_better,
    count,
    measured_settings,
    points_lost,
    setting_named,
    told,
)


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Of each goal the defenses that are made against it, two at least, each by what keeps most at the
    utility that they share with no protection, or that none of its settings has it."""
    for comparison in compared:
        for (goal, attribute), every in measured_settings(comparison):
            own = [
                one
                for one in every
                if one.row["undefended"] or _against(Goal(goal), str(one.row["defense"]))
            ]
            if len({one.row["defense"] for one in own if not one.row["undefended"]}) > 1:
                one = _finding(comparison, called(Goal(goal), attribute), own)
                yield from [one] if one else []


def _against(goal: Goal, defense: str) -> bool:
    """Whether it says that it is made against this goal; what says nothing, as `blackout`, is left out."""
    return goal in protects(defense) != frozenset(Goal)


def _finding(comparison: Comparison, what: str, own: Sequence[Setting]) -> Finding | None:
    same = at_same_utility(own)
    if same is None:
        return None
    shown = [one for one in same.inside if one.standing != NOT_SHOWN]
    parts = [
        f"{_named(one)} keeps {_kept(one)}, losing {_lost(one)} points{_beside(same, one)}"
        for one in same.inside
    ]
    parts += [f"{_named(one)} is not matched: {_apart(same, one)}" for one in same.apart]
    better = [
        f"{_named(a)} keeps more than {_named(b)}"
        for a, b in permutations(shown, 2)
        # Of what is proven alone it is known that it keeps no more than that.
        if a.standing == CERTIFIED and clearly_better(a.privacy, b.privacy)
    ]
    verdict = listed(better) or "nothing is told apart"
    if len(same.inside) < 2:
        verdict = "defenses are not compared, since their utility is not the same"
    one = max(same.inside or same.apart, key=lambda one: one.privacy.mean)
    row = one.row
    return Finding(
        rule="matched",
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}), of the privacy of {what} at the "
        f"same utility, within {FREE_LOSS:g} point of no protection by {same.by}: {'; '.join(parts)}: {verdict}.",
        task=comparison.task,
        model=comparison.model,
        settings=tuple(_named(each) for each in [*same.inside, *same.apart]),
        metric="privacy kept",
        figure=one.privacy.mean,
        interval=one.privacy.band,
        n=int(row["n"]),
        seeds=int(row["n_seeds"]),
        attack=str(row["attack"]),
        keys=tuple(
            key
            for each in [*same.inside, *same.apart, same.plain]
            for key in keys_of(comparison, each.row)
        ),
    )


def _named(one: Setting) -> str:
    return setting_named(str(one.row["defense"]), str(one.row["label"]))


def _kept(one: Setting) -> str:
    """What is kept of what guessing leaves, by which attack and over how many seeds."""
    low, high = one.privacy.band
    ends = "" if low != low else f" [{max(0.0, low):.2f}, {min(1.0, high):.2f}]"
    found = told(f"{one.privacy.mean:.2f}{ends}", one.standing)
    return f"{found} ({one.row['attack']}, {count(int(one.row['n_seeds']), 'seed')})"


def _apart(same: Matched, one: Setting) -> str:
    """By what a setting is too far from the others: what decides."""
    told = _on_trials(same, one)
    return f"on {same.by} it is {told}" if told else f"it loses {_lost(one)} points"


def _beside(same: Matched, one: Setting) -> str:
    told = _on_trials(same, one)
    return f" ({told} on {same.by})" if told else ""


def _on_trials(same: Matched, one: Setting) -> str:
    lost = same.on_trials(one)
    if lost is None:
        return ""
    return f"{abs(lost):.2f} points {'below' if lost > 0 else 'above'} no protection"


def _lost(one: Setting) -> str:
    return " ".join(points_lost(one.lost))
