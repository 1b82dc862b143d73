"""From a suite to cells in order, each with the attacks that fit it and the reasons of those that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from leakboard.bench.backbones import Backbone, load_backbone
from leakboard.bench.contracts import Cell, Channel, LeakboardError, Plant, TrainSettings
from leakboard.bench.methods import Attack, Defense, Shadows, registry, spec_of
from leakboard.bench.running.pairing import Pairing, either, pair
from leakboard.bench.scoring import UNTUNED
from leakboard.bench.suites import Suite, SuiteRow, in_words
from leakboard.bench.tasks import HELD_OUT, OWN, Task, load_task


@dataclass(frozen=True)
class Planned:
    """A cell with what is needed to run it."""

    cell: Cell
    defense: Defense
    pairings: tuple[Pairing, ...]
    refused: str | None
    """Why the defense cannot run here at all, or None."""
    trained: str = ""
    """How it is fine-tuned, where the suite does that in several ways or its row in its own:
    'precision=bf16', 'tune=head'."""
    trials: tuple[str, ...] = ()
    """Keys of the records of the trials by which that was chosen."""
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
        added: rows that the suite lacks, each in words: twins, on which attacks on its defenses have to
            work, with the names of those defenses; and the model before any tuning, with none.
        tasks: by their hash.
        backbones: by their hash.
        public: by name, other tasks whose texts attacks take for public ones.
        twins: whether twins and the model before any tuning were to be added.
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
        """A sentence for each row that was added."""
        return [
            f"added: {row}, which is {' and '.join(names)} with its protection off: what an attack does "
            "not find says something only where it works there"
            if names
            else f"added: {row}, the model before any tuning: utility that is not above its is none"
            for row, names in self.added.items()
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
    the suite holds none of its twins (see `Defense.twins`), one is added, trained as that row is, under
    the same attacks; and so is the model before any tuning.

    Args:
        twins: whether these are added.

    Raises:
        LeakboardError: a task, a split, a model or a cut that does not exist.
    """
    tasks = [load_task(spec, data, suite.base) for spec in suite.task]
    loaded = [load_backbone(name, device) for name in suite.model]
    backbones = {backbone.hash: backbone for backbone in loaded}
    cells: list[Planned] = []
    added: dict[str, dict[str, None]] = {}
    for task in tasks:
        _check_split(task, suite.evaluate)
        for backbone in backbones.values():
            for cut in suite.cut:
                backbone.check_cut(cut)
            there: set[str] = set()
            places = product(suite.seeds, suite.plant or (None,), suite.train, suite.cut)
            for seed, plant, train, cut in places:
                place = _Place(suite, task, backbone, cut, seed, train, plant)
                targets = [place.planned(row) for row in suite.defenses]
                for target, names in place.lacking(targets) if twins else ():
                    targets.append(target)
                    added.setdefault(str(target.defense), {}).update(dict.fromkeys(names))
                # A row with a setting of its own is the same in several of the suite's.
                targets = list({t.cell.key: t for t in targets if t.cell.key not in there}.values())
                there |= {target.cell.key for target in targets}
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

    def planned(self, row: SuiteRow) -> Planned:
        suite, task, cut, defense = self.suite, self.task, self.cut, row.defense
        train = row.over(self.train)
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
        if not refused and task.splits["train"].secrets is None:
            refused = defense.unmarked(self.plant is not None and self.plant.planting)
        told = in_words(suite.apart(train, self.plant) | row.own)
        return Planned(cell, defense, pairings, refused, told, row.trials)

    def lacking(self, targets: Sequence[Planned]) -> list[tuple[Planned, list[str]]]:
        """Rows that are not among some cells, each with the names of the defenses whose twin it is."""
        there = {_setting(target.defense) for target in targets}
        found: dict[str, tuple[Planned, list[str]]] = {}
        for target, row in zip(targets, self.suite.defenses, strict=True):
            attacked = not target.refused and any(pairing.goals for pairing in target.pairings)
            twins = target.defense.twins(self.task.objective) if attacked else ()
            if twins and there.isdisjoint(map(_setting, twins)):
                twin = self.planned(SuiteRow(defense=twins[0], train=row.train))
                own = found.setdefault(twin.cell.key, (twin, []))
                own[1].extend({target.defense.name} - {*own[1]})
        lacks = [(twin, names) for twin, names in found.values() if not twin.refused]
        if all(target.defense.name != UNTUNED for target in targets):
            # It has no cut, and nothing that shadow models would tell more of.
            untuned = replace(self, cut=0).planned(SuiteRow(defense=registry.defense(UNTUNED)()))
            cheap = tuple(pairing for pairing in untuned.pairings if not pairing.attack.shadowed)
            lacks.append((replace(untuned, pairings=cheap), []))
        return lacks


def _check_split(task: Task, evaluate: str) -> None:
    if evaluate == HELD_OUT:  # cut off its training split, cell by cell
        return
    if evaluate == "test" and "test" not in task.splits:
        raise LeakboardError(
            f"task '{task.name}' has no labelled test split here, on which utility could be reported. Write "
            "`evaluate: dev`, or --evaluate dev, on which no setting was selected; or give a folder that "
            f"holds one with --data (it comes from {task.source or 'nowhere known'})"
        )
    task.split(evaluate)


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
    if train.tune == "head" and not (task.labels and defense.emits == {Channel.MODEL}):
        return (
            "`tune: head` trains the head of a classifier that is released; over an API that is the "
            "defense `frozen`, and a language model has no head of its own"
        )
    if defense.emits == {Channel.MODEL}:
        if cut:
            return f"{defense.name} trains the whole model, which is cut nowhere"
        if task.labels and train.tune == "full":
            return (
                "a classifier is trained by LoRA and its head; `tune: full` is for language models"
            )
    if (told := defense.unfit(task.objective)) or task.objective in defense.objectives:
        return told
    return (
        f"{defense.name} trains for {either(defense.objectives)}; {task.name} is {task.objective}"
    )
