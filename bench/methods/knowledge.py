"""What an attack may use besides the transcript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, Memory
from leakboard.bench.methods.defense import Defense

if TYPE_CHECKING:
    from leakboard.bench.backbones import Backbone, Ragged, Tokens
    from leakboard.bench.exchange import Trainee


@dataclass(frozen=True)
class Auxiliary:
    """Public text, disjoint from every other split of the task.

    It is of the customer's kind, with its labels and attributes; or, where the attack's parameter
    `auxiliary` names another task, of that one's kind and without labels.
    """

    tokens: Tokens
    labels: Ints
    attributes: dict[str, Ints] = field(default_factory=dict)
    learned: Memory = field(default_factory=Memory, compare=False, repr=False)
    """By whom it is known, under the same model."""
    masked: Tokens | None = None
    """The same examples as the mechanism would have trained on them (`Defense.as_trained`). None where
    that is as they are, and for who does not know the mechanism."""

    def take(self, n: int) -> Auxiliary:
        """The first n examples, with all that is known of them; what was learned of all of them stays behind."""
        import torch  # here, since it takes a second to load

        rows = torch.arange(min(n, len(self.tokens)))
        return Auxiliary(
            self.tokens.take(rows),
            self.labels[:n],
            {name: values[:n] for name, values in self.attributes.items()},
            masked=None if self.masked is None else self.masked.take(rows),
        )


Query = Callable[["Tokens", np.random.Generator], "Ragged"]


@dataclass(frozen=True)
class Labelled:
    """What the customers' own attributes are for a share of the recorded training examples.

    These rows are not scored: an attack is measured by what it finds out, not by what it was told.

    Attributes:
        rows: [m] sorted rows of the split `train`.
        attributes: per private attribute [m] indices of its values; −1 where unknown. Attributes
            of which nothing is left to find out are not there.
        values: per private attribute the number of its values, of which some may not occur.
    """

    rows: Ints
    attributes: dict[str, Ints]
    values: dict[str, int]


@dataclass(frozen=True)
class Held:
    """What the customer predicts by itself, with what the vendor handed to it.

    Attributes:
        rows: [n] the recorded examples of `split`.
        predicted: [n] their classes.
    """

    split: str
    rows: Ints
    predicted: Ints


@dataclass(frozen=True)
class Shadows:
    """What an attacker measured of models of its own, which it trained like the target.

    Attributes:
        scores: [S, n] of every candidate under each of S models, by the attack's measure.
        members: [S, n] whether that model was trained on that candidate: half of them were, each on
            its own half, by coins that have nothing to do with the target's.
    """

    scores: NDArray[np.float64]
    members: NDArray[np.bool_]


@dataclass(frozen=True)
class Knowledge:
    """What an attack may use besides the transcript; fields it did not declare are None."""

    classes: int
    device: str
    cut: int = 0
    """Blocks below the trust boundary."""
    base: Backbone | None = None
    """The public model with its initial weights."""
    network: Callable[[], Trainee] | None = None
    """With the base weights: makes the vendor's or the released model, with room for what is trained."""
    mechanism: Defense | None = None
    """The defense with its public parameters."""
    auxiliary: Auxiliary | None = None
    labels: Ints | None = None
    """[N] labels of all examples of `train`, −1 for those of the fold that is to be guessed."""
    labelled: Labelled | None = None
    """A share of the customers' attributes; the attack's parameter `labelled` says how large."""
    query: Query | None = None
    """Answers with the vectors [T, d] that would be received for public tokens, with fresh noise."""
    vocabulary: int = 0
    """How many token ids there are; the tokeniser is public."""
    canaries: tuple[str, ...] = ()
    """Sentences with a place for {digits} that may have been trained on with some digits there."""
    candidates: Auxiliary | None = None
    """Examples of which each may have been trained on or not."""
    prompts: Tokens | None = None
    """Beginnings of training texts, each up to personal data that stand in it; None where nobody marked any."""
    held: Held | None = None
    """Where the customer holds something that predicts."""
    shadows: Shadows | None = None
    """Of models that the attacker trained itself, as many as `Attack.shadowed` says."""
