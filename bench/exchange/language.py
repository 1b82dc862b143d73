"""Fine-tuning of a language model over the wire: the label of each token is the next token.

One party holds the output layer, which is the public one or a copy that the customer tunes. If the vendor holds it,
scores of the whole vocabulary go to the customer and their gradients return; if the customer holds it, hidden vectors
and their gradients are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones import (
    NO_LABEL,
    Ragged,
    Tokens,
    add_adapter,
    by_length,
    chunked_readings,
    label_loss,
    next_tokens,
    pieces,
    readings,
)
from leakboard.bench.contracts import Channel, Envelope, Head
from leakboard.bench.exchange.session import Session
from leakboard.bench.exchange.tuned_model import Tuned

BATCH = 32
"""Texts that are predicted in one batch."""
Read = Callable[[Tokens, Tensor, str], tuple[Tensor, Tensor]]
"""Function (texts, rows, split) → `readings` of the next token of each token, [T] each."""


@dataclass(frozen=True)
class OutputLayer:
    """The exchange of messages about the output layer.

    Attributes:
        layer: the public output layer, or the copy that the customer tunes.
        at: the party that holds it.
    """

    session: Session
    layer: nn.Module
    at: Head

    @classmethod
    def held(cls, session: Session, layer: nn.Linear, at: Head) -> OutputLayer:
        """Starts with the public `layer`; a private one gets a LoRA adapter that only the customer has."""
        return cls(session, add_adapter(layer, session.settings) if at == "private" else layer, at)

    @property
    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.layer.parameters() if p.requires_grad]

    def learnt(self, h: Tensor, rows: Tensor, epoch: int) -> tuple[Tensor, float]:
        """Exchanges the messages of one backward pass; returns the vendor's ∂loss/∂h [T, d] and the loss.

        Trained parameters of the layer receive their gradients.

        Args:
            h: [T, d] the vendor's vectors of all tokens of the training examples `rows`.
        """
        session, up = self.session, Envelope(epoch)
        lengths, labels = session.train.lengths[rows], session.truth(rows)
        if self.at != "vendor":
            arrived = self._came_down(h, lengths, rows, up.split, epoch).requires_grad_()
            loss = label_loss(self.layer, arrived, labels)
            loss.backward()  # type: ignore[no-untyped-call]
            assert arrived.grad is not None
            sent = Ragged(arrived.grad, lengths)
            return session.wire.send(Channel.GRADIENTS, sent, rows, up).values, loss.item()
        below, count, total = h.detach().requires_grad_(), (labels != NO_LABEL).sum(), 0.0
        for examples, at in pieces(lengths, len(session.backbone.embeddings)):
            some, own = rows[examples], lengths[examples]
            logits = self.layer(below[at])
            scores = self._scores(logits, own, some, up.split, epoch).requires_grad_()
            loss = cross_entropy(scores, labels[at], reduction="sum") / count
            (gradient,) = torch.autograd.grad(loss, scores)
            sent = session.wire.send(Channel.LOGIT_GRADIENTS, Ragged(gradient, own), some, up)
            logits.backward(sent.values)
            total += loss.item()
        assert below.grad is not None
        return below.grad, total

    def read(self, h: Tensor, tokens: Tokens, rows: Tensor, split: str) -> tuple[Tensor, Tensor]:
        """`Read` of some texts, from the vendor's vectors [T, d]."""
        labels = next_tokens(tokens).to(h.device)
        if self.at != "vendor":
            return chunked_readings(
                self.layer, self._came_down(h, tokens.lengths, rows, split), labels
            )
        found = []
        for examples, at in pieces(tokens.lengths, len(self.session.backbone.embeddings)):
            own = tokens.lengths[examples]
            scores = self._scores(self.layer(h[at]), own, rows[examples], split)
            found.append(readings(scores, labels[at]))
        lost, best = zip(*found, strict=True)
        return torch.cat(lost), torch.cat(best)

    def _came_down(
        self, h: Tensor, lengths: Tensor, rows: Tensor, split: str, epoch: int = 0
    ) -> Tensor:
        where = Envelope(epoch, split, sender="vendor")
        return self.session.wire.send(Channel.ACTIVATIONS, Ragged(h, lengths), rows, where).values

    def _scores(
        self, logits: Tensor, lengths: Tensor, rows: Tensor, split: str, epoch: int = 0
    ) -> Tensor:
        where = Envelope(epoch, split, sender="vendor")
        return self.session.wire.send(Channel.LOGITS, Ragged(logits, lengths), rows, where).values


class NextTokens(Tuned):
    """A language model that is tuned and used over the wire, in evaluation mode."""

    def __init__(self, read: Read, *networks: nn.Module) -> None:
        self.read = read
        for network in networks:
            network.eval()

    def predict(self, tokens: Tokens, split: str) -> Tensor:
        raise TypeError("a language model predicts tokens, not classes")

    @torch.inference_mode()
    def next_words(self, tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        _, best = self.read(tokens, rows, split)
        return best.cpu()[tokens.lengths.cumsum(0) - 1]

    @torch.inference_mode()
    def per_token(self, tokens: Tokens, split: str) -> tuple[Ragged, Ragged]:
        parts, batches = [], by_length(tokens.lengths, BATCH)
        for rows in batches:
            own = tokens.take(rows)
            lost, best = self.read(own, rows, split)
            hits = best.cpu() == next_tokens(own)
            both = torch.stack([lost.float().cpu(), hits.float()], 1)
            # The prediction at a token is about the next one; the first token is not predicted.
            parts.append(Ragged(both.roll(1, 0), own.lengths))
        whole = Ragged.joined(parts).take(torch.cat(batches).argsort())
        return whole.with_values(whole.values[:, 0]), whole.with_values(whole.values[:, 1] > 0)
