"""What each offer of a defense does to what it is made against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, called, protects
from leakboard.leaderboards.tables import Comparison, Evidence, evidence


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Which offers of the defenses lower the leak that they are made against, and which leave it open.

    A leak is lowered where clearly less is found than without protection, and where then the interval
    reaches chance, no clear leak is left; that is claimed only where the attack is certified. Nothing
    is claimed where the interval reaches from chance to what is found without protection: that is no
    evidence in any direction.
    """
    for goal in Goal:
        for one in evidence(compared, goal):
            clear = one.leak.beats_guessing or (one.certified and one.helps)
            if goal in protects(one.defense) and clear:
                yield _finding(one)


def _finding(one: Evidence) -> Finding:
    lowered = "lowers the leak of" if one.certified and one.helps else "does not hide"
    verb = lowered if one.leak.beats_guessing else "shows no clear leak of"
    claim = (
        f"On {one.task} with {one.model}, cut {one.cut}, {one.setting} {verb} "
        f"{called(one.goal, one.attribute)}: {one.leak}; where nothing is protected {one.open}; it costs "
        f"{one.cost} of utility over {one.seeds} seed{'s' * (one.seeds > 1)}."
    )
    return Finding.of("setting", claim, one)
