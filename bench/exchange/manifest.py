"""What stands at the head of a transcript folder: what it holds, of which model, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field

from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import Channel, Part, Party, TrainSettings, visible

FORMAT = 3
"""2 knows of models that are not named, of names for the labels, and of what was left out; 3 of language
models, which have no classes."""
MANIFEST = "manifest.json"


MOST_CLASSES, MOST_MESSAGES = 10_000, 500_000
"""Attacks hold tables of examples by classes; and each message takes a thousand bytes."""
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(visible)]
Count = Annotated[int, Field(ge=0, lt=2**53)]


def _none_or_several(classes: int) -> int:
    if classes == 1:
        raise ValueError("a task has two classes or more, or none where a language model is tuned")
    return classes


class Sent(Part):
    """One message, less its numbers; fields as in `Message`."""

    channel: Channel
    split: Name
    round: Count
    sender: Party
    recipient: Name
    part: Count
    step: int = Field(-1, ge=-1, lt=2**53)
    moment: Count | None = None
    examples: int = Field(ge=1)
    ragged: bool
    """Whether examples differ in length, so that `lengths` are there."""
    shape: list[int] = Field(max_length=8)
    dtype: Name
    file: Name


class Manifest(Part):
    """What a folder holds and which model it is about."""

    format: int = FORMAT
    model: Name
    model_hash: Name | None = None
    """Of weights and vocabulary, as `Backbone.hash`; None where no public model is known."""
    cut: Count
    """Blocks of the model below the trust boundary; 0 where the model is not known."""
    vocabulary: int | None = Field(None, ge=1, lt=2**31)
    """Number of token ids; None for a model without any."""
    classes: Annotated[int, AfterValidator(_none_or_several)] = Field(ge=0, le=MOST_CLASSES)
    """0 of a language model, whose labels are the tokens of the text."""
    labels: tuple[Name, ...] = Field((), max_length=MOST_CLASSES)
    """Names of the classes in the order of the logits, where they are known."""
    train: TrainSettings = TrainSettings.model_validate({})
    """Where adapters were sent: how they are shaped and trained."""
    splits: dict[Name, Count]
    """Examples of each split that are recorded throughout."""
    files: dict[Name, Count]
    """Bytes of each file."""
    dropped: dict[Channel, Count] = Field(default_factory=dict)
    """Bytes of each channel that were sent and are not here."""
    cut_short: str = ""
    """The error that ended the recording before its time, or nothing."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """What was seen and is not here: why, and how many examples or passes."""
    messages: list[Sent] = Field(min_length=1, max_length=MOST_MESSAGES)


@dataclass(frozen=True)
class PublicModel:
    """The public model that what was sent comes from, as far as it is known.

    Attributes:
        hash: None where it is not known: attacks then do without the model's weights.
        vocabulary: number of token ids; None for a model without any.
        width: of the vectors at the cut, where it is known.
    """

    name: str
    hash: str | None = None
    vocabulary: int | None = None
    width: int | None = None

    @classmethod
    def of(cls, backbone: Backbone) -> PublicModel:
        return cls(backbone.name, backbone.hash, len(backbone.embeddings), backbone.width)


@dataclass(frozen=True)
class Missing:
    """What a recording lacks; fields as in `Manifest`."""

    cut_short: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
