"""SAP: split the model after any block, and privatise the vectors that are sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Literal

import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.backbones import Backbone, Neighbours, Network, Ragged, Tokens
from leakboard.bench.contracts import (
    EVERY_OBJECTIVE,
    Channel,
    Claim,
    Envelope,
    Goal,
    Head,
    Objective,
)
from leakboard.bench.defending import Eta, dx_noise, fit_on_sent, predictor, privatise_tokens
from leakboard.bench.exchange import OutputLayer, Session, Tuned, api
from leakboard.bench.methods import Conditions, Defense, Source, Stage


class SAP(Defense):
    """Send noisy vectors instead of text.

    At the embedding cut each token is replaced by a noisy neighbour, whose word embedding is sent. Behind block k
    the noise is added to the hidden states, and no token is replaced. The vendor trains LoRA and the head; it
    sends logits to the customer, who returns ∂loss/∂logits. The head of a language model is the public output
    layer, which stays unchanged; labels are the tokens of the original text.
    """

    name: ClassVar[str] = "sap"
    display_name: ClassVar[str] = "SAP"
    source: ClassVar[Source] = Source(
        "A Split-and-Privatize Framework for Large Language Model Fine-Tuning",
        "sections 4.2 and 4.3, algorithm 1",
        "https://arxiv.org/abs/2312.15603",
    )
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {
            Channel.REPRESENTATIONS,
            Channel.LOGITS,
            Channel.LOGIT_GRADIENTS,
            Channel.CUT_GRADIENTS,
        }
    )
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    knob: ClassVar[str | None] = "eta"
    switch: ClassVar[str | None] = "eta"
    colour: ClassVar[str] = "#0072b2"
    marker: ClassVar[str] = "o"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {
        Goal.INVERSION: ("eia-nn", "eia-optimise"),
        Goal.ATTRIBUTE: ("aia-finetune",),
    }
    """Section 5.1: the nearest neighbour at the embedding cut, optimisation behind a block."""

    eta: Eta = 75.0
    """Privacy parameter η of dχ-privacy, above 0; smaller values hide more; "none" sends without noise."""
    bottom: Literal["frozen", "trainable"] = "frozen"
    """Frozen: representations are sent once. Trainable: each batch is sent with new noise. The paper trains the
    word embeddings at the embedding cut and does not say what it would train at deeper cuts; here it is the word
    embeddings and LoRA in the bottom blocks."""
    bottom_learning_rate: float = Field(1e-5, gt=0)
    """Learning rate of the word embeddings of a trainable bottom; its LoRA has the rate of the top. The paper
    states none; at LoRA's rate the embeddings would move far from their initial values, whereas the paper says
    that they change slightly."""

    head: Head = "vendor"
    """Who holds the output layer of a language model. If it is the customer, the vendor sends the vectors below it
    and receives their gradients; `private` also tunes it with LoRA. In the paper, on classifiers, the vendor holds
    the head."""

    younger: ClassVar[frozenset[str]] = frozenset({"head"})
    stage: ClassVar[Stage | None] = "inputs"

    @property
    def sends(self) -> frozenset[Channel]:
        return self.emits if self.head == "vendor" else api.language_channels(self.head, self.emits)

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.objective != "language modelling":
            reason = (
                "head: who holds it is asked of a language model; that of a classifier is the vendor's, "
                "or the customer's in `combine: [sap, none]`"
            )
            return reason if self.head != "vendor" else None
        if self.bottom == "trainable":
            return (
                "bottom: trained word embeddings would no longer be those of the output layer, to which most "
                "language models tie them, on the other side of the cut; use `bottom: frozen`"
            )
        return None

    def skip_combined(self, stages: frozenset[Stage]) -> str | None:
        if self.bottom == "trainable" and "training" in stages:
            return (
                "bottom: a trainable bottom needs the gradient at the cut, which the other defense does "
                "not return; use `bottom: frozen`"
            )
        return None

    def claim(self) -> Claim | None:
        if self.eta is None:
            return None
        return Claim(
            guarantee="dχ-privacy (Euclidean distance of the vectors at the cut)",
            parameters={"eta": self.eta},
            covers="each vector each time it is sent; lengths and labels are not covered, nor special "
            "tokens at the embedding cut; deeper, every vector depends on all tokens of its example, "
            "so that the guarantees of its vectors add up",
            unit="vector",
        )

    def in_clear(self, session: Session) -> Tensor:
        """[V] True for token ids that are sent without noise."""
        return torch.zeros(len(session.backbone.embeddings), dtype=torch.bool)

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        """The output of the initial bottom with noise; which tokens are sent without noise is secret."""
        secret = torch.zeros(len(base.embeddings), dtype=torch.bool)
        return self._initially(base, tokens, cut, secret, rng)

    def protected_inputs(self, session: Session) -> Callable[[Tokens], Ragged]:
        clear = self.in_clear(session)
        return lambda tokens: self._initially(
            session.backbone, tokens, session.cut, clear, session.noise
        )

    def _initially(
        self, base: Backbone, tokens: Tokens, cut: int, clear: Tensor, rng: Generator
    ) -> Ragged:
        """`_privatised` with the initial bottom."""
        bottom, neighbours = partial(base.bottom, cut=cut), None if cut else base.neighbours
        with torch.no_grad():
            return self._privatised(tokens, base.embeddings, bottom, neighbours, clear, rng)

    def _privatised(
        self,
        tokens: Tokens,
        rows: Tensor,
        bottom: Callable[[Ragged, Tensor], Ragged],
        neighbours: Neighbours | None,
        clear: Tensor,
        rng: Generator,
    ) -> Ragged:
        """Apply the mechanism to `tokens`.

        Args:
            rows: [V, d] word embeddings.
            bottom: word embeddings [T, d] and segments [T] → representations at the cut.
            neighbours: of `rows`, at the embedding cut; None at deeper cuts, where no token is replaced.
            clear: [V] True for token ids that are sent without noise.
        """
        ids = tokens.ids.values.clone()
        if neighbours and self.eta is not None:
            hidden = ~(tokens.special | clear[ids])
            ids[hidden] = privatise_tokens(ids[hidden], rows, neighbours, self.eta, rng)
        words = tokens.ids.with_values(ids).embedded(rows)
        vectors = bottom(words, tokens.types)
        if neighbours or self.eta is None:
            return vectors
        # On special tokens, too: behind a block all positions carry content of the sentence.
        noise = dx_noise(len(ids), vectors.values.shape[1], self.eta, rng)
        return vectors.with_values(vectors.values + torch.from_numpy(noise).to(rows.device))

    def fine_tune(self, session: Session) -> Tuned:
        trainable = self.bottom == "trainable"
        network = session.network(cut=session.cut, bottom=trainable)
        clear = self.in_clear(session)
        output = OutputLayer.held(session, network.head, self.head)

        def neighbours() -> Neighbours | None:
            """Neighbours of the current word embeddings; None at deeper cuts, where no token is replaced."""
            if session.cut > 0:
                return None
            if not trainable:
                return session.neighbours
            return Neighbours(network.embeddings.weight, session.device)

        def bottom(tokens: Tokens, neighbours: Neighbours | None) -> Ragged:
            """Privatised representations, computed by the customer."""
            rows = network.embeddings.weight
            return self._privatised(tokens, rows, network.bottom, neighbours, clear, session.noise)

        if trainable:
            self._fit_with_bottom(session, network, lambda tokens: bottom(tokens, neighbours()))
        else:
            fit_on_sent(session, network, output, lambda tokens: bottom(tokens, neighbours()))
        final = neighbours()
        return predictor(session, network, output, lambda tokens: bottom(tokens, final))

    def _fit_with_bottom(
        self, session: Session, network: Network, bottom: Callable[[Tokens], Ragged]
    ) -> None:
        """Train bottom and top together; the vendor returns the gradient at the cut."""
        wire = session.wire
        embeddings = network.embeddings.weight
        lora_and_head = network.trained()
        embeddings.requires_grad_()

        def step(rows: Tensor, epoch: int) -> float:
            tokens = session.train.take(rows)
            vectors = bottom(tokens)
            received = wire.send(Channel.REPRESENTATIONS, vectors, rows, Envelope(epoch))
            received.values.requires_grad_()
            with session.autocast():
                logits = network(received, tokens.types)
            loss = session.backward_through_customer(logits, rows, epoch)
            assert received.values.grad is not None
            gradient = tokens.ids.with_values(received.values.grad)
            answer = Envelope(epoch, sender="vendor")
            gradient = wire.send(Channel.CUT_GRADIENTS, gradient, rows, answer)
            vectors.values.backward(gradient.values)  # type: ignore[no-untyped-call]
            return loss

        session.fit(
            step,
            {"params": lora_and_head},
            # Weight decay would move the rows of tokens that never occur.
            {"params": [embeddings], "lr": self.bottom_learning_rate, "weight_decay": 0.0},
        )
