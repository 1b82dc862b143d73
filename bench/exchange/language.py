"""A language model over the wire: the label of each token is the one after it.

The output layer stands at one of the parties and is the public one, or the customer's own, which starts as that.
At the vendor's, scores of the whole vocabulary come down and their gradients go up; at the customer's, vectors
come down and theirs go up.
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
from leakboard.bench.exchange.tuned import Tuned

BATCH = 32
"""Texts that are predicted together."""
Read = Callable[[Tokens, Tensor, str], tuple[Tensor, Tensor]]
"""Some texts, their rows, their split → `readings` of the token after each of theirs, [T] each."""


@dataclass(frozen=True)
class OutputLayer:
    """The exchange about what stands below the output layer, from the vendor's vectors on.

    Attributes:
        layer: the public output layer, or what the customer makes of it.
        at: who holds it.
    """

    session: Session
    layer: nn.Module
    at: Head

    @classmethod
    def held(cls, session: Session, layer: nn.Linear, at: Head) -> OutputLayer:
        """One that begins as the public `layer`; a private one has an adapter (LoRA), which nobody else has."""
        return cls(session, add_adapter(layer, session.settings) if at == "private" else layer, at)

    @property
    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.layer.parameters() if p.requires_grad]

    def learnt(self, h: Tensor, rows: Tensor, epoch: int) -> tuple[Tensor, float]:
        """∂loss/∂h [T, d] as the vendor has it, and the customer's loss; all that is needed for it is sent.

        What is `trained` of the layer gets its gradients.

        Args:
            h: [T, d] of all tokens of the training examples `rows`, at the vendor's.
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
        """What the customer makes of the vendor's vectors [T, d] of some texts; see `Read`."""
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
    """A language model that is tuned and asked over the wire, in evaluation mode."""

    def __init__(self, read: Read, *networks: nn.Module) -> None:
        self.read = read
        for network in networks:
            network.eval()

    def predict(self, tokens: Tokens, split: str) -> Tensor:
        raise TypeError("a language model is judged by its tokens")

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
            # What is said behind a token is about the next one, and of the first nothing is said.
            parts.append(Ragged(both.roll(1, 0), own.lengths))
        whole = Ragged.joined(parts).take(torch.cat(batches).argsort())
        return whole.with_values(whole.values[:, 0]), whole.with_values(whole.values[:, 1] > 0)
