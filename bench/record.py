"""The schema of a record: everything that is kept of one cell. `results/README.md` explains each field."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bench.types import Channel, Claim, Goal

SCHEMA = 1

Status = Literal["ok", "skipped", "failed", "diverged", "out-of-memory"]


class Part(BaseModel):
    """Base of all parts: immutable, no unknown keys, no NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class MethodSpec(Part):
    """A method with all its parameters, defaults included."""

    name: str
    params: dict[str, Any] = {}
    version: int = 1


class TrainSettings(Part):
    """How the model is fine-tuned; the same for every defense of a suite."""

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
    tune: Literal["lora", "full"] = "lora"
    """What is trained of a released model: LoRA (and the head of a classifier), or all of it."""


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
    """How often a canary is repeated; there are `each` canaries of every sentence and number."""
    each: int = Field(1, ge=1)
    unseen: int = Field(100, ge=0)
    """Secrets of each sentence that are drawn but not planted: the level of what was never seen."""
    audit: int = Field(0, ge=0)
    """Training examples for each of which a fair coin decides whether the model is trained on it."""

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
    def _positive(cls, copies: tuple[int, ...]) -> tuple[int, ...]:
        if min(copies, default=0) < 1:
            raise ValueError("must be numbers of 1 or more; what is not planted is `unseen`")
        return copies


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
        if self.shadow is None:
            del content["shadow"]
        if self.train.tune == "lora":
            del content["train"]["tune"]
        return digest(content)[:16]


class Estimate(Part):
    """A measured number with its uncertainty."""

    value: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    n: int
    """Independent units behind the interval: examples, never tokens."""
    chance: float
    """What guessing without any observation reaches."""


class Point(Part):
    """What an attack found at one moment of training, in the part where it found most."""

    step: int
    """The first of the window; −1 for what was sent outside of training."""
    part: int
    """Which adapter, or which gradient of it."""
    recipient: str
    success: Estimate


class Leak(Part):
    """What one attack found in one view of the transcript, or why it found nothing."""

    attack: MethodSpec
    status: Status
    reason: str = ""
    goal: Goal
    view: str = ""
    attribute: str | None = None
    channel: Channel | None = None
    metric: str = ""
    success: Estimate | None = None
    step: int | None = None
    """Where it was read at one moment of training: at which."""
    ceiling: float = 1.0
    """The largest `success` there is."""
    epsilon: float | None = None
    """What a guess about membership proves: the model is not ε-private for a smaller ε (95 %)."""
    curve: list[Point] = []
    """All moments, where there are several; with the worst one only."""
    undefined: int = 0
    """Moments left out, since one class was missing there."""
    units: int = 0
    """Guesses scored: tokens for inversion, examples otherwise."""
    certificate: bool = False
    """On an undefended cell: the attack worked as it must, so its failures elsewhere are evidence."""
    told: list[int] = []
    """For each value of the attribute the examples that the attacker was told to have it."""
    seconds: float = 0.0
    raw: dict[str, list[int]] = {}
    """Numbers per example from which `success` can be computed again."""

    @property
    def ep(self) -> Estimate | None:
        """Empirical privacy, 1 − success / ceiling, with its interval."""
        s, most = self.success, self.ceiling
        if s is None:
            return None
        value, low, high, chance = (1 - x / most for x in (s.value, s.high, s.low, s.chance))
        return Estimate(value=value, low=low, high=high, n=s.n, chance=chance)

    @property
    def advantage(self) -> float | None:
        """(success − chance) / (ceiling − chance)."""
        s, most = self.success, self.ceiling
        return None if s is None or s.chance >= most else (s.value - s.chance) / (most - s.chance)


class Projection(Part):
    """First two principal components of what one recipient saw at one moment of training."""

    channel: Channel
    step: int
    part: int
    recipient: str
    points: list[list[int]]
    """Two whole numbers per example, from −1000 to 1000."""
    truth: list[int]
    """The label of each."""


class BottomCost(Part):
    """What the part of the model below the cut asks of the customer, whatever the machine."""

    parameters: int
    """Those on which the representation depends."""
    tokens: int
    """Mean length of a training example, to which `flops` and `megabytes` refer."""
    flops: int
    """Floating-point operations of one pass forward of one example; a product and a sum are two."""
    megabytes: float
    """Its parameters and the representations of one batch, in MB (10^6 bytes)."""


class Cost(Part):
    """What the cell cost. Seconds and memory depend on the machine, the rest does not."""

    bytes_up: int
    """Customer to vendor."""
    bytes_down: int
    """Vendor to customer."""
    trained_parameters: int
    calls: int | None = None
    """Of the vendor's API, while fine-tuning; none where there is no such API."""
    client_seconds: float | None = None
    """What the customer computed besides these calls."""
    skipped_batches: int = 0
    """Batches in which the defense could not do its part, since a class was missing."""
    train_seconds: float
    attack_seconds: float
    total_seconds: float
    peak_megabytes: float
    epoch_bytes_up: float | None = None
    """Customer to vendor while fine-tuning, per epoch; what is sent once is spread over all epochs."""
    epoch_bytes_down: float | None = None
    """Vendor to customer while fine-tuning, per epoch."""
    bottom: BottomCost | None = None
    """Of the customer's part of the model; none where the customer sends tokens and holds none."""


class Provenance(Part):
    """Where and with what the record was made."""

    created: str
    leakboard: str
    commit: str
    dirty: bool | None
    python: str
    packages: dict[str, str]
    device: str
    precision: str
    threads: int
    platform: str


class Record(Part):
    """One cell: fine-tuned once, attacked by every applicable attack."""

    schema_version: int = SCHEMA
    key: str
    cell: Cell
    status: Status
    reason: str = ""
    undefended: bool = False
    """The protection was off: attacks earn their certificates here."""
    utility_metric: str = "accuracy"
    utility: Estimate | None = None
    measures: dict[str, Estimate] = {}
    """Further measures of utility, such as perplexities; lower may be better."""
    predictions: dict[str, list[int]] = {}
    """Per example of the evaluated split its predicted and its true class; of language modelling the
    tokens that were predicted and how many there are, secrets left out."""
    loss: list[float] = []
    """Training loss at about 20 moments, each the mean since the one before."""
    leaks: list[Leak] = []
    projections: list[Projection] = []
    claim: Claim | None = None
    dropped_bytes: int = 0
    cost: Cost | None = None
    provenance: Provenance

    def outcome(self) -> dict[str, Any]:
        """The record without what varies between two runs of one cell: times, memory, provenance."""
        kept = self.model_dump(mode="json", exclude={"provenance"})
        for leak in kept["leaks"]:
            del leak["seconds"]
        if kept["cost"]:
            kept["cost"] = {
                k: v
                for k, v in kept["cost"].items()
                if not k.endswith("seconds") and k != "peak_megabytes"
            }
        return kept

    def merged(self, earlier: Self) -> Self:
        """This record with the leaks of an earlier one that it did not compute again."""
        mine = {attack_id(leak.attack) for leak in self.leaks}
        rest = [leak for leak in earlier.leaks if attack_id(leak.attack) not in mine]
        return self.model_copy(update={"leaks": [*rest, *self.leaks]})


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def attack_id(spec: MethodSpec) -> str:
    """Tells two attacks apart: name, version and parameters."""
    return digest(spec.model_dump(mode="json"))
