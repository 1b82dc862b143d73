"""Which attacks fit which cells, by their threat models, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from leakboard.bench.contracts import Channel, Goal, Knows, Leak, Plant, known_from
from leakboard.bench.methods import Attack, Defense, spec_of
from leakboard.bench.tasks import OWN, Task


@dataclass(frozen=True)
class Pairing:
    """One attack on one cell: the goals it can pursue there, and why not the others."""

    attack: Attack
    goals: frozenset[Goal]
    refused: dict[Goal, str] = field(default_factory=dict)

    def skipped(self) -> list[Leak]:
        """A leak with its reason for each goal that does not fit."""
        spec = spec_of(self.attack)
        return [
            Leak(attack=spec, status="skipped", reason=reason, goal=goal)
            for goal, reason in sorted(self.refused.items())
        ]


def pair(
    attack: Attack, defense: Defense, task: Task, cut: int, plant: Plant | None = None
) -> Pairing:
    """Which goals an attack can pursue on a defense, by their threat models."""
    refused = {}
    for goal in attack.threat.goals:
        reason = _refusal(attack, goal, defense, task, cut, plant)
        if reason:
            refused[goal] = reason
    return Pairing(attack, attack.threat.goals - refused.keys(), refused)


def _refusal(
    attack: Attack, goal: Goal, defense: Defense, task: Task, cut: int, plant: Plant | None
) -> str | None:
    reads, known = attack.threat.reads, known_from(defense.sends)
    if reads and not reads & known:
        return f"{defense.name} does not send {either(reads)}"
    readable = attack.readable(cut)
    if reads and not readable & known:
        only = f"reads {either(readable)} only" if readable else "reads nothing"
        return (
            f"at cut {cut} {attack.name} {only}, and {defense.name} sends {either(reads & known)}"
        )
    if attack.idle_in_clear and Channel.TOKENS in known and not defense.hides_tokens:
        return f"{defense.name} sends the token ids themselves"
    if attack.labels == "next tokens":
        if task.labels:
            return f"the labels of task {task.name} are classes, no tokens"
    elif goal in (Goal.LABEL, Goal.MODEL) and not task.labels:
        return f"task {task.name} has no labels"
    marked = Knows.PREFIXES in attack.needs and task.splits["train"].secrets is not None
    if goal == Goal.MEMORISATION and not (plant and plant.canaries) and not marked:
        return "nothing is planted; write `plant: {canaries: ['My ID is {digits}.']}` in the suite"
    if goal == Goal.MEMBERSHIP and not (plant and plant.audit):
        return "no example was left out by a coin; write `plant: {audit: 1000}` in the suite"
    if goal == Goal.ATTRIBUTE and not task.attributes:
        return f"task {task.name} has no private attributes"
    own = getattr(attack, "auxiliary", OWN) == OWN
    if own and Knows.AUXILIARY_TEXT in attack.needs and "auxiliary" not in task.splits:
        return f"task {task.name} has no auxiliary text"
    return attack.refuses(cut)


def either(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))
