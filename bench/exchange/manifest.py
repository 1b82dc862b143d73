"""The manifest of a transcript folder: its messages, its model, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import Channel, Objective, Part, Party, TrainSettings, visible

FORMAT = 4
"""Format 2 added unnamed models, names of labels and what was left out; format 3 added language models, which have
no classes; format 4 says what a Recorder saw of the training and the order of its examples, and null for settings that are not known."""
MANIFEST = "manifest.json"


MOST_CLASSES, MOST_MESSAGES = 10_000, 500_000
"""Bounds on memory: attacks allocate tables of examples by classes, and a message takes a thousand bytes."""
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(visible)]
Count = Annotated[int, Field(ge=0, lt=2**53)]


def _all_different(labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(labels)) < len(labels):
        raise ValueError("two classes have the same name")
    return labels


class Sent(Part):
    """One message without its arrays; fields as in `Message`."""

    channel: Channel
    split: Name
    round: Count
    sender: Party
    recipient: Name
    part: int = Field(ge=0, lt=2**31)
    step: int = Field(-1, ge=-1, lt=2**53)
    moment: Count | None = None
    examples: int = Field(ge=1, lt=2**53)
    ragged: bool
    """True if examples differ in length, so that there are `lengths`."""
    shape: list[Count] = Field(max_length=8)
    dtype: Name
    file: Name


class Training(Part):
    """What a Recorder saw of a training; None for what it did not see."""

    epochs: Count | None = None
    """Complete rounds over the recorded examples."""
    passes: Count | None = None
    """Forward passes in training."""
    steps: Count | None = None
    """Steps of optimisers of torch."""
    batch_size: Count | None = None
    """Examples of most passes."""
    accumulation: Count | None = None
    """Backward passes before most steps."""
    learning_rate: float | None = Field(None, ge=0, le=1e9)
    """The largest one."""
    optimiser: Name | None = None
    tune: Name | None = None
    """full, part, or the kind of adapter as peft names it, such as lora or prompt_tuning."""
    lora_rank: Count | None = None
    lora_alpha: float | None = Field(None, ge=0, le=1e9)
    checkpointing: bool | None = None
    """Whether blocks are computed again in the backward pass."""
    packing: bool | None = None
    """Whether a row of a batch held several examples."""
    precision: Name | None = None
    virtual_tokens: Count | None = None
    """Trained vectors in front of each text."""
    longest: Count | None = None
    """Tokens of the longest example."""
    begins: Count | None = None
    """Token id with which every example begins; None if they differ."""
    ends: Count | None = None
    """Token id with which every example ends; None if they differ."""
    head: Literal["vendor", "customer"] | None = None
    """Holder of the output layer of a causal language model."""
    order: dict[Name, Name] | None = None
    """By split one digest of the token ids of all recorded examples in the order of their rows; None for examples that
    were not told apart by their ids."""


class Manifest(Part):
    """The messages of a folder and the model that they are about."""

    format: int = Field(FORMAT, strict=True, ge=1, le=FORMAT)
    model: Name
    model_hash: Name | None = None
    """Hash of weights and vocabulary, as `Backbone.hash`; None if no public model is known."""
    cut: Count
    """Blocks of the model below the trust boundary; 0 if the model is not known."""
    vocabulary: int | None = Field(None, ge=1, lt=2**31)
    """Number of token ids; None for a model without any."""
    classes: int = Field(ge=0, le=MOST_CLASSES)
    """Number of outputs of the head: of classes or labels, 1 for a number, 0 for a language model, whose labels are the
    tokens of the text."""
    labels_are: Literal["numbers", "sets"] | None = None
    """Numbers for regression, sets for several labels per text; None for classes and for a language model."""
    labels: Annotated[tuple[Name, ...], AfterValidator(_all_different)] = Field(
        (), max_length=MOST_CLASSES
    )
    """Names of the classes in the order of the logits, if they are known."""
    train: TrainSettings | None = None
    """Shape and training of adapters, if adapters were sent; None if they are not known."""
    training: Training | None = None
    """What a Recorder saw of the training; None of other transcripts."""
    splits: dict[Name, Count]
    """Number of examples of each split that are recorded in every round."""
    files: dict[Name, Count]
    """Bytes of each file."""
    dropped: dict[Channel, Count] = Field(default_factory=dict)
    """Bytes of each channel that were sent but not recorded."""
    cut_short: str = ""
    """The error that interrupted the recording, or nothing."""
    left_out: dict[str, Count] = Field(default_factory=dict)
    """Number of examples or passes that were seen but not recorded, by reason."""
    messages: list[Sent] = Field(min_length=1, max_length=MOST_MESSAGES)

    @model_validator(mode="after")
    def _has_fitting_outputs(self) -> Manifest:
        if self.classes == 1 and self.labels_are != "numbers":
            raise ValueError(
                "classes: a task has at least two classes, or none for a language model"
            )
        if self.labels_are == "numbers" and self.classes != 1:
            raise ValueError("classes: a model that predicts numbers has one output")
        return self

    @property
    def objective(self) -> Objective:
        """Training objective of the model."""
        if self.labels_are is not None:
            return "regression" if self.labels_are == "numbers" else "multilabel"
        return "classification" if self.classes else "language modelling"


@dataclass(frozen=True)
class PublicModel:
    """The public model behind a transcript, as far as it is known.

    Attributes:
        hash: None if unknown; attacks then run without the weights of the model.
        vocabulary: number of token ids; None for a model without any.
        width: dimension of the vectors at the cut, if known.
    """

    name: str
    hash: str | None = None
    vocabulary: int | None = None
    width: int | None = None

    @classmethod
    def of(cls, backbone: Backbone, cut: int) -> PublicModel:
        return cls(backbone.name, backbone.hash, len(backbone.embeddings), backbone.width_at(cut))


@dataclass(frozen=True)
class Missing:
    """The missing parts of a recording; fields as in `Manifest`."""

    cut_short: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
