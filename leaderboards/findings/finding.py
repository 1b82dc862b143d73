"""A claim and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from leakboard.bench.contracts import Goal
from leakboard.bench.methods import registry
from leakboard.leaderboards.tables import HIDES, Comparison, Evidence, Row, setting_of

CALLED = {goal: name for name, goal in HIDES.items()} | {Goal.MODEL: "the model"}
"""What each goal looks for, as a sentence names it."""


@dataclass(frozen=True)
class Finding:
    """A claim and its evidence.

    Attributes:
        rule: by which it was found, one of `RULES`.
        claim: the sentence.
        settings: which it is about, in words.
        metric: what `figure` is; its 95 % `interval` is NaN where there is none.
        n: independent units behind the figure in each seed, examples mostly.
        attack: the strongest one; '' where the claim is about utility.
        keys: of the records behind it.
    """

    rule: str
    claim: str
    task: str
    model: str
    settings: tuple[str, ...]
    metric: str
    figure: float
    interval: tuple[float, float]
    n: int
    seeds: int
    attack: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, rule: str, claim: str, one: Evidence, own: Sequence[Evidence] = ()) -> Finding:
        """With the figures of `one`, and the settings and records of all of `own`, where it speaks for them."""
        every = own or (one,)
        return cls(
            rule=rule,
            claim=claim,
            task=one.task,
            model=one.model,
            settings=tuple(dict.fromkeys(each.setting for each in every)),
            metric=one.leak.metric,
            figure=one.leak.success.value,
            interval=(one.leak.success.low, one.leak.success.high),
            n=one.leak.n,
            seeds=one.seeds,
            attack=one.leak.attack,
            keys=tuple(dict.fromkeys(key for each in every for key in each.keys)),
        )

    def __str__(self) -> str:
        return self.claim

    def plain(self) -> dict[str, Any]:
        """Its parts as JSON has them; an interval that does not exist is null."""
        ends = self.interval
        return asdict(self) | {"interval": None if any(end != end for end in ends) else list(ends)}


def called(goal: Goal, attribute: str) -> str:
    """What an attack looks for: 'inputs', 'attributes (gender)'."""
    return f"{CALLED[goal]} ({attribute})" if attribute else CALLED[goal]


def measured(comparison: Comparison, row: Row) -> dict[str, Any]:
    """What a finding takes from a row of means over seeds."""
    return {
        "task": comparison.task,
        "model": comparison.model,
        "metric": str(row["metric"]),
        "figure": float(row["success"]),
        "interval": (float(row["success_low"]), float(row["success_high"])),
        "n": int(row["n"]),
        "seeds": int(row["n_seeds"]),
        "attack": str(row["attack"]),
    }


def keys_of(comparison: Comparison, row: Row) -> tuple[str, ...]:
    """The records of the setting that a row is about."""
    return comparison.keys[setting_of(row)]


def protects(defense: str) -> frozenset[Goal]:
    """What a defense is made against; every goal where it does not say, or is not known here."""
    known = registry.find(defense, registry.defenses())
    own = known.protects | known.measured_by.keys() if known else frozenset()
    return frozenset(own) or frozenset(Goal)


def listed(words: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
