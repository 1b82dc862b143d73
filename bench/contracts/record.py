"""The schema of a record: everything that is stored about one cell. `results/README.md` explains each field."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from leakboard.bench.contracts.cell import Cell, MethodSpec, Part, TunedOn, attack_id
from leakboard.bench.contracts.threat import Channel, Claim, Goal

Count = Annotated[int, Field(ge=0, lt=2**63)]
Moment = Annotated[int, Field(ge=-1, lt=2**63)]
"""A step or a part; −1 for none in particular."""
Quantity = Annotated[float, Field(ge=0, le=1e18)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]


class Estimate(Part):
    """A measured number with its uncertainty."""

    value: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    n: Count
    """Independent units behind the interval: examples, never tokens."""
    chance: float
    """What guessing without any observation reaches."""


class Point(Part):
    """Success of an attack at one moment of training, in the part where it is highest."""

    step: Moment
    """First step of the window; −1 for messages outside of training."""
    part: Moment
    """Number of the adapter, of its gradient, or of the pair of adapters; −1 for all adapters at once."""
    recipient: str
    success: Estimate


Status = Literal["ok", "skipped", "failed", "diverged", "out-of-memory"]
FINAL = frozenset[Status]({"ok", "diverged", "skipped"})
"""Statuses that another run would not change; cells and attacks with other statuses are tried again."""


class Leak(Part):
    """Result of one attack on one view of the transcript, or the reason why there is none."""

    attack: MethodSpec
    status: Status
    reason: str = ""
    goal: Goal
    view: str = ""
    attribute: str | None = None
    channel: Channel | None = None
    metric: str = ""
    success: Estimate | None = None
    floor: Estimate | None = None
    """The success of the same attack on activations of the untrained model, which no defense can change.
    For personal data that a model prints: the success on the public model. None if neither applies, in older
    records, and for attacks that read only changes."""
    step: Moment | None = None
    """Step of training, if the attack reads one moment only."""
    ceiling: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """The largest success there is: 1, or 19.93 bits of exposure."""
    bound: float | None = None
    """Largest `success` that the guarantee of the mechanism allows an attacker with this knowledge, if the attack
    computes it; None in older records, too."""
    epsilon: Quantity | None = None
    """Lower bound on ε from guesses about membership: the model is not ε-private for a smaller ε (95 %)."""
    epsilon_ceiling: Quantity | None = None
    """Largest `epsilon` that guesses about so many examples could prove, if all were correct. None in older records,
    too; `leakboard.bench.scoring.provable` computes it for these."""
    curve: list[Point] = []
    """Success at each moment, if there are several; only for the worst view."""
    undefined: Count = 0
    """Moments that are left out because a class was missing."""
    units: Count = 0
    """Number of scored guesses: tokens for inversion, otherwise examples."""
    told: list[Count] = []
    """Number of labelled examples that the attacker was given, by value of the attribute."""
    seconds: Seconds = 0.0
    raw: dict[str, list[int]] = {}
    """Numbers per example from which `success` can be computed again."""

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, given: Any) -> Any:
        """Removes the field `certificate` of earlier versions, which is now derived."""
        if isinstance(given, dict) and "certificate" in given:
            return {name: value for name, value in given.items() if name != "certificate"}
        return given

    @property
    def identity(self) -> tuple[object, ...]:
        """Attack with parameters, goal, view, attribute, channel and metric; unique in a record."""
        spec = self.attack
        method = spec.name, spec.version, repr(sorted(spec.params.items()))
        return *method, self.goal, self.view, self.attribute, self.channel, self.metric

    @property
    def ep(self) -> Estimate | None:
        """Empirical privacy, 1 − success / ceiling. It belongs to one attack: another one may recover more."""
        s, most = self.success, self.ceiling
        if s is None:
            return None
        value, low, high, chance = (1 - x / most for x in (s.value, s.high, s.low, s.chance))
        return Estimate(value=value, low=low, high=high, n=s.n, chance=chance)

    @property
    def level(self) -> float | None:
        """Chance, or the floor where that is higher."""
        if self.success is None:
            return None
        return max(self.success.chance, self.floor.value if self.floor else 0.0)

    @property
    def above(self) -> float | None:
        """(success − level) / (ceiling − level): the advantage over the level, what training leaked."""
        s, level, most = self.success, self.level, self.ceiling
        return (
            None
            if s is None or level is None or level >= most
            else (s.value - level) / (most - level)
        )

    @property
    def advantage(self) -> float | None:
        """(success − chance) / (ceiling − chance): 0 at chance, 1 where everything is found, below 0 for
        worse than guessing."""
        s, most = self.success, self.ceiling
        return None if s is None or s.chance >= most else (s.value - s.chance) / (most - s.chance)


def name_of(leak: Leak) -> str:
    """Attack, goal and view of a leak, for messages."""
    parts = (leak.attack.name, leak.goal, leak.attribute, leak.channel, leak.view, leak.metric)
    return " ".join(str(part) for part in parts if part)


SCHEMA = 1


class Projection(Part):
    """First two principal components of the vectors that one recipient saw at one moment of training."""

    channel: Channel
    step: Moment
    part: Moment
    recipient: str
    points: list[list[int]]
    """Two whole numbers per example, from −1000 to 1000."""
    truth: list[int]
    """Label of each example."""


class BottomCost(Part):
    """Cost of the customer's part of the model, independent of the machine."""

    parameters: Count
    """Number of parameters on which the representation depends."""
    tokens: Count
    """Mean length of a training example, to which `flops` and `megabytes` refer."""
    flops: Count
    """Floating-point operations of the forward pass of one example; a product and a sum count as two."""
    megabytes: Quantity
    """Its parameters and the representations of one batch, in MB (10^6 bytes)."""


