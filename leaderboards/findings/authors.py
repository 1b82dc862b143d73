"""Where the attacks of a defense's authors find much less than others do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, called
from leakboard.leaderboards.tables import PAPER, Comparison, Evidence, evidence


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each defense the setting that its authors' attacks flatter most, where others clearly find more."""
    most: dict[tuple[str, ...], tuple[Evidence, Evidence]] = {}
    for goal in Goal:
        theirs = {_where(one): one for one in evidence(compared, goal, PAPER)}
        for one in evidence(compared, goal):
            other = theirs.get(_where(one))
            if other is None or one.leak.kept.high >= other.leak.kept.low:
                continue
            group = (one.task, one.model, one.defense, goal, one.attribute)
            if group not in most or _gap(one, other) > _gap(*most[group]):
                most[group] = one, other
    yield from (_finding(one, other) for one, other in most.values())


def _where(one: Evidence) -> tuple[object, ...]:
    return one.task, one.model, one.cut, one.defense, one.choice, one.setup, one.attribute


def _gap(one: Evidence, other: Evidence) -> float:
    return other.leak.kept.value - one.leak.kept.value


def _finding(one: Evidence, other: Evidence) -> Finding:
    claim = (
        f"On {one.task} with {one.model}, cut {one.cut}, {one.setting} keeps {other.leak.kept.value:.2f} of "
        f"the privacy of {called(one.goal, one.attribute)} that guessing leaves, by the attacks of its authors "
        f"({other.leak.attack}), and {one.leak.kept.value:.2f} by the strongest: {one.leak}."
    )
    return Finding.of("authors", claim, one)
