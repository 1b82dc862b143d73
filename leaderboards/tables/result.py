"""One setting against one goal: what it costs, what leaks, and by which attack."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leakboard.bench.contracts import Goal
from leakboard.bench.scoring import NEEDED, UNTUNED
from leakboard.leaderboards.tables.defenses import goals_of
from leakboard.leaderboards.tables.intervals import (
    MISSING,
    Interval,
    format_interval,
)
from leakboard.leaderboards.tables.leakage import (
    COMPARED,
    EXACT,
    IN_USE,
    NOT_CERTIFIED,
    Certification,
    Strongest,
    leakage,
)
from leakboard.leaderboards.tables.settings import UNLEARNT, Setting

BUDGET = 3.0
"""Default limit of the cost of a defense, in points of utility. Where tuning does not clearly gain more, no cost is compared."""
LEAST_KEPT = 0.2
"""Smallest share of what tuning gains that is left in a setting that still learns."""
WEAKLY_ATTACKED = "an attack on it failed, or another reads twice as much there without a defense"
COST_FIELDS = ("setting", "cost", "cost_by_seed", "cost_reason", "is_equally_tuned", "gain")


@dataclass(frozen=True)
class Result:
    """One setting against one goal.

    Attributes:
        attribute: private attribute for attribute inference, else ''.
        cost: points of utility lost against no protection; if missing, `cost_reason` states why.
        is_equally_tuned: True if no protection had as many tuning trials, and no row with a cost on this question had more.
        gain: points that no protection gains over the untuned model; missing if both were not measured.
        leakage: share of what is read without the defense that is still read, not clipped; missing if the cell is not
            certified.
        success, metric: cross-fitted success of the strongest attack, and its metric.
        chance, baseline: chance, and chance or the floor, whichever is higher.
        twin_success, twin_advantage: numbers of the strongest attack on the undefended twin, on common seeds; missing
            without a twin.
        attack, channel: attack and channel chosen for most seeds.
        n: smallest number of independent units of a seed.
        mine, twin: readings of all attacks on the setting and on its twin.
        most_read: largest certified advantage without a defense on the same task, model, goal, attribute and channel.
        parts: rows of the goals of which this is the one that leaks most; empty for a row of one goal.
    """

    setting: Setting
    goal: Goal
    attribute: str
    cost: Interval
    cost_by_seed: Mapping[int, float]
    cost_reason: str
    is_equally_tuned: bool
    gain: Interval
    leakage: Interval
    leakage_by_seed: Mapping[int, float]
    certification: Certification
    success: Interval
    success_by_seed: Mapping[int, float]
    advantage: Interval
    metric: str
    chance: float
    baseline: float
    ceiling: float
    twin_success: Interval
    twin_advantage: Interval
    attack: str
    attack_version: int
    channel: str
    n: int
    twin_keys: tuple[str, ...]
    mine: Strongest = field(repr=False)
    twin: Strongest | None = field(repr=False)
    most_read: float = 0.0
    parts: tuple[Result, ...] = ()

    def on(self, seeds: Collection[int]) -> Result:
        """This row read on some of its seeds, without the others even in the choice of the attack.

        Whether an attack is shown to work is told by all of its seeds.
        """
        if self.parts:
            return most_leaking([row.on(seeds) for row in self.parts], self.goal)
        twin = self.twin and self.twin.on(seeds)
        return replace(self, **numbers_of(self.mine.on(seeds), twin, self.certification))

    @property
    def defense(self) -> str:
        return self.setting.defense

    @property
    def attack_title(self) -> str:
        """The attack, whether it read in use or another training (see `curves`), and its versions if there are several."""
        readings = [*self.mine.by_seed.values(), *(self.twin.by_seed.values() if self.twin else ())]
        versions = sorted({one.version for one in readings if one.candidate[0] == self.attack})
        title = self.attack + " in use" * (self.mine.leading.candidate[3] == IN_USE)
        by_seed = self.setting.readings.get((self.goal, self.attribute), {}).values()
        if all(self.attack != one.candidate[0] for own in by_seed for one in own.values()):
            title += " on another training"
        if len(versions) < 2:
            return title
        return f"{title}, versions {' and '.join(map(str, versions))}"

    @property
    def attacks(self) -> frozenset[tuple[str, int]]:
        """Names and versions of the attacks that read something at every seed of this setting."""
        by_seed = self.setting.readings[self.goal, self.attribute].values()
        return frozenset.intersection(
            *(frozenset((r.candidate[0], r.version) for r in own.values()) for own in by_seed)
        )

    @property
    def is_certified(self) -> bool:
        return self.certification != NOT_CERTIFIED

    @property
    def chance_leakage(self) -> float:
        """Leakage of guessing: 0, or below it where the floor is higher than chance."""
        whole = 1.0 if self.twin_advantage.is_missing else self.twin_advantage.value
        return (self.chance - self.baseline) / ((self.ceiling - self.baseline) * whole)

    @property
    def question(self) -> tuple[str, str, Goal, str]:
        """What attacks on all defenses are compared on."""
        return self.setting.task, self.setting.model, self.goal, self.attribute

    @property
    def is_weakly_attacked(self) -> bool:
        """Whether an attack failed, or all read, undefended, less than half of `most_read`: a low leakage shows little."""
        weak = self.twin_advantage.value < COMPARED * self.most_read
        return self.certification != EXACT and (weak or self.setting.has_failed(self.goal))

    @property
    def is_baseline(self) -> bool:
        """No protection, or the model before any tuning."""
        return self.setting.undefended or self.defense == UNTUNED

    @property
    def has_cost(self) -> bool:
        return not self.cost.is_missing

    @property
    def has_comparable_cost(self) -> bool:
        """True if the setting is better than the untuned model, and was tuned like no protection and like the others.

        And if tuning clearly gains more than the default budget, within which the untuned model would be otherwise.
        """
        return self.has_cost and self.is_equally_tuned and self.gain.lowest > BUDGET

    @property
    def reason_without_cost(self) -> str:
        """Reason why the cost is not comparable, or an empty string."""
        if self.has_comparable_cost:
            return ""
        if self.has_cost and self.gain.lowest <= BUDGET:
            unit, gain = self.setting.unit, format_interval(self.gain, 1)
            return f"tuning does not clearly gain more than {BUDGET:g} {unit} here: {gain}"
        return self.cost_reason or "it was not tuned like no protection, or less than others here"

    @property
    def reason_without_rank(self) -> str:
        """Reason why a certified setting is neither ranked nor recommended, or an empty string."""
        return self.reason_without_cost or (WEAKLY_ATTACKED if self.is_weakly_attacked else "")

    @property
    def is_priced(self) -> bool:
        """Whether its leakage and its cost may be compared with those of others."""
        return self.is_certified and not self.reason_without_rank

    @property
    def still_learns(self) -> bool:
        """False if it is not clearly above the untuned model, or loses more than four fifths of what tuning gains.

        To leak little is no merit of such a model. True where utility or gain is unknown.
        """
        too_much = self.cost.value > (1 - LEAST_KEPT) * self.gain.value  # False for an unknown cost
        return self.cost_reason != UNLEARNT and not too_much

    @property
    def clearly_reduces_leakage(self) -> bool:
        """True if the interval of leakage is below 1."""
        return self.leakage.high < 1

    @property
    def is_made_for_goal(self) -> bool:
        """Whether the defense is made against this goal, as its class declares."""
        return self.goal in goals_of(self.defense)

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def reason(self) -> str:
        """Reason why there is no leakage, or an empty string."""
        if self.is_certified:
            return ""
        if self.twin_advantage.is_missing:
            return "no attack ran on this defense with its protection off"
        twin = format_interval(self.twin_advantage)
        return (
            f"even without the defense, no attack has an advantage clearly above {NEEDED}: {twin}"
        )

    def with_leakage_of(self, other: Result) -> Result:
        """This setting and its cost, with the leakage of `other`, the same choice in another comparison."""
        return replace(other, **{name: getattr(self, name) for name in COST_FIELDS})

    def row(self) -> dict[str, object]:
        """The columns of the table."""
        setting = self.setting
        return {
            "task": setting.task,
            "model": setting.model,
            "cut": setting.cut,
            "conditions": setting.conditions,
            "group": setting.group,
            "defense": setting.defense,
            "setting": setting.label,
            "params": setting.params,
            "goal": self.goal.value,
            "attribute": self.attribute,
            "undefended": setting.undefended,
            "reproduced": setting.is_reproduced,
            "seeds": len(self.success_by_seed),
            "n": self.n,
            "utility_metric": setting.first.utility_metric,
            **setting.utility.columns("utility"),
            **self.cost.columns("cost"),
            "cost_reason": self.cost_reason,
            "trials": setting.trials,
            "equally_tuned": self.is_equally_tuned,
            "gain": self.gain.value,
            **self.leakage.columns("leakage"),
            "certification": self.certification,
            "attack": self.attack,
            "attack_version": self.attack_version,
            "channel": self.channel,
            "metric": self.metric,
            **self.success.columns("success"),
            "chance": self.chance,
            "baseline": self.baseline,
            "ceiling": self.ceiling,
            **self.advantage.columns("advantage"),
            **self.twin_success.columns("twin_success"),
            **self.twin_advantage.columns("twin_advantage"),
            "megabytes": setting.megabytes,
            "keys": ",".join(setting.keys),
            "twin_keys": ",".join(self.twin_keys),
        }


def numbers_of(
    mine: Strongest, twin: Strongest | None, certification: Certification | None = None
) -> dict[str, Any]:
    """Fields of a row that depend on what the attacks read; the certification is found if it is not given."""
    common = twin and twin.on(mine.candidates)
    share, by_seed, certification = leakage(mine, common, certification)
    leading = mine.leading
    return {
        "leakage": share,
        "leakage_by_seed": by_seed,
        "certification": certification,
        "success": mine.success,
        "success_by_seed": {seed: reading.success.value for seed, reading in mine.by_seed.items()},
        "advantage": mine.advantage,
        "metric": leading.metric,
        "chance": mine.mean("chance"),
        "baseline": mine.mean("baseline"),
        "ceiling": mine.mean("ceiling"),
        "twin_success": common.success if common else MISSING,
        "twin_advantage": common.advantage if common else MISSING,
        "attack": leading.candidate[0],
        "attack_version": leading.version,
        "channel": leading.candidate[2],
        "n": min(reading.n for reading in mine.by_seed.values()),
        "mine": mine,
        "twin": twin,
    }


def most_leaking(rows: Sequence[Result], goal: Goal) -> Result:
    """One row for several goals of a setting: the leakage of a seed is that of the goal of which most leaks.

    Attack and success are those of the goal of which most leaks over all seeds. If one is not certified, there is no
    leakage.
    """
    for row in rows:
        if not row.is_certified:
            return replace(row, goal=goal, parts=tuple(rows))
    seeds = set.intersection(*(set(row.leakage_by_seed) for row in rows))
    if seeds and any(row.leakage_by_seed.keys() != seeds for row in rows):
        rows = [row.on(seeds) for row in rows]
    most = max(rows, key=lambda row: row.leakage.value)
    by_seed = {seed: max(row.leakage_by_seed[seed] for row in rows) for seed in sorted(seeds)}
    return replace(most, goal=goal, leakage_by_seed=by_seed, parts=tuple(rows))
