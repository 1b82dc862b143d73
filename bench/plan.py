"""From a suite to cells in order, each with the attacks that fit it and the reasons of those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.backbones import Backbone, load_backbone
from bench.record import Cell, Leak, MethodSpec, Plant, TrainSettings
from bench.suite import Suite
from bench.tasks import Task
from bench.tasks.catalogue import OWN
from bench.tasks.loading import load_task
from bench.types import Attack, Channel, Defense, Goal, Knows, Method, Shadows


def spec_of(method: Method) -> MethodSpec:
    """The name, version and all parameters of a configured method."""
    return MethodSpec(name=method.name, params=method.params, version=method.version)


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


@dataclass(frozen=True)
class Planned:
    """A cell with what is needed to run it."""

    cell: Cell
    defense: Defense
    pairings: tuple[Pairing, ...]
    refused: str | None
    """Why the defense cannot run here at all, or None."""
    shadows: Mapping[Attack, Shadows] = field(default_factory=dict)
    """What attacks measured of models of their own, once these are trained."""


@dataclass(frozen=True)
class Plan:
    """All cells of a suite, and the data and models that they share.

    Attributes:
        tasks: by their hash.
        backbones: by their hash.
        public: by name, other tasks whose texts attacks take for public ones.
    """

    suite: Suite
    cells: tuple[Planned, ...]
    tasks: dict[str, Task]
    backbones: dict[str, Backbone]
    public: dict[str, Task]


def make_plan(suite: Suite, data: Path | None = None, device: str = "cpu") -> Plan:
    """Loads tasks and models, and lays out every cell.

    Cells that share a task, a model and a seed stand together, so that texts are tokenised once; the
    shadow models that attacks on a cell need stand before it.

    Raises:
        LeakboardError: a task, a split, a model or a cut that does not exist.
    """
    tasks = [load_task(spec, data, suite.base) for spec in suite.task]
    loaded = [load_backbone(name, device) for name in suite.model]
    backbones = {backbone.hash: backbone for backbone in loaded}
    cells = []
    for task in tasks:
        task.split(suite.evaluate)
        for backbone in backbones.values():
            for seed in suite.seeds:
                for cut in suite.cut:
                    backbone.check_cut(cut)
                    for defense in suite.defenses:
                        target = _planned(suite, task, backbone, cut, seed, defense)
                        cells += [*_shadows(target, task), target]
    foreign = {getattr(attack, "auxiliary", OWN) for attack in suite.attacks} - {OWN}
    public = {name: load_task(name, data, suite.base) for name in sorted(foreign)}
    return Plan(suite, tuple(cells), {task.hash: task for task in tasks}, backbones, public)


def _planned(
    suite: Suite, task: Task, backbone: Backbone, cut: int, seed: int, defense: Defense
) -> Planned:
    cell = Cell(
        task=task.name,
        data_hash=task.hash,
        limit=suite.limit,
        evaluate=suite.evaluate,
        model=backbone.name,
        model_hash=backbone.hash,
        cut=cut,
        defense=spec_of(defense),
        train=suite.train,
        record=suite.record,
        seed=seed,
        plant=suite.plant,
    )
    pairings = tuple(pair(attack, defense, task, cut, suite.plant) for attack in suite.attacks)
    refused = _unfit(defense, task, cut, suite.train) or defense.refuses(cut)
    return Planned(cell, defense, pairings, refused)


def _shadows(target: Planned, task: Task) -> list[Planned]:
    """The models that attackers on a cell train themselves: cells of which only other coins fell."""
    shadowed = [p.attack.shadowed for p in target.pairings if p.goals and not target.refused]
    wanted = [each for each in shadowed if each]

    def one(shadow: int) -> Planned:
        cell = target.cell.model_copy(update={"shadow": shadow})
        measures = dict.fromkeys(measure for number, measure in wanted if shadow < number)
        pairings = (pair(m, target.defense, task, cell.cut, cell.plant) for m in measures)
        return replace(target, cell=cell, pairings=tuple(pairings))

    return [one(shadow) for shadow in range(max((number for number, _ in wanted), default=0))]


def _unfit(defense: Defense, task: Task, cut: int, train: TrainSettings) -> str | None:
    """Why a defense cannot train on a task at all, or None."""
    if defense.emits == {Channel.MODEL}:
        if cut:
            return f"{defense.name} trains the whole model, which is cut nowhere"
        if task.labels and train.tune == "full":
            return (
                "a classifier is trained by LoRA and its head; `tune: full` is for language models"
            )
    if task.objective in defense.objectives:
        return None
    return (
        f"{defense.name} trains for {_either(defense.objectives)}; {task.name} is {task.objective}"
    )


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
    reads = attack.threat.reads
    if reads and not reads & defense.emits:
        return f"{defense.name} does not send {_either(reads)}"
    readable = attack.readable(cut)
    if reads and not readable & defense.emits:
        only = f"reads {_either(readable)} only" if readable else "reads nothing"
        return f"at cut {cut} {attack.name} {only}, and {defense.name} sends {_either(reads & defense.emits)}"
    if goal == Goal.LABEL and not task.labels:
        return f"task {task.name} has no labels"
    if goal == Goal.MEMORISATION and not (plant and plant.canaries):
        return "nothing is planted; write `plant: {canaries: ['My ID is {digits}.']}` in the suite"
    if goal == Goal.MEMBERSHIP and not (plant and plant.audit):
        return "no example was left out by a coin; write `plant: {audit: 1000}` in the suite"
    if goal == Goal.ATTRIBUTE and not task.attributes:
        return f"task {task.name} has no private attributes"
    own = getattr(attack, "auxiliary", OWN) == OWN
    if own and Knows.AUXILIARY_TEXT in attack.needs and "auxiliary" not in task.splits:
        return f"task {task.name} has no auxiliary text"
    return attack.refuses(cut)


def _either(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))
