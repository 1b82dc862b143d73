"""token-gradient: reads the training texts of a language model from gradients at its output layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from leakboard.bench.attacking import token_mixture
from leakboard.bench.backbones import NO_LABEL, pieces
from leakboard.bench.contracts import (
    Channel,
    Collected,
    Goal,
    Guess,
    Ints,
    Knows,
    ThreatModel,
    Transcript,
)
from leakboard.bench.methods import Attack, Knowledge, Silent, Source

TINY = 1e-30
"""Lower bound of a squared norm; the gradient after the last token is 0 and has no direction."""
ROUNDING = 1e-5
"""Squared distance, as a share of the squared lengths, below which float32 tells no direction."""


class TokenGradient(Attack):
    """Read the label of each token, which is the next token, and so the text.

    With softmax cross-entropy, ∂loss/∂logits is (p − onehot)/N, which is negative at the label only. If the
    customer holds the output layer W and sends g = Wᵀ(p − onehot)/N, p follows from the vector h that the vendor
    sent, and Wᵀp − N·g is the label's row of W. The number of labels N is not needed: the guess is the token whose
    Wᵀp − W_y is aligned with g.

    Only the first pass over the examples is read, since later ones give the same labels. Noise in the inputs does
    not matter. If one server received P³EFT's vectors for the gradients of two adapters, it separates the mixture
    (`leakboard.bench.attacking.token_mixture`); messages to several servers are read as they are.
    """

    name: ClassVar[str] = "token-gradient"
    source: ClassVar[Source] = Source(
        "Leakboard; of classes: Label Inference Attacks Against Vertical Federated Learning (Fu et al. 2022)",
        "direct label inference",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL, Goal.INVERSION},
        reads={Channel.LOGIT_GRADIENTS, Channel.GRADIENTS, Channel.ACTIVATIONS},
        knows={Knows.BASE_WEIGHTS},
    )
    labels: ClassVar[Literal["classes", "next tokens"]] = "next tokens"
    version: ClassVar[int] = 2

    def readable(self, cut: int) -> frozenset[Channel]:
        """Channels at a cut; activations alone reveal no labels."""
        return self.threat.reads - {Channel.ACTIVATIONS}

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.base is not None
        if Channel.LOGIT_GRADIENTS in seen.channels:
            channel, read = Channel.LOGIT_GRADIENTS, _by_logits(seen)
        elif Channel.GRADIENTS in seen.channels:
            channel = Channel.GRADIENTS
            read = _by_vectors(seen, knowledge.base.output_layer())
        else:
            raise Silent("no gradient was sent")
        blocks = list(read)
        rows, lengths, labels = (np.concatenate(each) for each in zip(*blocks, strict=True))
        # The first token of a text is public; the labels are the others.
        text, last = np.roll(labels, 1), np.cumsum(lengths) - 1
        text[last - lengths + 1] = 0
        return [
            Guess(Goal.LABEL, channel, "train", rows, labels, lengths, view="train"),
            Guess(Goal.INVERSION, channel, "train", rows, text, lengths, view="train"),
        ]


Block = tuple[Ints, Ints, Ints]
"""Rows [n], number of tokens of each [n], and the guessed label of each token [T]."""


def _by_logits(seen: Transcript) -> Iterator[Block]:
    channel = Channel.LOGIT_GRADIENTS
    for block in seen.blocks(channel, "train", seen.rounds(channel)[0]):
        yield block.rows, lengths_of(block), block.values.argmin(1)


def _by_vectors(seen: Transcript, head: Tensor) -> Iterator[Block]:
    """Guesses from gradients at the vectors below the output layer `head` [V, d]."""
    if steps := token_mixture.steps_of(seen):
        yield _ordered(
            *token_mixture.read(
                steps, lambda g, h: explained(g, h, head), lambda h, y: implied(h, y, head)
            )
        )
        return
    where = {"split": "train", "round": seen.rounds(Channel.GRADIENTS)[0]}
    sent = seen.collect(Channel.GRADIENTS, **where)  # type: ignore[arg-type]
    down = seen.collect(Channel.ACTIVATIONS, **where)  # type: ignore[arg-type]
    lengths, found = lengths_of(sent), np.full(len(sent.values), NO_LABEL)
    for _, at in pieces(torch.from_numpy(lengths.copy()), len(head)):
        g = torch.from_numpy(sent.values[at].copy()).to(head.device)
        h = torch.from_numpy(down.values[at].copy()).to(head.device)
        found[at] = explained(g, h, head)[1].cpu().numpy()
    yield sent.rows, lengths, found


def explained(g: Tensor, h: Tensor, head: Tensor) -> tuple[Tensor, Tensor]:
    """[t] the largest cosine between g and Wᵀp − W_y over the rows W_y of `head` [V, d], and that row.

    Args:
        g: [t, d] gradients, of any length.
        h: [t, d] the vectors at which they are taken.
    """
    best = cosines(g.to(head.device), h.to(head.device), head).max(1)
    return best.values.cpu(), best.indices.cpu()


def implied(h: Tensor, labels: Tensor, head: Tensor) -> Tensor:
    """[t, d] Wᵀp − W_y, the direction of the gradient at `h` [t, d] if the labels are those [t]."""
    return (predicted(h.to(head.device), head) - head[labels.to(head.device)]).cpu()


def predicted(h: Tensor, head: Tensor) -> Tensor:
    """[t, d] Wᵀp, the mean row of the output layer under what `h` [t, d] predicts."""
    return (h @ head.T).softmax(1) @ head


def cosines(g: Tensor, h: Tensor, head: Tensor) -> Tensor:
    """[t, V] cosine between g and Wᵀp − W_y for every row W_y of `head`; arguments as in `explained`."""
    mean = predicted(h, head)
    along = (g * mean).sum(1, keepdim=True) - g @ head.T
    sizes = mean.square().sum(1, keepdim=True) + head.square().sum(1)
    far = sizes - 2 * mean @ head.T
    # A certain prediction lies on its own row, up to rounding, and then there is no direction.
    far = torch.where(far > ROUNDING * sizes, far, torch.inf)
    cosine: Tensor = along / (far.sqrt() * g.norm(dim=1, keepdim=True).clamp(min=TINY))
    return cosine


def _ordered(rows: Ints, lengths: Ints, labels: Ints) -> Block:
    """The block, sorted by row."""
    parts = np.split(labels, np.cumsum(lengths)[:-1])
    order = np.argsort(rows)
    return rows[order], lengths[order], np.concatenate([parts[i] for i in order])


def lengths_of(block: Collected) -> Ints:
    """Number of tokens of each text. Raises Silent for messages about whole texts."""
    if block.lengths is None:
        raise Silent(
            "what was sent is about whole texts, whose labels are classes, and not about tokens"
        )
    return block.lengths
