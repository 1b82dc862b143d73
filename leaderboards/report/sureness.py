"""How sure a report is: what stands behind its numbers, and what nobody tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from leakboard.bench.scoring import FLAGS
from leakboard.leaderboards.report.protection import Protection
from leakboard.leaderboards.report.readings import SUBJECTS, Reading
from leakboard.leaderboards.tables import NOT_SHOWN, counted


def sureness(
    readings: Sequence[Reading], protection: Protection | None, leaks: pd.DataFrame
) -> list[str]:
    """Sentences, those that weigh most first.

    Args:
        leaks: every attack with its status and reason, as a frame of records or of leaks has them.
    """
    return [*_numbers(readings), *_doubts(readings, protection), *_untried(readings, leaks)]


def _numbers(readings: Sequence[Reading]) -> Iterator[str]:
    yield (
        "Numbers in brackets are ends of a 95 % interval. What is found is proven: the attack did it. "
        "What is not found is evidence only where the same attack works with the protection off, and never a "
        "proof: another attack may find more."
    )
    alone = [one.subject.lower() for one in readings if one.seeds == 1]
    if alone:
        yield (
            f"One run stands behind {', '.join(alone)}: the interval is over its examples, and another run "
            "may differ by more."
        )


def _doubts(readings: Sequence[Reading], protection: Protection | None) -> Iterator[str]:
    hidden = [one for one in readings if one.standing == NOT_SHOWN]
    if hidden:
        told = "; ".join(f"{one.subject.lower()} ({one.attack})" for one in hidden)
        yield f"Nothing is shown of {told}: no attack that was tried there is known to work."
    if protection is None:
        return
    doubts = dict.fromkeys(doubt for one in protection.evidence for doubt in one.doubts)
    yield from (f"{doubt}: {FLAGS[doubt]}." for doubt in doubts)
    yield (
        f"What protects was measured on {protection.task}, with the models that the table names. On your texts and "
        "your model cost and leak are others; the order of the defenses is what carries over best."
    )


def _untried(readings: Sequence[Reading], leaks: pd.DataFrame) -> Iterator[str]:
    known = {one.goal for one in readings}
    missing = [subject for goal, subject in SUBJECTS.items() if goal not in known]
    if missing:
        yield f"Not measured here: {', '.join(subject.lower() for subject in missing)}."
    broken = leaks[~leaks["status"].isin(["ok", "skipped"])]
    if len(broken):
        yield f"{counted(len(broken), 'attack')} broke off; `leakboard show --attacks` says why."
    worked = leaks[leaks["status"] == "ok"]
    tried = sorted({*worked.loc[worked["channel"] != "", "attack"]})
    unfit = sorted({*leaks["attack"]} - {*worked["attack"], ""})
    rest = f"; without a result: {', '.join(unfit)}" if unfit else ""
    yield f"Attacks that were tried: {', '.join(tried)}{rest}."