class Cost(Part):
    """Cost of a cell. Seconds and memory depend on the machine; the other fields do not."""

    bytes_up: Count
    """Customer to vendor."""
    bytes_down: Count
    """Vendor to customer."""
    trained_parameters: Count
    calls: Count | None = None
    """Calls of the vendor's API during fine-tuning; None without an API."""
    client_seconds: Seconds | None = None
    """Seconds that the customer computed in addition to these calls."""
    skipped_batches: Count = 0
    """Batches that the defense skipped because a class was missing."""
    train_seconds: Seconds
    attack_seconds: Seconds
    recompute_seconds: Seconds | None = None
    """Part of `attack_seconds` that recomputed the activations of all texts sent to a server, once for all attacks.
    None if no attack reads them."""
    total_seconds: Seconds
    peak_megabytes: Quantity
    epoch_bytes_up: Quantity | None = None
    """Customer to vendor during fine-tuning, per epoch; messages sent once are spread over all epochs."""
    epoch_bytes_down: Quantity | None = None
    """Vendor to customer during fine-tuning, per epoch."""
    bottom: BottomCost | None = None
    """Cost of the customer's part of the model; None if the customer sends tokens and has no part of it."""


class Provenance(Part):
    """Software and hardware with which the record was made."""

    created: str
    leakboard: str
    commit: str
    dirty: bool | None
    python: str
    packages: dict[str, str]
    device: str
    precision: str = ""
    """Number format, in records from before `train.precision`: on a GPU bfloat16 by autocast. Empty in later records."""
    threads: Count
    workers: Count = 1
    """Cells that ran at once on the machine; if more than one, seconds cannot be compared."""
    stacked: Count = 1
    """Cells that shared one pass through the model; above 1 only in older records."""
    platform: str
    trials: tuple[str, ...] = ()
    """Keys of the records of all trials that chose the settings of training on held-out training examples, the
    chosen trial first. Empty without such a choice, and in older records."""
    tuned_on: TunedOn | None = None
    """Texts on which the trials were trained and compared: private training examples, or public texts. None without
    trials, and in older records, whose trials were on private examples."""
    secret: str | None = None
    """Fingerprint of the secret behind the customer's secrets; None if they depend only on the seed of the cell."""
    code: dict[str, str] = {}
    """Digest of the file of each method by its name, the defense and the attacks. Empty in older records."""
    not_reproduced: bool = False
    """True if others submitted the record, and it was accepted although no cell of its defense was run again."""


class Record(Part):
    """One cell: fine-tuned once, attacked by every applicable attack."""

    schema_version: Annotated[int, Field(strict=True, ge=1, le=SCHEMA)] = SCHEMA
    key: str
    cell: Cell
    status: Status
    reason: str = ""
    undefended: bool = False
    """True if the protection was off, so that attacks should succeed."""
    utility_metric: str = "accuracy"
    utility: Estimate | None = None
    measures: dict[str, Estimate] = {}
    """Further measures of utility, such as perplexities; lower may be better."""
    predictions: dict[str, list[int]] = {}
    """Predicted and true class of each example of the evaluated split, or its number or labels (see
    `leakboard.bench.scoring.targets`); for language modelling, the number of correctly predicted tokens and of all
    tokens, without secrets."""
    loss: list[float] = []
    """Training loss at about 20 moments, each the mean since the previous moment."""
    wire_check: Estimate | None = None
    """Share of the steps with swapped messages at which the loss is larger than at the steps around them; None unless
    the suite sets `record.swapped` and something is sent during training."""
    leaks: list[Leak] = []
    projections: list[Projection] = []
    claim: Claim | None = None
    dropped_bytes: Count = 0
    cost: Cost | None = None
    provenance: Provenance

    @model_validator(mode="after")
    def _has_each_leak_once(self) -> Self:
        seen = set[tuple[object, ...]]()
        for leak in self.leaks:
            if (identity := leak.identity) in seen:
                raise ValueError(f"holds two results of the same attack: {name_of(leak)}")
            seen.add(identity)
        return self

    def outcome(self) -> dict[str, object]:
        """The record without fields that vary between runs of one cell: times, memory, provenance."""
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
        """This record, with the leaks of an earlier record that it did not compute again."""
        mine = {attack_id(leak.attack) for leak in self.leaks}
        rest = [leak for leak in earlier.leaks if attack_id(leak.attack) not in mine]
        run_again = {leak.attack.name for leak in self.leaks}
        kept = {k: v for k, v in earlier.provenance.code.items() if k not in run_again}
        made = self.provenance.model_copy(update={"code": self.provenance.code | kept})
        return self.model_copy(update={"leaks": [*rest, *self.leaks], "provenance": made})
