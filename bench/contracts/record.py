"""The schema of a record: everything that is kept of one cell. `results/README.md` explains each field."""

from __future__ import annotations

from typing import Any, Self

from leakboard.bench.contracts.cell import Cell, attack_id
from leakboard.bench.contracts.channels import Channel
from leakboard.bench.contracts.claim import Claim
from leakboard.bench.contracts.estimates import Estimate
from leakboard.bench.contracts.leak import Leak, Status
from leakboard.bench.contracts.parts import Part

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
