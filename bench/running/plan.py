"""Plan of a suite: its cells in order, each with its attacks and the reasons for those that are skipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from leakboard.bench.backbones import Backbone, check_models, load_backbone
from leakboard.bench.contracts import (
    Cell,
    Channel,
    Goal,
    LeakboardError,
    Plant,
    TrainSettings,
    TunedOn,
    UtilityMetric,
    metric_mismatch,
)
from leakboard.bench.defending import language_note
from leakboard.bench.methods import Attack, Defense, Shadows, registry, spec_of
from leakboard.bench.running.pairing import Pairing, conditions_of, either, pair
from leakboard.bench.scoring import UNTUNED, cannot_fail, one_run
from leakboard.bench.suites import Suite, SuiteRow, format_settings
from leakboard.bench.tasks import (
    HELD_OUT,
    ON_PUBLIC,
    TASK_ITSELF,
    Task,
    UserTask,
    load_task,
    no_public_training,
)


@dataclass(frozen=True)
class PlannedCell:
    """A cell with its defense and attacks."""

    cell: Cell
    defense: Defense
    pairings: tuple[Pairing, ...]
    skip_reason: str | None
    """Reason why the defense cannot run, or None."""
    trained: str = ""
    """Settings of training that differ from other cells of the suite, such as 'precision=bf16' or 'tune=head'."""
    trials: tuple[str, ...] = ()
    """Keys of the records of the trials that chose these settings."""
    tuned_on: TunedOn | None = None
    """Texts on which the trials were trained and compared."""
    needs: tuple[str, ...] = ()
    """Keys of the shadow models that must be trained first."""
    shadows: Mapping[Attack, Shadows] = field(default_factory=dict)
    """Measurements of shadow models by attack, once these are trained."""

    @property
    def code(self) -> dict[str, str]:
        """Digest of the file of each method by its name."""
        return {m.name: m.code() for m in (self.defense, *(p.attack for p in self.pairings))}

    @property
    def named(self) -> str:
        """Name that is unique among the cells of its task, model, cut and seed."""
        words = " ".join(filter(None, [str(self.defense), self.trained]))
        shadow = self.cell.shadow
        return words if shadow is None else f"{words}, shadow model {shadow + 1}"


@dataclass(frozen=True)
class Plan:
    """All cells of a suite, and the data and models that they share.

    Attributes:
        tasks: by hash.
        backbones: by hash.
        public: other tasks whose texts attacks use as public text, by name.
        added: rows that were added to the suite, with the names of the defenses whose undefended twin they
            are; no names for the untuned model.
        twins: whether twins and the untuned model are added.
        secret: seed of the customer's secrets; see `Seeds.of`.
    """

    suite: Suite
    cells: tuple[PlannedCell, ...]
    tasks: dict[str, Task]
    backbones: dict[str, Backbone]
    public: dict[str, Task]
    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    twins: bool = True
    secret: str = field(default="", repr=False)

    def additions(self) -> list[str]:
        """A sentence for each row that was added."""
        return [
            f"added: {row}, which is {' and '.join(names)} with its protection off: an attack that fails "
            "on a defense counts only if it works there"
            if names
            else f"added: {row}, the model before any tuning: a defense must exceed its utility"
            for row, names in self.added.items()
        ]

    def part(self, number: int, parts: int) -> Plan:
        """Part `number`, counted from 0, of `parts` parts with about equal numbers of cells.

        A cell and its shadow models are in the same part.
        """
        targets = [planned for planned in self.cells if planned.cell.shadow is None]
        mine = targets[number * len(targets) // parts : (number + 1) * len(targets) // parts]
        keys = {key for planned in mine for key in (planned.cell.key, *planned.needs)}
        return replace(self, cells=tuple(p for p in self.cells if p.cell.key in keys))


def make_plan(
    suite: Suite,
    data: Path | None = None,
    device: str = "cpu",
    twins: bool = True,
    tasks: Mapping[str, Task] | None = None,
) -> Plan:
    """Loads tasks and models, and plans every cell.

    Cells that share a task, a model and a seed are adjacent, so that texts are tokenised once; the shadow
    models of a cell come before it. If attacks apply to a defense and the suite has none of its twins (see
    `Defense.twins`), one is added with the same training and attacks. The untuned model is added, too.

    Args:
        twins: whether twins and the untuned model are added.
        tasks: tasks by name that are not loaded.

    Raises:
        LeakboardError: a task, a split, a model or a cut does not exist.
    """

    def load(spec: str | UserTask) -> Task:
        known = tasks.get(spec) if tasks and isinstance(spec, str) else None
        return known or load_task(spec, data, suite.base)

    loaded_tasks = [load(spec) for spec in suite.task]
    _check_utility(suite, loaded_tasks)
    check_models(getattr(attack, "model", None) for attack in suite.attacks)
    backbones = {b.hash: b for b in (load_backbone(name, device) for name in suite.model)}
    cells: list[PlannedCell] = []
    added: dict[str, dict[str, None]] = {}
    for task in loaded_tasks:
        _check_split(task, suite.evaluate)
        for backbone in backbones.values():
            for cut in suite.cut:
                backbone.check_cut(cut)
            keys: set[str] = set()
            places = product(suite.seeds, suite.plant or (None,), suite.train, suite.cut)
            for seed, plant, train, cut in places:
                place = _Place(suite, task, backbone, cut, seed, train, plant)
                targets = [place.planned(row) for row in suite.defenses]
                for target, names in place.missing_references(targets) if twins else ():
                    targets.append(target)
                    added.setdefault(str(target.defense), {}).update(dict.fromkeys(names))
                # A row with its own settings gives the same cell under several settings of the suite.
                targets = list({t.cell.key: t for t in targets if t.cell.key not in keys}.values())
                keys |= {target.cell.key for target in targets}
                for target in targets:
                    shadows = _shadow_cells(target, task)
                    needs = tuple(shadow.cell.key for shadow in shadows)
                    cells += [*shadows, replace(target, needs=needs)]
    named = {getattr(attack, "auxiliary", TASK_ITSELF) for attack in suite.attacks}
    public = {name: load(name) for name in sorted(named - {TASK_ITSELF})}
    by_hash = {task.hash: task for task in loaded_tasks}
    additions = {twin: tuple(names) for twin, names in added.items()}
    return Plan(suite, tuple(cells), by_hash, backbones, public, additions, twins)


def task_notes(plan: Plan) -> list[str]:
    """For each task, the number of training, public and evaluated texts, and notes about their choice."""
    found = []
    for task in plan.tasks.values():
        sizes = {name: len(split) for name, split in sorted(task.splits.items())}
        parts = [f"{sizes.pop('train', 0):,} texts to train on"]
        if "auxiliary" in sizes:
            parts.append(f"{sizes.pop('auxiliary'):,} public, known to attackers")
        parts += [f"{number:,} in {name}" for name, number in sizes.items()]
        limit = plan.suite.limit
        used = f"; limit: at most {limit:,} of each except public ones" if limit else ""
        found.append(f"{task.name}: {', '.join(parts)}{used}")
        found += [f"{task.name}: {note}" for note in (*task.notes, *_sample_notes(task))]
    return found


def _sample_notes(task: Task) -> Iterator[str]:
    """Notes on examples that say little: texts that repeat, and splits with one class."""
    texts = [
        example
        for split in task.splits.values()
        for example in zip(split.texts, split.pairs or split.texts, strict=True)
    ]
    if 2 * (different := len(set(texts))) < len(texts):
        yield (
            f"only {different:,} of {len(texts):,} texts are different; intervals are too narrow, since they assume "
            "that texts are independent"
        )
    for name, split in task.splits.items():
        if task.objective == "classification" and len(set(split.labels.tolist())) == 1:
            yield f"all labels of {name} are '{task.labels[split.labels[0]]}', so accuracy there says nothing"


def plan_notes(plan: Plan) -> list[str]:
    """Notes for the reader of a plan: added rows, audits that cannot fail, and more canaries than texts.

    It may take seconds, because an accountant computes the whole profile of a claim that the coins alone cannot
    reach.
    """
    notes = plan.additions()
    for planned in plan.cells:
        if not planned.skip_reason and planned.cell.shadow is None:
            notes += _cell_notes(planned, plan.tasks[planned.cell.data_hash])
    return list(dict.fromkeys(notes))


def _cell_notes(planned: PlannedCell, task: Task) -> Iterator[str]:
    defense, split = planned.defense, task.splits["train"]
    if detector := getattr(defense, "detector", ""):
        texts = (*split.texts, *(split.pairs or ()))
        if note := language_note(detector, getattr(defense, "spacy", ""), texts):
            yield f"{defense.name} on {task.name}: {note}"
    yield from _plant_notes(planned, task)


def _plant_notes(planned: PlannedCell, task: Task) -> Iterator[str]:
    plant, texts = planned.cell.plant, len(task.splits["train"])
    if plant is None:
        return
    texts = min(texts, planned.cell.limit or texts)
    # Each coin excludes an example with probability 1/2: one of the texts, or an additional canary.
    heads, strange = plant.audit // 2, plant.candidates == "strange"
    lines = len(plant.canaries) * plant.each * sum(plant.copies) + (heads if strange else 0)
    if lines > texts:
        yield (
            f"planted: {lines:,} lines of canaries and only {texts:,} texts of {task.name}: the result shows "
            "what an attack finds about canaries, and says little about texts"
        )
    has_audit = any(Goal.MEMBERSHIP in pairing.goals for pairing in planned.pairings)
    if has_audit and plant.audit > 1 and plant.per_author is None:
        with suppress(LeakboardError):  # reported when the cell runs
            yield from _audit_notes(planned, plant.audit, texts + lines - (0 if strange else heads))


def _audit_notes(planned: PlannedCell, coins: int, examples: int) -> Iterator[str]:
    for whole in (False, True):
        claim = planned.defense.promises(examples, planned.cell.train, whole)
        most = one_run.ceiling(coins, *one_run.claim_terms(claim))
        if not cannot_fail(claim, most):
            return
    assert claim is not None
    yield (
        f"cannot fail: an audit of {coins:,} coins can prove an epsilon of at most {most:.1f}, and "
        f"{planned.named} claims {claim.epsilon_of_members:g}: no outcome could contradict the claim; "
        "raise plant.audit"
    )


@dataclass(frozen=True)
class _Place:
    """Everything of a cell except its defense."""

    suite: Suite
    task: Task
    backbone: Backbone
    cut: int
    seed: int
    train: TrainSettings
    plant: Plant | None

    def planned(self, row: SuiteRow) -> PlannedCell:
        suite, task, cut, defense = self.suite, self.task, self.cut, row.defense
        train = row.over(self.train)
        cell = Cell(
            task=task.name,
            data_hash=task.hash,
            limit=suite.limit,
            evaluate=suite.evaluate,
            utility=_utility(suite, task),
            model=self.backbone.name,
            model_hash=self.backbone.hash,
            cut=cut,
            defense=spec_of(defense),
            train=train,
            record=suite.record,
            seed=self.seed,
            plant=self.plant,
        )
        pairings = tuple(
            pair(attack, defense, task, cut, self.plant, self.backbone.is_causal)
            for attack in suite.attacks
        )
        trained = format_settings(suite.apart(train, self.plant) | row.own)
        return PlannedCell(
            cell,
            defense,
            pairings,
            self._skip_reason(defense, train),
            trained,
            row.trials,
            row.tuned_on,
        )

    def _skip_reason(self, defense: Defense, train: TrainSettings) -> str | None:
        task, cut = self.task, self.cut
        reason = _train_mismatch(defense, task, cut, train) or defense.skip(
            conditions_of(task, cut, self.plant, self.backbone.is_causal)
        )
        if reason or task.objective in defense.objectives:
            return reason
        return f"{defense.name} trains for {either(defense.objectives)}; {task.name} is {task.objective}"

    def missing_references(
        self, targets: Sequence[PlannedCell]
    ) -> list[tuple[PlannedCell, list[str]]]:
        """Twins and the untuned model, unless among the targets; each with the defenses whose twin it is."""
        settings = {_setting(target.defense) for target in targets}
        twins_by_key: dict[str, tuple[PlannedCell, list[str]]] = {}
        for target, row in zip(targets, self.suite.defenses, strict=True):
            attacked = not target.skip_reason and any(pairing.goals for pairing in target.pairings)
            twins = target.defense.twins(self.task.objective) if attacked else ()
            if twins and settings.isdisjoint(map(_setting, twins)):
                twin = self.planned(SuiteRow(defense=twins[0], train=row.train))
                _, names = twins_by_key.setdefault(twin.cell.key, (twin, []))
                names.extend({target.defense.name} - {*names})
        missing = [(twin, names) for twin, names in twins_by_key.values() if not twin.skip_reason]
        if all(target.defense.name != UNTUNED for target in targets):
            # It has no cut, and shadow models would reveal nothing more about it.
            untuned = replace(self, cut=0).planned(SuiteRow(defense=registry.defense(UNTUNED)()))
            cheap = tuple(pairing for pairing in untuned.pairings if not pairing.attack.shadowed)
            missing.append((replace(untuned, pairings=cheap), []))
        return missing


def _utility(suite: Suite, task: Task) -> UtilityMetric | None:
    """The chosen metric of utility; that of the suite takes precedence if it fits the objective of the task."""
    if metric_mismatch(suite.utility, task.objective):
        return task.utility
    return suite.utility or task.utility


def _check_utility(suite: Suite, tasks: Sequence[Task]) -> None:
    reasons = [metric_mismatch(suite.utility, task.objective) for task in tasks]
    if all(reasons):
        raise LeakboardError(f"suite '{suite.name}': utility: {reasons[0]}")


def _check_split(task: Task, evaluate: str) -> None:
    if evaluate == HELD_OUT:  # taken from the training split, cell by cell
        return
    if evaluate == ON_PUBLIC:
        if reason := no_public_training(task):
            raise LeakboardError(reason)
        return
    if evaluate == "test" and "test" not in task.splits:
        raise LeakboardError(
            f"task '{task.name}' has no labelled test split here, which is needed to report utility. Write "
            "`evaluate: dev`, or --evaluate dev, if no setting was selected on dev; or give a folder with a "
            f"test split with --data (the task comes from {task.source or 'an unknown source'})"
        )
    task.split(evaluate)


def _setting(defense: Defense) -> str:
    return spec_of(defense).model_dump_json()


def _shadow_cells(target: PlannedCell, task: Task) -> list[PlannedCell]:
    """Shadow models that the attacks on a cell need: the same cell with other coins."""
    shadowed = [p.attack.shadowed for p in target.pairings if p.goals and not target.skip_reason]
    wanted = [each for each in shadowed if each]

    def shadow_cell(shadow: int) -> PlannedCell:
        cell = target.cell.model_copy(update={"shadow": shadow})
        measures = dict.fromkeys(measure for number, measure in wanted if shadow < number)
        pairings = (pair(m, target.defense, task, cell.cut, cell.plant) for m in measures)
        return replace(target, cell=cell, pairings=tuple(pairings))

    return [
        shadow_cell(shadow) for shadow in range(max((number for number, _ in wanted), default=0))
    ]


def _train_mismatch(defense: Defense, task: Task, cut: int, train: TrainSettings) -> str | None:
    """Reason why a defense cannot train on a task with these settings, or None."""
    releases = defense.emits == {Channel.MODEL}
    if train.tune == "head" and not (task.outputs and releases):
        return (
            "`tune: head` trains the head of a classifier that is released; over an API that is the "
            "defense `frozen`, and a language model has no head of its own"
        )
    if releases and cut:
        return f"{defense.name} trains the whole model, which has no cut"
    if releases and task.outputs and train.tune == "full":
        return "a classifier is trained by LoRA and its head; `tune: full` is for language models"
    return None
