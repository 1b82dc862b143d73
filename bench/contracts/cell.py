"""A cell: the settings, methods and seeds that decide the outcome of one fine-tuning."""

from __future__ import annotations

import hashlib
import json
import reprlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator


class Part(BaseModel):
    """Base of all parts: immutable, no unknown keys, no NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


def _known(value: Any) -> Any:
    if value in PRECISIONS:
        return value
    # Of the spellings in use, bfloat16 and BF16 among them, those with 16 bits say so.
    near = "bf16" if "16" in str(value) else "float32"
    raise ValueError(
        f"must be 'float32' or 'bf16', got {reprlib.repr(value)}. Did you mean '{near}'?"
    )


PRECISIONS = ("float32", "bf16")
Precision = Annotated[Literal["float32", "bf16"], BeforeValidator(_known)]


class TrainSettings(Part):
    """How the model is fine-tuned: the suite's settings, or those of a row of its own."""

    epochs: int = Field(2, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    warmup: float = Field(0.0, ge=0, lt=1)
    """Share of the steps over which the learning rate rises before it falls linearly to zero."""
    max_grad_norm: float = Field(1.0, gt=0)
    lora_rank: int = Field(8, ge=1)
    lora_alpha: float = Field(16.0, gt=0)
    max_length: int = Field(128, ge=4)
    """Tokens per example, special tokens included; longer texts are cut."""
    tune: Literal["lora", "full", "head"] = "lora"
    """What is trained of a released model: LoRA (and the head of a classifier), all of it, or of a
    classifier the head alone, on features that are computed once, without dropout."""
    precision: Precision = "float32"
    """In which the model computes while it is fine-tuned and while the vendor answers with it: bf16 is
    bfloat16 by autocast, on a CPU as on a GPU. What is trained, the optimiser, the losses, what is
    sent, noise and attacks (but for those with a precision of their own) stay in float32; so does the
    training of P³EFT, whose split gradients add up in no less."""


class Recording(Part):
    """What of the transcript is kept for the attacks; bytes are counted in full all the same."""

    examples: int = Field(1000, ge=1)
    """Examples of each split whose messages are kept, the same ones in every round."""
    megabytes: int = Field(2048, ge=1)
    """Upper bound of a transcript; what exceeds it is dropped and flagged. Beyond the first 256 of
    them it lies on disk."""


class Plant(Part):
    """What is planted in the training texts, to see what the released model remembers of them."""

    canaries: tuple[str, ...] = ()
    """Sentences in which {digits} stands for a secret of six random digits: 'My ID is {digits}.'"""
    copies: tuple[int, ...] = (1, 10, 100)
    """How often a canary is repeated; there are `each` canaries of every sentence and number. A suite
    trains a model of its own for each number, of which 0 may be one."""
    each: int = Field(1, ge=1)
    unseen: int = Field(100, ge=0)
    """Secrets of each sentence that are drawn but not planted: the level of what was never seen."""
    audit: int = Field(0, ge=0)
    """Training examples for each of which a fair coin decides whether the model is trained on it."""
    candidates: Literal["natural", "strange"] = "natural"
    """On whom the coins of `audit` fall. `natural`: on training examples of the task. `strange`: on canaries beside these,
    short texts of words that stand nowhere in the task, with labels by chance where it has any: nothing but
    memory tells them."""
    per_author: int | None = Field(None, ge=1)
    """At most so many examples of each author are trained on, and the coins of `audit` fall for authors: what is
    promised of one example is then promised of one author, as many times weaker. For tasks that say who
    wrote each text, such as synthpai."""

    @property
    def planting(self) -> bool:
        """Whether canaries come to stand among the texts."""
        return bool(self.canaries) and any(self.copies)

    @field_validator("canaries", "copies", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return value if isinstance(value, list | tuple) else (value,)

    @field_validator("canaries")
    @classmethod
    def _has_a_place(cls, forms: tuple[str, ...]) -> tuple[str, ...]:
        for form in forms:
            if form.count("{digits}") != 1:
                raise ValueError(f"'{form}' must hold {{digits}} once, where the secret stands")
        return forms

    @field_validator("copies")
    @classmethod
    def _counts(cls, copies: tuple[int, ...]) -> tuple[int, ...]:
        if min(copies, default=-1) < 0:
            raise ValueError("must be at least one number, of 0 or more")
        if len(set(copies)) < len(copies):
            raise ValueError(f"must be different numbers, not {list(copies)}")
        return copies

    @model_validator(mode="after")
    def _has_coins(self) -> Plant:
        if self.candidates == "strange" and (not self.audit or self.per_author is not None):
            raise ValueError(
                "candidates: strange are as many as `audit` says, and nobody wrote them: give audit, and no per_author"
            )
        return self


Objective = Literal["classification", "language modelling"]
Head = Literal["vendor", "customer", "private"]
"""Who holds the output layer of a language model that is fine-tuned over the wire: the public one, which stays as
it is, stands at the vendor's or at the customer's; a private one is the customer's, who tunes it and tells nobody."""


class MethodSpec(Part):
    """A method with all its parameters, defaults included."""

    name: str
    params: dict[str, Any] = {}
    version: int = 1


class Cell(Part):
    """Everything that decides the outcome of one fine-tuning. Its hash is the record's key."""

    task: str
    data_hash: str
    """Content of all splits, before `limit`."""
    limit: int | None
    """At most so many examples of each split, drawn with the data seed."""
    evaluate: str
    """The split on which utility is measured."""
    model: str
    model_hash: str
    cut: int
    defense: MethodSpec
    train: TrainSettings
    record: Recording
    seed: int
    plant: Plant | None = None
    shadow: int | None = None
    """The number of a model that an attacker trains like this one, on coins and seeds of its own."""

    @property
    def key(self) -> str:
        content = self.model_dump(mode="json")
        # Younger than the first records, whose keys must not change.
        if self.plant is None:
            del content["plant"]
        else:
            for name in ("per_author", "candidates"):
                if content["plant"][name] == Plant.model_fields[name].default:
                    del content["plant"][name]
        if self.shadow is None:
            del content["shadow"]
        for name in ("tune", "precision"):
            if content["train"][name] == TrainSettings.model_fields[name].default:
                del content["train"][name]
        return digest(content)[:16]


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def changed_fields(recorded: Part, current: Part, prefix: str = "") -> Iterator[str]:
    """One line for each field of which a record and this installation hold different values.

    Args:
        prefix: of the names of the fields; nested fields are named by their path.
    """
    yield from _changed(recorded.model_dump(mode="json"), current.model_dump(mode="json"), prefix)


def _changed(recorded: Mapping[str, Any], current: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name in dict.fromkeys([*recorded, *current]):
        old, new = recorded.get(name), current.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changed(old, new, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name}: {old} in the record, {new} here"


def attack_id(spec: MethodSpec) -> str:
    """Tells two attacks apart: name, version and parameters."""
    return digest(spec.model_dump(mode="json"))


@dataclass(frozen=True)
class Seeds:
    """Independent seeds derived from the seed of a cell.

    That seed is public. The customer's secrets therefore come from a secret of who runs the cell, too:
    with the same one a run can be repeated, and without it nobody can derive them.

    Attributes:
        data: which examples are drawn under a limit, and which are recorded.
        initialisation: adapters and head.
        order: order of the batches, and dropout.
        planting: secret; the digits of canaries, and the coins of what is audited.
        mechanism: secret; the noise of the defense, its mixing weights, its batches.
        attack: whatever an attack draws.
    """

    data: int
    initialisation: int
    order: int
    planting: int
    mechanism: int
    attack: int

    @classmethod
    def of(cls, seed: int, shadow: int | None = None, secret: str = "") -> Seeds:
        """Of a cell, or of a model that an attacker trains on the same data: the rest is its own.

        Args:
            secret: of who runs it; "" derives all from the public seed, as records without a
                fingerprint of a secret were made.
        """
        own = "" if shadow is None else f" of shadow {shadow}"
        mechanism = "mechanism" + own
        return cls(
            data=_derive(seed, "data"),
            initialisation=_derive(seed, "initialisation" + own),
            order=_derive(seed, "order" + own),
            planting=_hidden(secret, seed, "planting") if secret else _derive(seed, "data"),
            mechanism=_hidden(secret, seed, mechanism) if secret else _derive(seed, mechanism),
            attack=_derive(seed, "attack" + own),
        )


def fingerprint(secret: str) -> str | None:
    """What a record tells of a secret: which one it was, and nothing about it. None for ""."""
    if not secret:
        return None
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"fingerprint").hexdigest()


def _derive(seed: int, axis: str) -> int:
    # The axis enters by its name, so that adding an axis leaves the others as they were.
    sequence = np.random.SeedSequence([seed, zlib.crc32(axis.encode())])
    return int(sequence.generate_state(1, np.uint32)[0])


def _hidden(secret: str, seed: int, axis: str) -> int:
    """128 bits, so that trying all seeds against what a vendor received is hopeless."""
    key = hashlib.sha256(secret.encode()).digest()
    return int.from_bytes(
        hashlib.blake2b(f"{axis} of {seed}".encode(), key=key, digest_size=16).digest()
    )
