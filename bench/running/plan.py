"""From a suite to cells in order, each with the attacks that fit it and the reasons of those that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from bench.backbones import Backbone, load_backbone
from bench.contracts import Cell, Channel, Plant, TrainSettings
from bench.methods import Attack, Defense, Shadows, spec_of
from bench.running.pairing import Pairing, either, pair
from bench.suites import Suite
from bench.tasks import OWN, Task, load_task


@dataclass(frozen=True)
class Planned:
    """A cell with what is needed to run it."""

    cell: Cell
    defense: Defense
    pairings: tuple[Pairing, ...]
    refused: str | None
    """Why the defense cannot run here at all, or None."""
    trained: str = ""
    """How it is fine-tuned, where the suite does that in several ways: 'precision=bf16'."""
    needs: tuple[str, ...] = ()
    """Keys of the shadow models that have to be trained before."""
    shadows: Mapping[Attack, Shadows] = field(default_factory=dict)
    """What attacks measured of models of their own, once these are trained."""

    @property
    def named(self) -> str:
        """What tells it from the other cells of its task, model, cut and seed."""
        words = " ".join(filter(None, [str(self.defense), self.trained]))
        return (
            words if self.cell.shadow is None else f"{words}, shadow model {self.cell.shadow + 1}"
        )


@dataclass(frozen=True)
class Plan:
    """All cells of a suite, and the data and models that they share.

    Attributes:
        added: twins that the suite lacks, on which attacks on its defenses have to work: each in words,
            with the names of those defenses.
        tasks: by their hash.
        backbones: by their hash.
        public: by name, other tasks whose texts attacks take for public ones.
        twins: whether twins were to be added.
        secret: from which the customer's secrets are drawn; see `Seeds.of`.
    """

    suite: Suite
    cells: tuple[Planned, ...]
    tasks: dict[str, Task]
    backbones: dict[str, Backbone]
    public: dict[str, Task]
    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    twins: bool = True
    secret: str = field(default="", repr=False)

    def additions(self) -> list[str]:
        """A sentence for each twin that was added."""
        return [
            f"added: {twin}, which is {' and '.join(names)} with its protection off: what an attack does "
            "not find says something only where it works there"
            for twin, names in self.added.items()
        ]

    def part(self, number: int, parts: int) -> Plan:
        """One of so many parts, counted from 0, of about equal numbers of cells.

        Shadow models stay with the cell that needs them.
        """
        targets = [planned for planned in self.cells if planned.cell.shadow is None]
        mine = targets[number * len(targets) // parts : (number + 1) * len(targets) // parts]
        keys = {key for planned in mine for key in (planned.cell.key, *planned.needs)}
        return replace(self, cells=tuple(p for p in self.cells if p.cell.key in keys))


def make_plan(
    suite: Suite, data: Path | None = None, device: str = "cpu", twins: bool = True
) -> Plan:
    """Loads tasks and models, and lays out every cell.

    Cells that share a task, a model and a seed stand together, so that texts are tokenised once; the
    shadow models that attacks on a cell need stand before it. Where attacks apply to a defense and
    the suite holds none of its twins (see `Defense.twins`), one is added, under the same attacks.

    Args:
        twins: whether twins are added.

    Raises:
        LeakboardError: a task, a split, a model or a cut that does not exist.
    """
    tasks = [load_task(spec, data, suite.base) for spec in suite.task]
    loaded = [load_backbone(name, device) for name in suite.model]
    backbones = {backbone.hash: backbone for backbone in loaded}
    cells: list[Planned] = []
    added: dict[str, dict[str, None]] = {}
    for task in tasks:
        task.split(suite.evaluate)
        for backbone in backbones.values():
            for cut in suite.cut:
                backbone.check_cut(cut)
            places = product(suite.seeds, suite.plant or (None,), suite.train, suite.cut)
            for seed, plant, train, cut in places:
                place = _Place(suite, task, backbone, cut, seed, train, plant)
                targets = [place.planned(defense) for defense in suite.defenses]
                for target, names in place.lacking(targets) if twins else ():
                    targets.append(target)
                    added.setdefault(str(target.defense), {}).update(dict.fromkeys(names))
                for target in targets:
                    shadows = _shadows(target, task)
                    needs = tuple(shadow.cell.key for shadow in shadows)
                    cells += [*shadows, replace(target, needs=needs)]
    foreign = {getattr(attack, "auxiliary", OWN) for attack in suite.attacks} - {OWN}
    public = {name: load_task(name, data, suite.base) for name in sorted(foreign)}
    by_hash = {task.hash: task for task in tasks}
    told = {twin: tuple(names) for twin, names in added.items()}
    return Plan(suite, tuple(cells), by_hash, backbones, public, told, twins)


@dataclass(frozen=True)
class _Place:
    """Where a defense is run: all of a cell but the defense."""

    suite: Suite
    task: Task
    backbone: Backbone
    cut: int
    seed: int
    train: TrainSettings
    plant: Plant | None

    def planned(self, defense: Defense) -> Planned:
        suite, task, cut, train = self.suite, self.task, self.cut, self.train
        cell = Cell(
            task=task.name,
            data_hash=task.hash,
            limit=suite.limit,
            evaluate=suite.evaluate,
            model=self.backbone.name,
            model_hash=self.backbone.hash,
            cut=cut,
            defense=spec_of(defense),
            train=train,
            record=suite.record,
            seed=self.seed,
            plant=self.plant,
        )
        pairings = tuple(pair(attack, defense, task, cut, self.plant) for attack in suite.attacks)
        refused = _unfit(defense, task, cut, train) or defense.refuses(cut)
        return Planned(cell, defense, pairings, refused, suite.trained(train, self.plant))

    def lacking(self, targets: Sequence[Planned]) -> list[tuple[Planned, list[str]]]:
        """Twins that are not among some cells, each with the names of the defenses that need it."""
        there = {_setting(target.defense) for target in targets}
        found: dict[str, tuple[Planned, list[str]]] = {}
        for target in targets:
            attacked = not target.refused and any(pairing.goals for pairing in target.pairings)
            twins = target.defense.twins(self.task.objective) if attacked else ()
            if twins and there.isdisjoint(map(_setting, twins)):
                own = found.setdefault(_setting(twins[0]), (self.planned(twins[0]), []))
                own[1].append(target.defense.name)
        return [(twin, names) for twin, names in found.values() if not twin.refused]


def _setting(defense: Defense) -> str:
    return spec_of(defense).model_dump_json()


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
        f"{defense.name} trains for {either(defense.objectives)}; {task.name} is {task.objective}"
    )
