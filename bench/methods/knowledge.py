"""Knowledge that an attack may use in addition to the transcript."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, Memory
from leakboard.bench.methods.defense import Defense

if TYPE_CHECKING:
    from leakboard.bench.backbones import Backbone, Ragged, Tokens
    from leakboard.bench.exchange import Trainee


@dataclass(frozen=True)
class Auxiliary:
    """Public text, disjoint from every other split of the task.

    It comes from the task itself, with labels and attributes; or, if the attack's parameter `auxiliary` names
    another task, from that task and without labels.
    """

    tokens: Tokens
    labels: Ints | NDArray[np.float32]
    """Classes, or targets as in `Split`; empty where labels are not given."""
    attributes: dict[str, Ints] = field(default_factory=dict)
    learned: Memory = field(default_factory=Memory, compare=False, repr=False)
    """Cache of what attackers with this text learned from it under the same model."""
    masked: Tokens | None = None
    """The same examples as changed by the mechanism before training (`Defense.as_trained`). None if it does not change
    them, and for an attack that does not know the mechanism."""

    def take(self, n: int) -> Auxiliary:
        """The first n examples, with an empty cache `learned`."""
        import torch  # imported here because it takes a second

        rows = torch.arange(min(n, len(self.tokens)))
        return Auxiliary(
            self.tokens.take(rows),
            self.labels[:n],
            {name: values[:n] for name, values in self.attributes.items()},
            masked=None if self.masked is None else self.masked.take(rows),
        )


Query = Callable[["Tokens", Generator], "Ragged"]


@dataclass(frozen=True)
class Labelled:
    """The private attributes of a share of the recorded training examples.

    These rows are not scored, because the attack does not have to guess them.

    Attributes:
        rows: [m] sorted rows of the split `train`.
        attributes: by private attribute, [m] indices of its values; −1 if unknown. Attributes with no
            other known value are left out.
        values: number of values by private attribute; some may not occur.
    """

    rows: Ints
    attributes: dict[str, Ints]
    values: dict[str, int]


@dataclass(frozen=True)
class CustomerPredictions:
    """Predictions that the customer makes itself, with the weights that the vendor gave it.

    Attributes:
        rows: [n] recorded examples of `split`.
        predicted: [n] their predicted classes.
    """

    split: str
    rows: Ints
    predicted: Ints


@dataclass(frozen=True)
class Shadows:
    """Measurements of shadow models, which the attacker trained like the target.

    Attributes:
        scores: [S, n] score of every candidate under each of S models, by the attack's measure.
        members: [S, n] True if the model was trained on the candidate; each model was trained on a random half,
            independently of the target.
    """

    scores: NDArray[np.float64]
    members: NDArray[np.bool_]


@dataclass(frozen=True)
class Knowledge:
    """Knowledge that an attack may use in addition to the transcript; fields that it did not declare are None."""

    classes: int
    device: str
    cut: int = 0
    """Blocks below the trust boundary."""
    base: Backbone | None = None
    """The public model with its initial weights."""
    network: Callable[[], Trainee] | None = None
    """Creates the vendor's or the released model from the base weights, with untrained adapters."""
    mechanism: Defense | None = None
    """The defense with its public parameters."""
    auxiliary: Auxiliary | None = None
    labels: Ints | None = None
    """[N] labels of all examples of `train`; −1 for the fold that the attack guesses."""
    labelled: Labelled | None = None
    """Attributes of a share of the examples, of the size of the attack's parameter `labelled`."""
    query: Query | None = None
    """Function from public tokens to the vectors [T, d] that the vendor would receive, with new noise."""
    vocabulary: int = 0
    """Number of token ids; the tokeniser is public."""
    canaries: tuple[str, ...] = ()
    """Sentences with a place for {digits}, of which the training texts contain some with digits."""
    candidates: Auxiliary | None = None
    """Examples that may or may not be training examples."""
    texts: Mapping[str, Auxiliary] | None = None
    """By split, different texts of which some were sent: recorded ones of the customer and public ones, shuffled; a
    guess about reidentification is a row of these. Their labels are not given."""
    prompts: Tokens | None = None
    """Beginnings of training texts, up to the personal data in them; None if no personal data are marked."""
    held: CustomerPredictions | None = None
    """Predictions of the customer's own part of the model, if it can predict."""
    shadows: Shadows | None = None
    """Measurements of the shadow models that `Attack.shadowed` requests."""
