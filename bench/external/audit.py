"""Attacks on a transcript that was recorded around an external system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import (
    Cell,
    Channel,
    Goal,
    Guess,
    Leak,
    LeakboardError,
    Progress,
    Recording,
    TrainSettings,
    Transcript,
    quietly,
)
from leakboard.bench.exchange import Manifest, Session, Tuned, read_transcript
from leakboard.bench.external.applicable import grant
from leakboard.bench.external.outcome import Audit
from leakboard.bench.external.rows import recorded_rows
from leakboard.bench.external.sentences import attack_sentences, label_sentences
from leakboard.bench.external.truth import (
    ScoringTruth,
    TruthTable,
    check_order,
    read_truth,
    tokens_sent,
)
from leakboard.bench.methods import Attack, Auxiliary, Defense, Silent, Source, spec_of
from leakboard.bench.running import (
    CellContext,
    Inputs,
    Pairing,
    PlannedCell,
    attack_all,
    checked_guesses,
    error_line,
    knowledge_for,
    public_texts,
    run_isolated,
    with_derived_channels,
)
from leakboard.bench.suites import methods_named
from leakboard.bench.tasks import TASK_ITSELF, Planted, Task, load_task

LONGEST = 512
"""Largest number of tokens of an example, if neither the manifest nor the model says it."""


class UnknownDefense(Defense):
    """Placeholder for the external system, which cannot be run."""

    name: ClassVar[str] = "unknown"
    source: ClassVar[Source] = Source("recorded elsewhere")
    emits: ClassVar[frozenset[Channel]] = frozenset(Channel)

    def fine_tune(self, session: Session) -> Tuned:
        raise NotImplementedError("the recorded system is not available")


@dataclass(frozen=True)
class Request:
    """Attacks to run on a transcript, and the knowledge that its owner grants to them.

    Attributes:
        attacks: as in a suite; empty for all but the costly ones.
        truth: the true texts and labels, by which guesses are scored; see `read_truth`.
        attributes: columns of the truth with private attributes.
        auxiliary: the task whose public texts attackers may use.
        defense: the mechanism that attackers know, as in a suite.
        data: folder of datasets.
    """

    attacks: Sequence[str] = ()
    truth: TruthTable | None = None
    attributes: Sequence[str] = ()
    auxiliary: str | None = None
    defense: str | None = None
    data: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class ParsedRequest:
    """A validated request.

    Attributes:
        truth: splits that it lacks are not attacked.
        public: tasks whose public texts are granted, by the name that attacks use for them; `own` for
            attacks that name none.
    """

    attacks: Sequence[Attack]
    truth: ScoringTruth | None = None
    defense: Defense | None = None
    public: Mapping[str, Task] = field(default_factory=dict)
    seed: int = 0


def attack_folder(
    folder: Path, backbone: Backbone, request: Request, progress: Progress = quietly
) -> Audit:
    """Read a transcript and the files of the request, and attack it; see `audit`.

    Raises:
        LeakboardError: one of them cannot be read, or they do not fit together.
    """
    chosen = methods_named("attack", request.attacks)
    mechanisms = methods_named("defense", [request.defense]) if request.defense else [None]
    if len(mechanisms) > 1:
        raise LeakboardError(f"--defense '{request.defense}': expected one setting, not a list")
    if request.attributes and request.truth is None:
        raise LeakboardError(
            "--attribute names a column of the --truth file; give --truth FILE as well"
        )
    recorded = RecordedTranscript(*read_transcript(folder, backbone), backbone)
    truth = None
    if request.truth is not None:
        labels = recorded.manifest.labels or recorded.manifest.classes
        truth = read_truth(request.truth, labels, request.attributes, recorded.manifest.objective)
    other_tasks = {
        name: name for a in chosen if (name := getattr(a, "auxiliary", TASK_ITSELF)) != TASK_ITSELF
    }
    named = other_tasks | ({TASK_ITSELF: request.auxiliary} if request.auxiliary else {})
    public = {name: load_task(task, request.data) for name, task in named.items()}
    return audit(
        recorded, ParsedRequest(chosen, truth, mechanisms[0], public, request.seed), progress
    )


@dataclass(frozen=True)
class RecordedTranscript:
    """A transcript of an external system, and the public model that was fine-tuned."""

    manifest: Manifest
    seen: Transcript
    backbone: Backbone

    def about(self, task: Task) -> Transcript:
        """The messages about splits of the task.

        Raises:
            LeakboardError: messages are about rows that the task lacks.
        """
        kept = tuple(m for m in self.seen.messages if m.split in task.splits)
        for split, texts in task.splits.items():
            rows = recorded_rows(self.seen, split)
            if not len(rows) or rows[-1] >= len(texts):
                splits = ", ".join(self.manifest.splits)
                sent = f"rows up to {rows[-1]}" if len(rows) else f"only {splits}"
                raise LeakboardError(
                    f"{task.source}: holds {len(texts)} examples of {split}; the transcript has "
                    f"{sent}. Give one line for every row, in the order of the rows from 0"
                )
        return Transcript(kept, self.seen.dropped)

    @property
    def longest(self) -> int:
        """Largest number of tokens of an example, as far as the manifest says."""
        if self.manifest.train is not None:
            return self.manifest.train.max_length
        stated = self.manifest.training and self.manifest.training.longest
        return stated or self.backbone.family.positions(self.backbone.model) or LONGEST

    def with_derived(self, context: CellContext, seen: Transcript) -> Transcript:
        """The transcript with what a vendor computes from adapters, if their settings are known."""
        return seen if self.manifest.train is None else with_derived_channels(context, seen)


def audit(
    recorded: RecordedTranscript, granted: ParsedRequest, progress: Progress = quietly
) -> Audit:
    """Run each applicable attack on a transcript, and score it if the truth is known.

    Raises:
        LeakboardError: the truth does not match the transcript.
    """
    if granted.truth is not None:
        seen = recorded.about(granted.truth.task)
        context = _cell_context(recorded, seen, granted, progress)
        stated = recorded.manifest.training
        order = stated.order if stated else None
        unchecked = check_order(granted.truth, seen, context.inputs.tokens, order)
        leaks = attack_all(context, recorded.with_derived(context, seen))
        summary = attack_sentences(leaks)
        if summary:
            summary += [*unchecked, *label_sentences(leaks, granted.truth.sorted_labels)]
        return Audit(tuple(leaks), cut_short=recorded.manifest.cut_short, summary=tuple(summary))
    context = _cell_context(recorded, recorded.seen, granted, progress)
    seen = recorded.with_derived(context, recorded.seen)
    leaks, guesses = list[Leak](), list[tuple[Attack, Guess]]()
    pairings = context.planned.pairings
    for pairing in context.progress("attacking", pairings, len(pairings)):
        leaks += pairing.skipped_leaks()
        if not pairing.goals:
            continue
        try:
            guesses += [(pairing.attack, guess) for guess in _guesses(pairing, context, seen)]
        except Silent as error:
            leaks += pairing.failed_leaks("skipped", str(error))
        except (Exception, SystemExit) as error:
            leaks += pairing.failed_leaks("failed", error_line(error))
    return Audit(tuple(leaks), tuple(guesses), recorded.manifest.cut_short)


def _cell_context(
    recorded: RecordedTranscript, seen: Transcript, granted: ParsedRequest, progress: Progress
) -> CellContext:
    """The context in which attacks on cells run, for this transcript."""
    manifest, backbone, truth = recorded.manifest, recorded.backbone, granted.truth
    numbers = tuple(map(str, range(manifest.classes)))
    task = truth.task if truth else Task("the transcript", numbers, {})
    by_text = (
        truth is not None and Goal.INVERSION in truth.goals and manifest.model_hash is not None
    )
    known = recorded.longest, manifest.training
    tokens = tokens_sent(truth, seen, backbone, *known) if truth and by_text else {}
    public = {}
    for name, other in granted.public.items():
        texts = public_texts(other, task)
        encoded = backbone.encode(texts.texts, texts.pairs, recorded.longest, task.opened)
        # Labels and attributes of another task are not comparable.
        public[name] = Auxiliary(encoded, np.zeros(0, np.int64))
    defense = granted.defense or UnknownDefense()
    cell = Cell(
        task=task.name,
        data_hash=task.hash,
        limit=None,
        evaluate="train",
        model=backbone.name,
        model_hash=backbone.hash,
        cut=manifest.cut,
        defense=spec_of(defense),
        train=manifest.train or TrainSettings.model_validate({}),
        record=Recording(examples=max(manifest.splits.values())),
        seed=granted.seed,
    )
    pairings = tuple(
        grant(attack, manifest, seen, truth, granted.defense, public) for attack in granted.attacks
    )
    rows = {split: recorded_rows(seen, split) for split in task.splits}
    inputs = Inputs(task, tokens, rows, public, Planted(task))
    return CellContext(PlannedCell(cell, defense, pairings, None), inputs, backbone, progress)


def _guesses(pairing: Pairing, context: CellContext, seen: Transcript) -> list[Guess]:
    attack, knowledge = pairing.attack, knowledge_for(pairing, context)
    own, rng = seen.only(attack.threat.reads), np.random.default_rng(context.seeds.attack)
    guesses = run_isolated(partial(checked_guesses, attack, own, knowledge, rng))
    return [guess for guess in guesses if guess.goal in pairing.goals]
