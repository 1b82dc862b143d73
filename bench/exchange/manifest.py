"""What stands at the head of a transcript folder: what it holds, of which model, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import Field

from bench.backbones import Backbone
from bench.contracts import Channel, Part, Party, TrainSettings

FORMAT = 2
"""2 knows of models that are not named, of names for the labels, and of what was left out."""
MANIFEST = "manifest.json"


class Sent(Part):
    """One message, less its numbers; fields as in `Message`."""

    channel: Channel
    split: str
    round: int
    sender: Party
    recipient: str
    part: int
    step: int = -1
    moment: int | None = None
    examples: int = Field(ge=1)
    ragged: bool
    """Whether examples differ in length, so that `lengths` are there."""
    shape: list[int]
    dtype: str
    file: str


class Manifest(Part):
    """What a folder holds and which model it is about."""

    format: int = FORMAT
    model: str
    model_hash: str | None = None
    """Of weights and vocabulary, as `Backbone.hash`; None where no public model is known."""
    cut: int = Field(ge=0)
    """Blocks of the model below the trust boundary; 0 where the model is not known."""
    vocabulary: int | None = Field(None, ge=1)
    """Number of token ids; None for a model without any."""
    classes: int = Field(ge=2)
    labels: tuple[str, ...] = ()
    """Names of the classes in the order of the logits, where they are known."""
    train: TrainSettings = TrainSettings.model_validate({})
    """Where adapters were sent: how they are shaped and trained."""
    splits: dict[str, int]
    """Examples of each split."""
    files: dict[str, int]
    """Bytes of each file."""
    dropped: dict[Channel, int] = Field(default_factory=dict)
    """Bytes of each channel that were sent and are not here."""
    cut_short: str = ""
    """The error that ended the recording before its time, or nothing."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """What was seen and is not here: why, and how many examples or passes."""
    messages: list[Sent] = Field(min_length=1)


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
