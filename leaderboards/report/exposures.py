"""Exposures: what the provider can read without protection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leakboard.bench.contracts import Goal, Leak, grouped
from leakboard.bench.scoring import advantage_low
from leakboard.leaderboards.tables import GOAL_WORDS, Interval, Result, undefended_row


@dataclass(frozen=True)
class Exposure:
    """Result of the strongest attack on one goal without protection.

    Attributes:
        channel: channels that the attack reads, with commas.
        success: success in `metric`.
        baseline: success of guessing, or on the untrained model.
        advantage: (success − baseline) / (ceiling − baseline).
        is_shown: True if the attack is shown to work.
        n: number of independent units of a seed.
        examples: what was read of the first three texts, in numbers; '' if it was not counted by text.
    """

    goal: Goal
    attribute: str
    attack: str
    channel: str
    metric: str
    success: Interval
    baseline: float
    advantage: float
    is_shown: bool
    n: int
    seeds: int
    examples: str = ""


def exposures_of_results(rows: Iterable[Result]) -> list[Exposure]:
    """Exposures by goal and attribute, from the row of each that stands for no protection."""
    aims = grouped(rows, lambda row: (row.goal, row.attribute)).values()
    return _in_order([_of_result(row) for same in aims if (row := undefended_row(same))])


def _of_result(row: Result) -> Exposure:
    examples = (
        _examples(leak)
        for leak in row.setting.first.leaks
        if (leak.goal, leak.attack.name, leak.channel) == (row.goal, row.attack, row.channel)
    )
    return Exposure(
        goal=row.goal,
        attribute=row.attribute,
        attack=row.attack,
        channel=row.channel,
        metric=row.metric,
        success=row.success,
        baseline=row.baseline,
        advantage=row.advantage.value,
        is_shown=row.is_certified,
        n=row.n,
        seeds=len(row.success_by_seed),
        examples=next(filter(None, examples), ""),
    )


def exposures_of_leaks(leaks: Iterable[Leak]) -> list[Exposure]:
    """Exposures from a transcript, by goal and attribute, from the attack with the largest advantage."""
    every = [one for leak in leaks if (one := _of_leak(leak)) is not None]
    aims = grouped(every, lambda one: (one.goal, one.attribute)).values()
    return _in_order([max(own, key=lambda one: (one.is_shown, one.advantage)) for own in aims])


def _of_leak(leak: Leak) -> Exposure | None:
    success, above, low = leak.success, leak.above, advantage_low(leak)
    if success is None or leak.channel is None or above is None:
        return None
    return Exposure(
        goal=leak.goal,
        attribute=leak.attribute or "",
        attack=leak.attack.name,
        channel=str(leak.channel),
        metric=leak.metric,
        success=Interval.of(success),
        baseline=leak.level or 0.0,
        advantage=above,
        is_shown=low is not None and low > 0 and above > 0,
        n=success.n,
        seeds=1,
        examples=_examples(leak),
    )


def _examples(leak: Leak) -> str:
    """'Of the first texts: 5 of 5 tokens, 7 of 9, 8 of 8.' The first ones, so that none is chosen by its result."""
    hits, tokens = leak.raw.get("hits", []), leak.raw.get("tokens", [])
    if not hits or len(hits) != len(tokens):
        return ""
    first, *others = [f"{h} of {t}" for h, t in zip(hits[:3], tokens[:3], strict=True)]
    return f"Of the first texts it reads {', '.join([f'{first} tokens', *others])}."


def _in_order(exposures: Sequence[Exposure]) -> list[Exposure]:
    order = list(GOAL_WORDS)
    return sorted(exposures, key=lambda one: (order.index(one.goal), one.attribute))
