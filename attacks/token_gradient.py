"""Reads the text that a language model is tuned on from the gradient at its output layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
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
"""Below this a squared length counts as this: behind the last token there is no gradient, and no direction."""


class TokenGradient(Attack):
    """The label of a token is the one after it, so that who reads the labels has the text.

    With softmax cross-entropy ∂loss/∂logits is (p − onehot)/N: only the label's entry is negative. Where the
    customer holds the output layer W and sends g = Wᵀ(p − onehot)/N, p follows from the vector h below
    W that the vendor sent down, and Wᵀp − N·g is the label's row of W. How many labels N a batch
    has is not asked for: the guess is the token whose Wᵀp − W_y points where g does.

    The first pass over the examples is read; a later one says the same. Noise in the inputs does not matter.
    Where one server received P³EFT's vectors for the gradients of two adapters, it takes the mixture apart
    (`leakboard.bench.attacking.token_mixture`); what several servers received is read as it came.
    """

    name: ClassVar[str] = "token-gradient"
    source: ClassVar[Source] = Source(
        "Leakboard; of classes: Label Inference Attacks Against Vertical Federated Learning (Fu et al. 2022)",
        "direct label inference",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL, Goal.INVERSION}),
        reads=frozenset({Channel.LOGIT_GRADIENTS, Channel.GRADIENTS, Channel.ACTIVATIONS}),
        knows=frozenset({Knows.BASE_WEIGHTS}),
    )
    labels: ClassVar[Literal["classes", "next tokens"]] = "next tokens"

    def readable(self, cut: int) -> frozenset[Channel]:
        """Activations tell nothing by themselves."""
        return self.threat.reads - {Channel.ACTIVATIONS}

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
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
        # A text begins with a token that everybody knows, and goes on with its labels.
        text, last = np.roll(labels, 1), np.cumsum(lengths) - 1
        text[last - lengths + 1] = 0
        return [
            Guess(Goal.LABEL, channel, "train", rows, labels, lengths, view="train"),
            Guess(Goal.INVERSION, channel, "train", rows, text, lengths, view="train"),
        ]


Block = tuple[Ints, Ints, Ints]
"""Rows [n], tokens of each [n], and the label that each of these seems to have [T]."""


def _by_logits(seen: Transcript) -> Iterator[Block]:
    channel = Channel.LOGIT_GRADIENTS
    for block in seen.blocks(channel, "train", seen.rounds(channel)[0]):
        yield block.rows, lengths_of(block), block.values.argmin(1)


def _by_vectors(seen: Transcript, head: Tensor) -> Iterator[Block]:
    """By the gradients at the vectors below the output layer `head` [V, d]."""
    if steps := token_mixture.steps_of(seen):
        yield _ordered(*token_mixture.read(steps, lambda g, h: explained(g, h, head)))
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
    """[t] the row W_y of `head` [V, d] for which Wᵀp − W_y points most nearly where g does, and before it the cosine.

    Args:
        g: [t, d] gradients, of any length.
        h: [t, d] the vectors at which they are taken.
    """
    best = cosines(g.to(head.device), h.to(head.device), head).max(1)
    return best.values.cpu(), best.indices.cpu()


def cosines(g: Tensor, h: Tensor, head: Tensor) -> Tensor:
    """[t, V] how nearly Wᵀp − W_y points where g does, for every row W_y of `head`; arguments as in `explained`."""
    mean = (h @ head.T).softmax(1) @ head
    along = (g * mean).sum(1, keepdim=True) - g @ head.T
    far = mean.square().sum(1, keepdim=True) - 2 * mean @ head.T + head.square().sum(1)
    length = g.norm(dim=1, keepdim=True).clamp(min=TINY)
    cosine: Tensor = along / (far.clamp(min=TINY).sqrt() * length)
    return cosine


def _ordered(rows: Ints, lengths: Ints, labels: Ints) -> Block:
    """The same, by row."""
    parts = np.split(labels, np.cumsum(lengths)[:-1])
    order = np.argsort(rows)
    return rows[order], lengths[order], np.concatenate([parts[i] for i in order])


def lengths_of(block: Collected) -> Ints:
    """The tokens of each text; of what is about whole texts nothing can be said here."""
    if block.lengths is None:
        raise Silent(
            "what was sent is about whole texts, whose labels are classes, and not about tokens"
        )
    return block.lengths
