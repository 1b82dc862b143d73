"""A cell: the settings, methods and seeds that decide the outcome of one fine-tuning."""

from __future__ import annotations

import hashlib
import json
import reprlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import to_json

Objective = Literal["classification", "language modelling", "regression", "multilabel"]
"""Of each text: one class, its next tokens, a number, or any set of labels."""
UtilityMetric = Literal["accuracy", "macro-F1", "MCC", "micro-F1", "Spearman", "Pearson"]

EVERY_OBJECTIVE: frozenset[Objective] = frozenset(get_args(Objective))
WITH_HEAD: frozenset[Objective] = EVERY_OBJECTIVE - {"language modelling"}
"""Objectives that train a head with one output for each class or label, or for the number."""
METRICS: Mapping[Objective, tuple[UtilityMetric, ...]] = {
    "classification": ("accuracy", "macro-F1", "MCC"),
    "regression": ("Spearman", "Pearson"),
    "multilabel": ("micro-F1", "macro-F1"),
    "language modelling": (),
}
"""Metrics that a suite or a task can choose; the first one is the default, except for classes of users' data."""
CORRELATIONS: frozenset[str] = frozenset({"MCC", "Spearman", "Pearson"})
"""Metrics from −1 to 1, of which a hundredth is no percentage point."""


def metric_mismatch(metric: UtilityMetric | None, objective: Objective) -> str | None:
    """Reason why a metric cannot be the utility of an objective; None if it can."""
    if metric is None or metric in METRICS[objective]:
        return None
    fitting = " or ".join(METRICS[objective]) or "chosen by the task"
    return f"{metric} does not measure the utility of {objective}, which is measured by {fitting}"


