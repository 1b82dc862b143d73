"""The schema of a record: everything that is stored about one cell. `results/README.md` explains each field."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from leakboard.bench.contracts.cell import Cell, MethodSpec, Part, attack_id
from leakboard.bench.contracts.threat import Channel, Claim, Goal


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
    """Which adapter, which gradient of it, or which pair of adapters; −1 for all adapters at once."""
    recipient: str
    success: Estimate


Status = Literal["ok", "skipped", "failed", "diverged", "out-of-memory"]


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
    floor: Estimate | None = None
    """The success of the same attack on activations of the untrained model, which no defense can change.
    Of personal data that a model prints: what the public model prints. None where neither is read, in older
    records, and where an attack looks at changes alone."""
    step: int | None = None
    """Where it was read at one moment of training: at which."""
    ceiling: float = 1.0
    """The largest success there is: 1, or 19.93 bits of exposure."""
    bound: float | None = None
    """The largest `success` that the guarantee of the mechanism leaves to who knows as much, where the
    attack tells one; None in older records, too."""
    epsilon: float | None = None
    """What a guess about membership proves: the model is not ε-private for a smaller ε (95 %)."""
    epsilon_ceiling: float | None = None
    """The largest `epsilon` that guesses about so many examples could have proven, had all been right. None
    in older records, too; `leakboard.bench.scoring.provable` knows it there."""
    curve: list[Point] = []
    """All moments, where there are several; with the worst one only."""
    undefined: int = 0
    """Moments left out, since one class was missing there."""
    units: int = 0
    """Guesses scored: tokens for inversion, examples otherwise."""
    told: list[int] = []
    """For each value of the attribute the examples that the attacker was told to have it."""
    seconds: float = 0.0
    raw: dict[str, list[int]] = {}
    """Numbers per example from which `success` can be computed again."""

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, given: Any) -> Any:
        """Earlier versions wrote down whether a leak is a certificate; that is derived now."""
        if isinstance(given, dict) and "certificate" in given:
            return {name: value for name, value in given.items() if name != "certificate"}
        return given

    @property
    def ep(self) -> Estimate | None:
        """Empirical privacy, 1 − success / ceiling. It belongs to one attack: another one may find more."""
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
    """Attack, goal and view, for messages."""
    parts = (leak.attack.name, leak.goal, leak.attribute, leak.channel, leak.view, leak.metric)
    return " ".join(str(part) for part in parts if part)


SCHEMA = 1


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
    recompute_seconds: float | None = None
    """Of these, what it took to compute anew the activations of every text that a server was sent; once
    per cell, for all attacks. None where no attack read them."""
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
    precision: str = ""
    """Of records from before the cell said it (`train.precision`): the number format. On a GPU that was
    bfloat16 by autocast, whatever the cell. Empty in later ones."""
    threads: int
    workers: int = 1
    """How many cells ran at once on the machine; with more than one, seconds compare with nothing."""
    stacked: int = 1
    """Cells that shared one pass through the model; above 1 only in records of versions up to 0.2.0."""
    platform: str
    trials: tuple[str, ...] = ()
    """Keys of the records of all trials by which the settings of training were chosen, on held-out training
    examples; those of the chosen one first. Empty where nothing was chosen, and in older records."""
    secret: str | None = None
    """Fingerprint of what the customer's secrets were drawn from; None: from the cell's seed alone."""


class Record(Part):
    """One cell: fine-tuned once, attacked by every applicable attack."""

    schema_version: int = SCHEMA
    key: str
    cell: Cell
    status: Status
    reason: str = ""
    undefended: bool = False
    """The protection was off: attacks have to work here."""
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
