"""Small cells on which methods are checked."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError

from leakboard.bench.backbones import Backbone, load_backbone
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Knows,
    Leak,
    Message,
    Plant,
    Record,
    Recording,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import Released, Tuned, Wire, restore
from leakboard.bench.methods import Attack, Conditions, Defense, Method, Silent, registry
from leakboard.bench.running import (
    CellContext,
    Inputs,
    PlannedCell,
    attack_all,
    attack_guesses,
    encode_public,
    fine_tune,
    knowledge_for,
    make_plan,
    run_cell,
    with_derived_channels,
    with_shadows,
)
from leakboard.bench.suites import Suite
from leakboard.bench.tasks import Split, Task, UserTask, load_task

EXAMPLES = 96
"""Examples of each split, of which two thirds are recorded."""
PUBLIC = 6
"""Public texts per example; learning from them takes most of the time of a check."""
SHADOWS = 4
"""Number of shadow models, the smallest that is allowed."""
CANARIES = Plant(canaries=("my id is {digits}",), copies=(40,), each=8, unseen=20)

M = TypeVar("M", bound=Method)


def _needs_causal(attack: Attack) -> bool:
    """True if the attack skips a model only because it is not causal."""
    other, causal = (
        attack.skip(Conditions(cut=1, causal=is_causal)) for is_causal in (False, True)
    )
    return other is not None and causal is None


@dataclass(frozen=True)
class Trained:
    """Result of one fine-tuning.

    Attributes:
        transcript: transcript of training and of one prediction on the evaluated split.
        scores: [n, C] class scores of that prediction; empty for a language model.
        backbone: public model that the defense received.
    """

    wire: Wire
    tuned: Tuned
    scores: torch.Tensor
    transcript: Transcript
    backbone: Backbone


@dataclass(frozen=True)
class Trial:
    """One cell on a slice of `reviews` or of easier texts. Each call uses a new copy of the public model."""

    planned: PlannedCell
    inputs: Inputs
    backbone: Backbone

    def context(self) -> CellContext:
        backbone = replace(self.backbone, model=copy.deepcopy(self.backbone.model))
        return CellContext(self.planned, self.inputs, backbone)

    @classmethod
    def of(
        cls,
        defense: Defense,
        attacks: Sequence[Attack] = (),
        model: str = "tiny-bert",
        examples: int = EXAMPLES,
        epochs: int = 1,
        seed: int = 0,
        plain: bool = False,
        recorded: int | None = None,
        public: int = PUBLIC,
    ) -> Trial:
        """The cell at the first cut that suits the defense and some of the attacks.

        Attacks on memorisation or membership get dialogues with planted secrets or coins, and a causal model that is
        trained long enough to memorise. Attacks on next tokens, or on causal models only, get dialogues and a causal
        model.

        Args:
            plain: use easier texts, which name the labels and attributes.
            recorded: recorded examples of each split; two thirds by default.
            public: public texts per example.
        """
        attacks = [
            attack.model_copy(update={"shadows": SHADOWS}) if attack.shadowed else attack
            for attack in attacks
        ]
        goals = {goal for attack in attacks for goal in attack.threat.goals}
        task, plant, train = "reviews", None, TrainSettings(epochs=epochs, batch_size=16)
        if attacks and all(a.labels == "next tokens" or _needs_causal(a) for a in attacks):
            task, model, plain = "dialogues", "tiny-gpt2", False
        if goals and goals <= {Goal.MEMORISATION, Goal.MEMBERSHIP}:
            task, model = "dialogues", "tiny-gpt2"
            is_repeated = goals == {Goal.MEMORISATION}  # canaries are repeated, examples are not
            plant = CANARIES if is_repeated else Plant(audit=examples // 2)
            # Extraction of complete secrets needs more memorisation.
            is_extracted = any(Knows.PREFIXES in attack.needs for attack in attacks)
            epochs = 12 if is_extracted else 2 if is_repeated else 8
            train = TrainSettings(epochs=epochs, batch_size=4, learning_rate=3e-3, tune="full")
        backbone = load_backbone(model)
        if backbone.blocks < defense.least_blocks:
            model = "tiny-deep-bert"
            backbone = load_backbone(model)
        with TemporaryDirectory() as folder:
            suite = Suite(
                name="trial",
                task=plain_texts(Path(folder)) if plain else task,
                model=model,
                cut=tuple(range(backbone.blocks)),
                seeds=seed,
                limit=examples,
                train=(train,),
                record=Recording(examples=recorded or 2 * examples // 3),
                plant=plant,
                defenses=(defense,),
                attacks=tuple(attacks),
            )
            plan = make_plan(suite, twins=False)
        targets = [p for p in plan.cells if p.cell.shadow is None]
        cells = [p for p in targets if not p.skip_reason] or targets
        suited = [p for p in cells if any(pairing.goals for pairing in p.pairings)]
        planned = (suited or cells)[0]
        loaded = with_public(plan.tasks[planned.cell.data_hash], public * examples)
        known = encode_public(planned.cell, loaded, backbone, plan.public)
        inputs = Inputs.of(planned.cell, loaded, backbone, known)
        trained = {}
        for p in plan.cells:
            if p.cell.shadow is not None and p.cell.cut == planned.cell.cut:
                with_coins = inputs.with_coins(p.cell, loaded)
                trained[p.cell.key] = run_cell(CellContext(p, with_coins, backbone))
        planned, _ = with_shadows(planned, trained.get)
        return cls(planned, inputs, backbone)

    def record(self) -> Record:
        """The record of the cell, from the runner."""
        return run_cell(self.context())

    def train(self, other_noise: bool = False, swapped: Channel | None = None) -> Trained:
        """Fine-tunes and predicts, with all channels allowed.

        Args:
            other_noise: use another seed for the mechanism only.
            swapped: channel whose messages arrive in random order during training.
        """
        context = self.context()
        wire = Wire(frozenset(Channel), self.inputs.recorded)
        other = replace(context.seeds, mechanism=context.seeds.mechanism + other_noise)
        wire.swap(float(swapped is not None), only=swapped)
        tuned = fine_tune(self.planned.defense, context.session(wire, other))
        wire.swap(0)
        scores = torch.zeros(0, 0)
        if context.classes:
            evaluated = context.cell.evaluate
            scores = tuned.predict(self.inputs.tokens[evaluated], evaluated)
        return Trained(wire, tuned, scores, wire.transcript(), context.backbone)

    def shown(self) -> Transcript:
        """Fine-tunes; what was sent, with the channels that the vendor works out of it if an attack reads them."""
        trained = self.train()
        return with_derived_channels(
            CellContext(self.planned, self.inputs, trained.backbone), trained.transcript
        )

    def handed_out(self, trained: Trained) -> torch.Tensor:
        """[n, C] scores of the last model that was released."""
        context = self.context()
        network = context.session(Wire(frozenset(Channel), {})).trainee()
        released = [m for m in trained.transcript.messages if m.channel == Channel.MODEL]
        network = restore(network, torch.from_numpy(released[-1].values[0].copy()))
        evaluated = context.cell.evaluate
        return Released(network).predict(self.inputs.tokens[evaluated], evaluated)

    def attacked(
        self, seen: Transcript, backbone: Backbone, guesses: list[Guess] | None = None
    ) -> list[Leak]:
        """The scored guesses of the attacks.

        Args:
            guesses: list to which the guesses are added.
        """
        context = CellContext(self.planned, self.inputs, backbone)
        return attack_all(context, seen, guessed=guesses)

    def guesses(self, seen: Transcript, told_all: bool = False) -> list[Guess]:
        """Guesses of the first attack.

        Args:
            told_all: grant all knowledge, beyond the threat model.
        """
        pairing, context = self.planned.pairings[0], self.context()
        knows = frozenset(Knows) if told_all else pairing.attack.needs
        knowledge = knowledge_for(pairing, context, knows)
        labels = self.inputs.task.splits["train"].labels
        if told_all:
            knowledge = replace(knowledge, labels=labels)
        rng = np.random.default_rng(context.seeds.attack)
        try:
            return attack_guesses(pairing.attack, seen, knowledge, rng, labels)
        except Silent:  # a valid answer
            return []


def with_public(task: Task, n: int) -> Task:
    """The task with its first n public texts."""
    splits = dict(task.splits)
    if public := splits.get("auxiliary"):
        splits["auxiliary"] = public.take(np.arange(min(n, len(public))))
    return replace(task, splits=splits)


def variants(method: M) -> Iterator[M]:
    """Variants of a method with another choice of one parameter."""
    for name, field in type(method).model_fields.items():
        choices: tuple[Any, ...] = (False, True) if field.annotation is bool else ()
        for kind in (field.annotation, *get_args(field.annotation)):  # it may be optional
            if get_origin(kind) is Literal:
                choices += get_args(kind)
        for choice in choices:
            if choice != getattr(method, name):
                with suppress(ValidationError):  # a choice may require other parameters
                    yield type(method)(**method.params | {name: choice})


def undefended() -> list[Defense]:
    """Registered defenses with protection off, if they have such a parameter."""
    defenses: list[Defense] = []
    for cls in registry.defenses().values():
        switches: list[dict[str, Any]] = [{}]
        if cls.knob:
            switches += [{cls.knob: None}, {cls.knob: 0}]
        for params in switches:
            with suppress(ValidationError):
                defenses.append(cls(**params))
    others = [variant for defense in defenses for variant in variants(defense)]
    return [defense for defense in [*defenses, *others] if defense.undefended]


def fingerprint(backbone: Backbone) -> str:
    """SHA-256 of the weights."""
    digest = hashlib.sha256()
    for name, value in backbone.model.state_dict().items():
        digest.update(name.encode() + value.cpu().numpy().tobytes())
    return digest.hexdigest()


def copy_transcript(
    seen: Transcript, visible: frozenset[Channel] = frozenset(Channel)
) -> Transcript:
    """A read-only copy of a transcript, with zeros on the channels that are not visible."""

    def frozen(array: NDArray[Any]) -> NDArray[Any]:
        array.setflags(write=False)
        return array

    def one(message: Message) -> Message:
        is_visible = message.channel in visible
        values = message.values.copy() if is_visible else np.zeros_like(message.values)
        lengths = None if message.lengths is None else frozen(message.lengths.copy())
        rows = frozen(message.rows.copy())
        return replace(message, rows=rows, values=frozen(values), lengths=lengths)

    return Transcript(tuple(map(one, seen.messages)), dict(seen.dropped))


def same_messages(one: Any, other: Any) -> bool:
    """Whether two sequences of messages or of guesses are equal."""
    return len(one) == len(other) and all(
        np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b
        for first, second in zip(one, other, strict=True)
        for a, b in zip(vars(first).values(), vars(second).values(), strict=True)
    )


WORDS = {
    "label": ("bad", "good"),
    "gender": ("she", "he"),
    "age_band": ("young", "adult", "old"),
}
REVIEW_WORDS = 5
"""Number of words of a review, so that texts are short and the named values are a large part."""


def plain_texts(folder: Path) -> UserTask:
    """Writes shortened `reviews` into a folder, each after words that name its label and attributes."""
    task = load_task("reviews")
    for name in ("train", "dev"):
        lines = ["\t".join(["text", *WORDS]), *_lines(task.splits[name])]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return UserTask(name="plain-reviews", path=folder, attributes=tuple(task.attributes))


def _lines(split: Split) -> list[str]:
    values = {"label": split.labels, **split.attributes}
    rows = zip(*([WORDS[name][value] for value in values[name]] for name in WORDS), strict=True)
    return [
        "\t".join([" ".join([*words, *text.split()[:REVIEW_WORDS]]), *words])
        for text, words in zip(split.texts, rows, strict=True)
    ]
