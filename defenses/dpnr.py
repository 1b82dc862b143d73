"""DPNR: words are dropped, one vector per text is rescaled to [0, 1], and Laplace noise is added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import torch
from numpy.random import Generator
from pydantic import Field, model_validator
from torch import Tensor

from leakboard.bench.backbones import Backbone, Network, Tokens, by_length
from leakboard.bench.contracts import Channel, Claim, Envelope, Goal, Objective
from leakboard.bench.defending import Pooling, Served, drop_words, laplace, rescale_rows
from leakboard.bench.exchange import Predictor, Session, Tuned
from leakboard.bench.methods import Defense, Source


class DPNR(Pooling):
    """Send a noisy sentence vector; the vendor trains a linear classifier on such vectors.

    With a frozen encoder each text is sent once, and later epochs reuse it. With a trained encoder each epoch
    sends it with new noise and other words dropped, and the vendor returns ∂loss/∂vector. The paper does not say
    who holds the labels; here it is the customer, and logits and ∂loss/∂logits are exchanged as in SAP. Words
    are dropped at inference, too, including the evaluated split.
    """

    name: ClassVar[str] = "dpnr"
    display_name: ClassVar[str] = "DPNR"
    source: ClassVar[Source] = Source(
        "Differentially Private Representation for NLP: Formal Guarantee and An Empirical Study on "
        "Privacy and Fairness (Lyu et al. 2020)",
        "section 3, algorithm 1",
        "https://arxiv.org/abs/2010.01285",
    )
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.ACTIVATIONS, Channel.LOGITS, Channel.LOGIT_GRADIENTS, Channel.GRADIENTS}
    )
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.INVERSION})
    colour: ClassVar[str] = "#6969ff"
    marker: ClassVar[str] = "<"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {Goal.ATTRIBUTE: ("aia-mlp",)}
    """Section 4 uses one network of 256 hidden units per attribute; `aia-mlp` has 768."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Probability μ with which a word is dropped; 0, as in the released code, drops none."""
    encoder: Literal["frozen", "trained"] = "frozen"
    """Whether the customer trains the encoder, by LoRA in all blocks. The paper trains it; a frozen encoder lets
    the customer send each text only once."""

    flaw: ClassVar[str] = (
        "the vector as a whole: one number is added to all its dimensions, and scaling removes it"
    )

    @model_validator(mode="after")
    def _as_the_code_has_it(self) -> Self:
        if self.as_released and self.dropout:
            raise ValueError(
                f"dropout: the released code drops no word by default; with as_released it must be 0, got "
                f"{self.dropout:g}"
            )
        return self

    @property
    def undefended(self) -> bool:
        return self.epsilon is None and not self.dropout

    @property
    def head_only(self) -> bool:
        return self.encoder == "frozen"

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        off = {"epsilon": None, "dropout": 0.0, "as_released": False}
        return () if self.undefended else (self.model_copy(update=off),)

    def claim(self) -> Claim | None:
        return None  # it depends on the width of the model, so `fine_tune` states it

    def noise(self, n: int, width: int, rng: Generator) -> Tensor:
        """Independent noise in each dimension.

        The released code adds one number per text to all dimensions, which rescaling to [0, 1] removes exactly.
        """
        assert self.epsilon is not None
        drawn = laplace(n, 1 if self.as_released else width, self.epsilon, rng)
        return drawn.expand(n, width)

    def public_vectors(self, base: Backbone, tokens: Tokens, rng: Generator) -> Tensor:
        return super().public_vectors(base, drop_words(tokens, self.dropout, rng), rng)

    def fine_tune(self, session: Session) -> Tuned:
        trained = self.encoder == "trained"
        network = session.network(adapted=trained)
        wire, train, rng = session.wire, session.train, session.noise
        session.claim = self.guarantee(
            session.backbone.width, self.dropout, session.settings.epochs if trained else 1
        )

        def vectors(tokens: Tokens, rng: Generator = rng) -> Tensor:
            """[B, d] vectors that the customer sends."""
            left = drop_words(tokens, self.dropout, rng)
            return self.noisy(rescale_rows(encoded(network, left)), rng)

        if trained:

            def step(rows: Tensor, epoch: int) -> float:
                with session.autocast():
                    own = vectors(train.take(rows))
                received = wire.send(Channel.ACTIVATIONS, own, rows, Envelope(epoch))
                received.requires_grad_()
                loss = session.backward_through_customer(network.head(received), rows, epoch)
                assert received.grad is not None
                answer = Envelope(epoch, sender="vendor")
                own.backward(wire.send(Channel.GRADIENTS, received.grad, rows, answer))  # type: ignore[no-untyped-call]
                return loss

            session.fit(step, {"params": network.trained()})
        else:
            known = torch.zeros(len(train), session.backbone.width, device=session.device)
            batches = by_length(train.lengths)
            network.eval()  # a frozen encoder has no dropout
            with torch.no_grad():
                for rows in session.progress("vectors", batches, len(batches)):
                    known[rows] = wire.send(Channel.ACTIVATIONS, vectors(train.take(rows)), rows)

            def classified(rows: Tensor, epoch: int) -> float:
                logits = network.head(known[rows])
                return session.backward_through_customer(logits, rows, epoch)

            session.fit(classified, {"params": list(network.head.parameters())})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            sent = wire.send(Channel.ACTIVATIONS, vectors(tokens), rows, Envelope(split=split))
            logits: Tensor = network.head(sent)
            return wire.send(Channel.LOGITS, logits, rows, Envelope(split=split, sender="vendor"))

        def sent(tokens: Tokens, rng: Generator) -> Tensor:
            found = torch.zeros(len(tokens), session.backbone.width, device=session.device)
            for rows in by_length(tokens.lengths):
                found[rows] = vectors(tokens.take(rows), rng)
            return found

        # A frozen encoder is public, so attackers need no query access to it.
        return Served(score, sent, network) if trained else Predictor(score, network)


def encoded(network: Network, tokens: Tokens) -> Tensor:
    """[B, d] mean last hidden states of token ids."""
    words = tokens.ids.embedded(network.embeddings.weight)
    return network.features(words, tokens.types).float()
