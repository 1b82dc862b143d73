"""What each defense leaks on the goals that it is not made against: no paper prints that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, called, listed, protects
from leakboard.leaderboards.tables import Comparison, Evidence, count, evidence


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """What is clearly found at every setting of a defense, though another goal is its own.

    The setting at which least is found speaks: what leaks there leaks everywhere. A success needs no
    certificate.
    """
    for goal in Goal:
        offers: dict[tuple[str, str, str, str], list[Evidence]] = {}
        for one in evidence(compared, goal):
            if goal not in protects(one.defense):
                offers.setdefault((one.task, one.model, one.defense, one.attribute), []).append(one)
        for own in offers.values():
            if all(one.leak.beats_guessing for one in own):
                yield _finding(own)


def _finding(own: Sequence[Evidence]) -> Finding:
    least = max(own, key=lambda one: one.leak.kept.value)
    made = listed([called(goal, "") for goal in Goal if goal in protects(least.defense)])
    every = "at its one setting" if len(own) == 1 else f"at each of {count(len(own), 'setting')}"
    claim = (
        f"On {least.task} with {least.model}, {least.defense}, made to hide {made}, gives away "
        f"{called(least.goal, least.attribute)} {every}: where least is found, at {least.setting}, "
        f"{least.leak}."
    )
    return Finding.of("elsewhere", claim, least, own)
