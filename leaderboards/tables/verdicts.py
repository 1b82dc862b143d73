"""In one word what is shown of a defense against one goal."""

from __future__ import annotations

from enum import StrEnum

from leakboard.bench.scoring import NEEDED
from leakboard.leaderboards.tables.evidence import DOUBTS, Found
from leakboard.leaderboards.tables.frame import Row, flags_of
from leakboard.leaderboards.tables.standing import CERTIFIED, IDLE, NOT_SHOWN, PROVEN, Standing


class Verdict(StrEnum):
    """What is shown of a defense against one goal; only the first two praise it."""

    PROTECTS = "protects"
    """By a certified attack: clearly less is found than without protection, nothing clearly above the
    level, and at least 0.8 of the privacy is kept."""
    PARTLY = "partly"
    """By a certified attack: clearly less is found than without protection, and with the whole interval
    at least 0.2 of the privacy is kept."""
    LEAKS = "leaks"
    """Something is clearly found, and it is not shown that much is kept. A success needs no certificate."""
    NOT_SHOWN = "not shown"
    """No attack is certified there, or what was measured says neither: no number, no rank and no colour
    stands there. Where an attack without a certificate finds something, at most so much (≤) is kept."""
    NOT_APPLICABLE = "not applicable"
    """Nothing that the defense sends can be read by such an attack."""


PRAISE = frozenset({Verdict.PROTECTS, Verdict.PARTLY})


def verdict(leak: Found, open_: Found | None, how: Standing, row: Row) -> Verdict:
    """What the strongest attack shows.

    Args:
        leak: what it finds here, and `open_` where nothing is protected, if that ran.
        how: where its result stands, see `leakboard.leaderboards.tables.standing`.
        row: its flags: some of them take the word of an attack that fails away.
    """
    if how == NOT_SHOWN:
        return Verdict.NOT_SHOWN
    doubted = DOUBTS & {*flags_of(row)}
    sure = how == CERTIFIED and not doubted and row["certificate"] >= NEEDED
    if sure and open_ is not None and leak.kept.low > open_.kept.high:
        if not leak.beats_guessing and leak.kept.value >= IDLE:
            return Verdict.PROTECTS
        if leak.kept.low >= NEEDED:
            return Verdict.PARTLY
    clear = leak.beats_guessing or how == PROVEN
    return Verdict.LEAKS if clear else Verdict.NOT_SHOWN
