"""CAPE: noise on a sentence vector, and features trained adversarially to hide a private attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding

from leakboard.bench.backbones import Backbone, Network, Ragged, Tokens, by_length
from leakboard.bench.contracts import Channel, Envelope, Goal, Objective, TrainSettings
from leakboard.bench.defending import Pooling, Served, laplace, rescale_rows
from leakboard.bench.exchange import Session, Tuned
from leakboard.bench.methods import Conditions, Defense, Source

HIDDEN = 256
"""Units of every dense layer: two layers compute the features, one precedes each output."""


class CAPE(Pooling):
    """Send features of a noisy sentence vector; the vendor trains a head on them.

    The encoder is frozen. Two dense layers after the noise compute the features. They learn the task from the
    gradient that the vendor returns, and they learn to hide each private attribute from the reversed gradient of
    an adversary that the customer trains. Noise is drawn again whenever features are sent, once per epoch.
    Privacy is measured with a new adversary, never with the customer's own. On a task without attributes only
    the noise protects. The paper does not say who holds the labels; here it is the customer, as in SAP. Its
    early stopping (patience 3 within 20 epochs) is left to the suite.
    """

    name: ClassVar[str] = "cape"
    display_name: ClassVar[str] = "CAPE"
    source: ClassVar[Source] = Source(
        "CAPE: Context-Aware Private Embeddings for Private Language Learning (Plant et al. 2021)",
        "section 3",
        "https://arxiv.org/abs/2108.12318",
    )
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.ACTIVATIONS, Channel.LOGITS, Channel.LOGIT_GRADIENTS, Channel.GRADIENTS}
    )
    colour: ClassVar[str] = "#0f0f96"
    marker: ClassVar[str] = ">"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {Goal.ATTRIBUTE: ("aia-mlp",)}

    reversal: float = Field(1.0, ge=0)
    """λ, the weight of the adversary's reversed gradient at the features; 0 trains no adversary. On a task without
    private attributes there is no adversary; there, only 0 and the default are taken, which has no effect."""

    public: ClassVar[bool] = False
    flaw: ClassVar[str] = (
        "two texts together: the noise is the same for all, so that what is sent tells their difference"
    )

    @property
    def undefended(self) -> bool:
        return self.epsilon is None and not self.reversal

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        off = {"epsilon": None, "reversal": 0.0, "as_released": False}
        return () if self.undefended else (self.model_copy(update=off),)

    def tried(
        self, settings: TrainSettings, n: int, classes: int
    ) -> Sequence[Mapping[str, object]]:
        """Only dense layers are trained, which takes many passes."""
        pairs = product((20, 60), (1e-3, 3e-3, 3e-4, 1e-2))
        return [{"learning_rate": rate, "epochs": epochs} for epochs, rate in pairs]

    def skip(self, conditions: Conditions) -> str | None:
        default = type(self).model_fields["reversal"].default
        if self.reversal not in (0, default) and not conditions.has_attributes:
            return (
                "reversal: the task has no private attributes for an adversary to learn; leave the "
                "parameter out, or write `reversal: 0`"
            )
        return super().skip(conditions)

    def noise(self, n: int, width: int, rng: Generator) -> Tensor:
        """Independent noise in each dimension.

        The released code draws one vector when its graph is built, and adds it to every text of the run. (It also
        rescales by the minimum and maximum of a whole batch, so that a text's vector depends on the other texts;
        that is not reproduced.)
        """
        assert self.epsilon is not None
        return laplace(1 if self.as_released else n, width, self.epsilon, rng).expand(n, width)

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        """None: the dense layers are secret. An attacker with query access gets answers of the trained layers."""
        return None

    def fine_tune(self, session: Session) -> Tuned:
        customer = Customer(self, session)
        wire = session.wire
        session.claim = self.guarantee(session.backbone.width, times=session.settings.epochs)
        head = dense(HIDDEN, session.classes).to(session.device)
        known = customer.vectors(session.train)

        def step(rows: Tensor, epoch: int) -> float:
            features = customer.features(known[rows])
            sent = wire.send(Channel.ACTIVATIONS, features, rows, Envelope(epoch))
            sent.requires_grad_()
            loss = session.backward_through_customer(head(sent), rows, epoch)
            assert sent.grad is not None
            answer = Envelope(epoch, sender="vendor")
            gradient = wire.send(Channel.GRADIENTS, sent.grad, rows, answer)
            against = customer.adversaries_gradient(features.detach(), rows)
            features.backward(gradient - self.reversal * against)  # type: ignore[no-untyped-call]
            return loss

        session.fit(step, {"params": [*head.parameters(), *customer.trained()]})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            features = customer.features(customer.vectors(tokens))
            sent = wire.send(Channel.ACTIVATIONS, features, rows, Envelope(split=split))
            logits: Tensor = head(sent)
            return wire.send(Channel.LOGITS, logits, rows, Envelope(split=split, sender="vendor"))

        def sent(tokens: Tokens, rng: Generator) -> Tensor:
            return customer.features(customer.asked(tokens), rng)

        return Served(score, sent, customer.layers)


class Customer:
    """The customer's side: a frozen encoder, noise, the dense layers, and adversaries of its own."""

    def __init__(self, defense: CAPE, session: Session) -> None:
        self.defense, self.rng = defense, session.noise
        self.length = session.settings.max_length
        self.padding = session.backbone.tokenizer.pad_token_id or 0
        self.network, self.pooled = session.network(adapted=False).eval(), session.backbone.pooled
        width, device = session.backbone.width, session.device
        self.width = width
        self.layers = nn.Sequential(
            nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        ).to(device)
        texts = session.texts
        attributes = texts.attributes if texts is not None and defense.reversal else {}
        # An attribute with fewer than two known values in training leaves nothing to hide.
        self.attributes = {
            name: torch.from_numpy(values)
            for name, values in attributes.items()
            if len(np.unique(values[values >= 0])) > 1
        }
        self.adversaries = nn.ModuleDict(
            {f"of {k}": dense(HIDDEN, int(v.max()) + 1) for k, v in self.attributes.items()}
        ).to(device)
        self._fixed: Tensor | None = None

    def trained(self) -> list[nn.Parameter]:
        return [*self.layers.parameters(), *self.adversaries.parameters()]

    def vectors(self, tokens: Tokens) -> Tensor:
        """[n, d] in [0, 1], before noise; without gradients."""
        table = self.network.embeddings.weight
        found = table.new_zeros(len(tokens), self.width)
        with torch.no_grad():
            for rows in by_length(tokens.lengths):
                batch = tokens.take(rows)
                found[rows.to(found.device)] = self._mean(batch)
        return rescale_rows(found)

    def asked(self, tokens: Tokens) -> Tensor:
        """`vectors` of other parties' texts, cached by the public encoder."""
        return (
            self.vectors(tokens) if self.defense.as_released else rescale_rows(self.pooled(tokens))
        )

    def _mean(self, tokens: Tokens) -> Tensor:
        if self.defense.as_released:
            return padded_mean(self.network, tokens, self.length, self.padding)
        words = tokens.ids.embedded(self.network.embeddings.weight)
        return self.network.features(words, tokens.types)

    def features(self, vectors: Tensor, rng: Generator | None = None) -> Tensor:
        """[n, 256] noisy features that are sent, from vectors [n, d] in [0, 1]."""
        features: Tensor = self.layers(self._noisy(vectors, rng or self.rng))
        return features

    def _noisy(self, vectors: Tensor, rng: Generator) -> Tensor:
        if self.defense.epsilon is None or not self.defense.as_released:
            return self.defense.noisy(vectors, rng)
        if self._fixed is None:
            self._fixed = self.defense.noise(1, vectors.shape[1], self.rng).to(vectors.device)
        return vectors + self._fixed

    def adversaries_gradient(self, features: Tensor, rows: Tensor) -> Tensor:
        """[B, 256] the sum of ∂loss/∂features over all adversaries; accumulates the adversaries' own gradients."""
        features.requires_grad_()
        total = features.sum() * 0.0
        for values, adversary in zip(
            self.attributes.values(), self.adversaries.values(), strict=True
        ):
            truth = values[rows].to(features.device)
            if (truth >= 0).any():  # the mean over no known value is NaN
                total = total + cross_entropy(adversary(features), truth, ignore_index=-1)
        total.backward()  # type: ignore[no-untyped-call]
        assert features.grad is not None
        return features.grad


def dense(width: int, classes: int) -> nn.Sequential:
    """A dense layer and an output layer."""
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes))


def padded_mean(network: Network, tokens: Tokens, length: int, padding: int) -> Tensor:
    """[B, d] the mean over `length` positions, padding included, as in the released code.

    Args:
        padding: the id of the padding token.
    """
    table = network.embeddings.weight
    ids = tokens.ids.padded(padding)
    mask = tokens.ids.mask()
    types = tokens.ids.with_values(tokens.types).padded()
    extra = (0, length - ids.shape[1])
    ids = nn.functional.pad(ids, extra, value=padding).to(table.device)
    mask = nn.functional.pad(mask, extra, value=False).to(table.device)
    types = nn.functional.pad(types, extra).to(table.device)
    states = network.family.top(network.encoder, embedding(ids, table), mask, types, 0)
    return states.mean(1)
