"""Exposures: what the provider can read without protection, in words for decision makers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from leakboard.bench.contracts import Channel, Goal, Leak, grouped
from leakboard.bench.external import CHANNELS, MOSTLY
from leakboard.bench.scoring import advantage_low
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    Interval,
    Result,
    count,
    format_number,
    format_percent,
    format_percent_interval,
    undefended_row,
)

SUBJECTS = {
    Goal.INVERSION: "Your texts",
    Goal.REIDENTIFICATION: "Which text was sent",
    Goal.LABEL: "Your labels",
    Goal.ATTRIBUTE: "Attributes of the people who wrote",
    Goal.MEMORISATION: "Secrets in your texts",
    Goal.MEMBERSHIP: "Who is in your data",
    Goal.MODEL: "The provider's model, by you",
}
SHARES = {
    "token accuracy": "{} of the tokens are recovered",
    "label token accuracy": "{} of the tokens of the answers are recovered",
    "top-1 accuracy": "{} are recognised among the candidates",
    "AUC of presence": "{} of the pairs of a listed and an unlisted text are told apart",
    "accuracy": "{} are guessed correctly",
    "balanced accuracy": "{} of a class are guessed correctly, averaged over classes",
    "matched accuracy": "{} are guessed correctly",
    "AUC": "{} of the pairs of different examples are distinguished",
    "AUC (sign-free)": "{} of the pairs of different examples are distinguished",
    "TPR at 1% FPR": "{} are identified, with one false alarm in a hundred",
    "TPR at 0.1% FPR": "{} are identified, with one false alarm in a thousand",
    "extracted": "{} of the secrets are extracted whole",
    "extracted by beam search": "{} of the planted secrets are extracted whole",
}
"""Sentence for each metric that is a share; other metrics are given by name and number."""


@dataclass(frozen=True)
class Exposure:
    """Result of the strongest attack on one goal without protection.

    Attributes:
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

    @property
    def subject(self) -> str:
        return f"{SUBJECTS[self.goal]}: {self.attribute}" if self.attribute else SUBJECTS[self.goal]

    @property
    def verdict(self) -> str:
        if not self.is_shown:
            return "not certified"
        return "can be read" if self.advantage >= MOSTLY else "can be read in part"

    @property
    def is_share(self) -> bool:
        return self.metric in SHARES

    @property
    def words(self) -> str:
        """Success with its interval and the success of guessing, in words."""
        if not self.is_shown:
            return (
                f"no attack is shown to work (the strongest is {self.attack}), so nothing is known"
            )
        if self.is_share:
            words = SHARES[self.metric].format(format_percent_interval(self.success))
            return f"{words}; guessing reaches {format_percent(self.baseline)}"
        unit = " bits" if self.metric.startswith("exposure") else ""
        value, guess = format_number(self.success.value), format_number(self.baseline)
        return f"{self.metric}: {value}{unit}; guessing reaches {guess}"

    @property
    def evidence(self) -> str:
        parts = [part for part in self.channel.split(", ") if part]
        source = " and ".join(CHANNELS[Channel(part)] for part in parts) or "nothing that is sent"
        runs = f", {count(self.seeds, 'seed')}" if self.seeds > 1 else ", one run"
        return f"attack {self.attack} on {source} ({count(self.n, 'unit')}{runs})"


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
        is_shown=low is not None and not isnan(low) and low > 0 and above > 0,
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
