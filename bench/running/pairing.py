"""Pairing of attacks with defenses by their threat models, with reasons for skipped pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from leakboard.bench.contracts import (
    Channel,
    Goal,
    Knows,
    Leak,
    Objective,
    Plant,
    Status,
    known_from,
)
from leakboard.bench.methods import Attack, Conditions, Defense, spec_of
from leakboard.bench.tasks import TASK_ITSELF, Task

LABELS: Mapping[Objective, str] = {
    "classification": "classes",
    "language modelling": "tokens",
    "multilabel": "sets of labels",
    "regression": "numbers",
}
"""What a label is, by objective."""


@dataclass(frozen=True)
class Pairing:
    """One attack on one cell: the goals that it can pursue there, and why it skips the others."""

    attack: Attack
    goals: frozenset[Goal]
    skip_reasons: dict[Goal, str] = field(default_factory=dict)

    @classmethod
    def of(cls, attack: Attack, skip_reason: Callable[[Goal], str | None]) -> Pairing:
        """Sorts the goals of an attack.

        Args:
            skip_reason: returns the reason why the attack cannot pursue a goal, or None.
        """
        reasons = {goal: skip_reason(goal) for goal in attack.threat.goals}
        skipped = {goal: reason for goal, reason in reasons.items() if reason}
        return cls(attack, attack.threat.goals - skipped.keys(), skipped)

    def skipped_leaks(self) -> list[Leak]:
        """A leak with its reason for each goal that is skipped."""
        spec = spec_of(self.attack)
        return [
            Leak(attack=spec, status="skipped", reason=reason, goal=goal)
            for goal, reason in sorted(self.skip_reasons.items())
        ]

    def failed_leaks(self, status: Status, reason: str) -> list[Leak]:
        """A leak without a result for each goal that the attack pursued."""
        spec = spec_of(self.attack)
        return [
            Leak(attack=spec, status=status, reason=reason, goal=goal)
            for goal in sorted(self.goals)
        ]


def pair(
    attack: Attack,
    defense: Defense,
    task: Task,
    cut: int,
    plant: Plant | None = None,
    causal: bool | None = None,
) -> Pairing:
    """The goals that an attack can pursue on a defense, by their threat models."""
    conditions = conditions_of(task, cut, plant, causal)

    def skip_reason(goal: Goal) -> str | None:
        reason = threat_mismatch(
            attack, goal, conditions, defense.sends, defense.name, f"task {task.name}"
        )
        sends_text = Channel.TOKENS in defense.sends and not defense.hides_tokens
        if not reason and attack.idle_in_clear and sends_text:
            return f"{defense.name} sends the token ids themselves"
        return reason or _missing_data(attack, goal, task, plant)

    return Pairing.of(attack, skip_reason)


def conditions_of(
    task: Task, cut: int, plant: Plant | None, causal: bool | None = None
) -> Conditions:
    """Facts of a cell, from which its defense and its attacks decide whether they can run."""
    return Conditions(
        cut=cut,
        objective=task.objective,
        has_marked_secrets=task.splits["train"].secrets is not None,
        has_canaries=plant is not None and plant.planting,
        causal=causal,
        has_attributes=bool(task.attributes),
    )


def threat_mismatch(
    attack: Attack,
    goal: Goal,
    conditions: Conditions,
    sent: frozenset[Channel],
    sender: str,
    data: str,
) -> str | None:
    """Reason why an attack cannot pursue a goal on these channels and labels, or None.

    Args:
        sent: channels on which messages cross the trust boundary.
        sender: name of the defense or system that sends, for the reason.
        data: name of the task or data set, for the reason.
    """
    reads, readable = attack.threat.reads, attack.readable(conditions.cut)
    known, objective = known_from(sent), conditions.objective
    if reads and not reads & known:
        return f"{sender} does not send {either(reads)}"
    if reads and not readable & known:
        only = f"reads only {either(readable)}" if readable else "reads nothing"
        return f"at cut {conditions.cut} {attack.name} {only}, and {sender} sends {either(reads & known)}"
    if attack.labels == "next tokens" and objective != "language modelling":
        return f"the labels of {data} are {LABELS[objective]}, not tokens"
    if (
        attack.labels == "classes"
        and goal in (Goal.LABEL, Goal.MODEL)
        and objective != "classification"
    ):
        if objective == "language modelling":
            return f"{data} has no class labels"
        return f"it guesses classes, and the labels of {data} are {LABELS[objective]}"
    return attack.skip(conditions)


def _missing_data(attack: Attack, goal: Goal, task: Task, plant: Plant | None) -> str | None:
    """Reason why a task lacks the data that an attack needs for a goal, or None."""
    marked = Knows.PREFIXES in attack.needs and task.splits["train"].secrets is not None
    if goal == Goal.MEMORISATION and not (plant and plant.canaries) and not marked:
        return (
            "no canary is planted; write `plant: {canaries: ['My ID is {digits}.']}` in the suite"
        )
    if goal == Goal.MEMBERSHIP and not (plant and plant.audit):
        return (
            "no training example was left out at random; write `plant: {audit: 1000}` in the suite"
        )
    if goal == Goal.ATTRIBUTE and not task.attributes:
        return f"task {task.name} has no private attributes"
    own = getattr(attack, "auxiliary", TASK_ITSELF) == TASK_ITSELF
    if own and Knows.AUXILIARY_TEXT in attack.needs and "auxiliary" not in task.splits:
        return f"task {task.name} has no auxiliary text"
    return None


def either(names: Iterable[str]) -> str:
    """The names in alphabetical order, joined by "or"."""
    return " or ".join(sorted(names))