class Part(BaseModel):
    """Base of all stored data types: immutable, without unknown keys or NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _known(value: Any) -> Any:
    if value in PRECISIONS:
        return value
    # All spellings of bfloat16 contain the number 16.
    near = "bf16" if "16" in str(value) else "float32"
    raise ValueError(
        f"must be 'float32' or 'bf16', got {reprlib.repr(value)}. Did you mean '{near}'?"
    )


PRECISIONS = ("float32", "bf16")
Precision = Annotated[Literal["float32", "bf16"], BeforeValidator(_known)]


class TrainSettings(Part):
    """Settings of fine-tuning, from the suite or from one of its rows."""

    epochs: int = Field(2, ge=1, le=10_000)
    batch_size: int = Field(32, ge=1, le=2**20)
    learning_rate: float = Field(1e-3, gt=0, le=1e9)
    weight_decay: float = Field(0.01, ge=0, le=1e3)
    warmup: float = Field(0.0, ge=0, lt=1)
    """Share of the steps over which the learning rate rises before it falls linearly to zero."""
    max_grad_norm: float = Field(1.0, gt=0, le=1e9)
    lora_rank: int = Field(8, ge=1, le=16_384)
    lora_alpha: float = Field(16.0, gt=0, le=1e6)
    max_length: int = Field(128, ge=4, le=2**20)
    """Tokens per example, including special tokens; longer texts are truncated."""
    tune: Literal["lora", "full", "head"] = "lora"
    """Trained parameters of a released model: LoRA (and the head of a classifier), all parameters, or only
    the head of a classifier, on features that are computed once, without dropout."""
    precision: Precision = "float32"
    """Number format of the model during fine-tuning and API calls; bf16 is bfloat16 by autocast, on a CPU and on
    a GPU. Trained parameters, the optimiser, losses, messages, noise, and attacks without a precision of their
    own stay in float32. So does P³EFT, because its split gradients would not add up in bfloat16."""


class Recording(Part):
    """The part of the transcript that is recorded for the attacks; all bytes are counted in any case."""

    examples: int = Field(1000, ge=1, le=10**7)
    """Examples of each split whose messages are recorded, the same in every round."""
    megabytes: int = Field(2048, ge=1, le=2**20)
    """Largest size of a transcript; messages beyond it are dropped and the record is flagged. Only the first 256
    megabytes are held in memory."""
    answers: bool = False
    """Whether the requests are recorded, too, by which a language model answers prompts of the evaluated split."""
    swapped: float = Field(0.0, ge=0, le=0.5)
    """Share of the training steps at which what the customer sends arrives in random order, so that it belongs to
    other examples or tokens. The loss must rise there (`Record.wire_check`): otherwise the method trains on something
    that did not cross the wire."""


MOST_CANARIES, MOST_COPIES = 100_000, 100_000
"""Largest number of canaries of a kind, and of copies of one; all of them are texts in memory."""


class Plant(Part):
    """Canaries and audit coins in the training texts, to measure what the model memorises."""

    canaries: tuple[str, ...] = ()
    """Sentences in which {digits} stands for a secret of six random digits: 'My ID is {digits}.'"""
    copies: tuple[int, ...] = (1, 10, 100)
    """Repetitions of a canary; there are `each` canaries of every sentence and number of repetitions. A suite
    trains a separate model for each number, which may be 0."""
    each: int = Field(1, ge=1, le=MOST_CANARIES)
    unseen: int = Field(100, ge=0, le=MOST_CANARIES)
    """Secrets of each sentence that are drawn but not planted, as a baseline."""
    audit: int = Field(0, ge=0, le=10**7)
    """Training examples that a fair coin includes in or excludes from training."""
    candidates: Literal["natural", "strange"] = "natural"
    """Examples for the coins of `audit`. `natural`: training examples of the task. `strange`: additional canaries,
    which are short texts of words that do not occur in the task, with random labels if it has labels."""
    per_author: int | None = Field(None, ge=1, le=10**7)
    """Largest number of training examples per author; the coins of `audit` then include or exclude authors. A guarantee
    for single examples holds for authors, weakened by this factor. Needs a task with authors, such as synthpai."""

    @property
    def planting(self) -> bool:
        """True if canaries are planted in the texts."""
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
                raise ValueError(f"'{form}' must contain {{digits}} once, where the secret goes")
        return forms

    @field_validator("copies")
    @classmethod
    def _counts(cls, copies: tuple[int, ...]) -> tuple[int, ...]:
        if min(copies, default=-1) < 0:
            raise ValueError("must be a list of at least one number, each 0 or more")
        if max(copies) > MOST_COPIES:
            raise ValueError(f"must be at most {MOST_COPIES:,}")
        if len(set(copies)) < len(copies):
            raise ValueError(f"must be different numbers, not {list(copies)}")
        return copies

    @model_validator(mode="after")
    def _has_coins(self) -> Plant:
        if self.candidates == "strange" and (not self.audit or self.per_author is not None):
            raise ValueError(
                "candidates: strange needs `audit`, the number of candidates, and excludes `per_author`"
            )
        return self


TunedOn = Literal["private", "public"]
"""Texts on which settings of training were selected."""
Head = Literal["vendor", "customer", "private"]
"""Holder of the output layer of a language model that is fine-tuned over the wire: the vendor or the customer holds the
public layer, which is frozen; a private layer is tuned by the customer and not sent."""


class MethodSpec(Part):
    """A method with all its parameters, including defaults."""

    name: str
    params: dict[str, Any] = {}
    version: int = Field(1, ge=0, lt=2**31)


class Cell(Part):
    """Everything that decides the outcome of one fine-tuning. Its hash is the record's key."""

    task: str
    data_hash: str
    """Content of all splits, before `limit`."""
    limit: int | None = Field(ge=1, lt=2**63)
    """Largest number of examples of each split, drawn with the data seed."""
    evaluate: str
    """The split on which utility is measured."""
    model: str
    model_hash: str
    cut: int = Field(ge=0, lt=2**16)
    defense: MethodSpec
    train: TrainSettings
    record: Recording
    seed: int = Field(ge=0, lt=2**63)
    plant: Plant | None = None
    utility: UtilityMetric | None = None
    """Metric of utility, if the suite or the task sets it."""
    shadow: int | None = Field(None, ge=0, lt=2**31)
    """Number of a shadow model, which an attacker trains like this one with other coins and seeds."""

    @property
    def key(self) -> str:
        content = self.model_dump(mode="json")
        # These fields were added later; keys of earlier records must not change.
        if self.plant is None:
            del content["plant"]
        else:
            for name in ("per_author", "candidates"):
                if content["plant"][name] == Plant.model_fields[name].default:
                    del content["plant"][name]
        for name in ("shadow", "utility"):
            if content[name] is None:
                del content[name]
        for name in ("swapped", "answers"):
            if not content["record"][name]:
                del content["record"][name]
        for name in ("tune", "precision"):
            if content["train"][name] == TrainSettings.model_fields[name].default:
                del content["train"][name]
        return digest(content)[:16]


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form (keys sorted, no spaces), in hexadecimal."""
    whole_numbers: list[bytes] = []
    parts = _canonical(_without_whole_numbers(value, whole_numbers)).split(MARK_JSON)
    if len(parts) != len(whole_numbers) + 1:  # a text of the value is the mark
        parts, whole_numbers = [_canonical(value)], []
    hashed = hashlib.sha256(parts[0])
    for numbers, part in zip(whole_numbers, parts[1:], strict=True):
        hashed.update(numbers + part)
    return hashed.hexdigest()


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _canonical(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


MARK = "\0"
"""Stands for a list of whole numbers."""
MARK_JSON = _canonical(MARK)
LEVELS = 4
"""Lists of whole numbers lie no deeper in a record."""
NESTED = {dict, list}


def _without_whole_numbers(value: Any, taken: list[bytes], levels: int = LEVELS) -> Any:
    """A JSON value whose lists of whole numbers are moved to `taken`, as JSON in the order of sorted keys.

    They are most of a record, and pydantic writes them several times faster than `json`, with the same digits.
    """
    if isinstance(value, dict):
        if not levels or NESTED.isdisjoint(map(type, value.values())):
            return value
        return {
            name: _without_whole_numbers(own, taken, levels - 1) if type(own) in NESTED else own
            for name, own in sorted(value.items())
        }
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], (int, list)):
        text = to_json(value)
        if not text.translate(None, b"-0123456789,[]"):
            taken.append(text)
            return MARK
    if levels < 2 or type(value[0]) not in NESTED:
        return value
    return [_without_whole_numbers(own, taken, levels - 1) for own in value]


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
    """Hash of the name, version and parameters of an attack."""
    return digest(spec.model_dump(mode="json"))


@dataclass(frozen=True)
class Seeds:
    """Independent seeds, one for each axis, derived from the seed of a cell.

    The seed of a cell is public. The customer's secrets therefore also depend on a secret of the user who runs
    the cell: the same secret repeats a run, and nobody can derive them without it.

    Attributes:
        data: the examples that are drawn under a limit, and those that are recorded.
        initialisation: initial values of adapters and head.
        order: order of the batches, and dropout.
        planting: secret; digits of canaries and coins of audits.
        mechanism: secret; noise, mixing weights and batches of the defense.
        attack: all draws of an attack.
    """

    data: int
    initialisation: int
    order: int
    planting: int
    mechanism: int
    attack: int

    @classmethod
    def of(cls, seed: int, shadow: int | None = None, secret: str = "") -> Seeds:
        """Seeds of a cell, or of a shadow model of it, which shares only the data seed.

        Args:
            secret: of the user; "" derives all seeds from the public seed, as in records without a
                fingerprint of a secret.
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
    """Hash that identifies a secret in a record without revealing it; None for ""."""
    if not secret:
        return None
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"fingerprint").hexdigest()


def _derive(seed: int, axis: str) -> int:
    # The axis enters by its name, so that a new axis does not change the others.
    sequence = np.random.SeedSequence([seed, zlib.crc32(axis.encode())])
    return int(sequence.generate_state(1, np.uint32)[0])


def _hidden(secret: str, seed: int, axis: str) -> int:
    """A seed of 128 bits, too many for a vendor to try."""
    key = hashlib.sha256(secret.encode()).digest()
    return int.from_bytes(
        hashlib.blake2b(f"{axis} of {seed}".encode(), key=key, digest_size=16).digest()
    )
