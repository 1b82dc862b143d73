"""What records show today, as sentences: each from a rule, with its numbers and the records behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.contracts import Goal
from leaderboards.tables.choosing import HIDES
from leaderboards.tables.comparisons import Comparison
from leaderboards.tables.evidence import Evidence, evidence

CALLED = {goal: name for name, goal in HIDES.items()}


@dataclass(frozen=True)
class Finding:
    """A claim and its evidence.

    Attributes:
        claim: the sentence.
        settings: which it is about, in words.
        figure: success of the attack, with its 95 % `interval`.
        attack: the strongest one, which is shown to work where nothing is protected.
        keys: of the records behind it.
    """

    claim: str
    settings: tuple[str, ...]
    figure: float
    interval: tuple[float, float]
    attack: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return self.claim


def findings(compared: Sequence[Comparison]) -> list[Finding]:
    """Which offers of the defenses lower which leak, and which leave it open.

    A leak is lowered where clearly less is found than without protection, and where then the interval
    reaches chance, no clear leak is left; that is claimed only where the attack is certified. Nothing
    is claimed where the interval reaches from chance to what is found without protection: that is no
    evidence in any direction.
    """
    found = (one for goal in Goal for one in evidence(compared, goal))
    return [
        _finding(one) for one in found if one.leak.beats_guessing or (one.certified and one.helps)
    ]


def _finding(one: Evidence) -> Finding:
    what = " ".join(filter(None, [CALLED[one.goal], one.attribute and f"({one.attribute})"]))
    lowered = "lowers the leak of" if one.certified and one.helps else "does not hide"
    verb = lowered if one.leak.beats_guessing else "shows no clear leak of"
    return Finding(
        claim=f"On {one.task} with {one.model}, cut {one.cut}, {one.setting} {verb} {what}: "
        f"{one.leak}; where nothing is protected {one.open}; it costs {one.cost} of utility over "
        f"{one.seeds} seed{'s' * (one.seeds > 1)}.",
        settings=(one.setting,),
        figure=one.leak.success.value,
        interval=(one.leak.success.low, one.leak.success.high),
        attack=one.leak.attack,
        keys=one.keys,
    )
