"""SAP: split the model, privatise what crosses the cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from bench.mechanisms import privatise_tokens
from bench.neighbours import Neighbours
from bench.ragged import Ragged, Tokens
from bench.session import Network, Predictor, Session
from bench.types import Channel, Claim, Defense, Source, Tuned

Eta = Annotated[
    Annotated[float, Field(gt=0)] | None, BeforeValidator(lambda v: None if v == "none" else v)
]


class SAP(Defense):
    """The customer replaces each token by a noisy neighbour and sends word embeddings, not text.

    The vendor trains LoRA and the head; its logits go to the customer, who returns ∂loss/∂logits.
    """

    name: ClassVar[str] = "sap"
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
    knob: ClassVar[str | None] = "eta"
    colour: ClassVar[str] = "#0072b2"
    marker: ClassVar[str] = "o"

    eta: Eta = 75.0
    """Privacy parameter η of dχ-privacy, above 0; smaller hides more; "none" sends without noise."""
    bottom: Literal["frozen", "trainable"] = "frozen"
    """Frozen: representations are sent once. Trainable: with fresh noise each time a batch is sent."""
    bottom_learning_rate: float = Field(1e-5, gt=0)
    """Of a trainable bottom. The paper states none; at LoRA's rate the embeddings would leave the
    neighbourhood of their initial values, whereas the paper says that they change slightly."""

    @property
    def undefended(self) -> bool:
        return self.eta is None

    def claim(self) -> Claim | None:
        if self.eta is None:
            return None
        return Claim(
            guarantee="dχ-privacy (Euclidean distance of word embeddings)",
            parameters={"eta": self.eta},
            covers="each token each time it is sent; special tokens, lengths and labels are not covered",
        )

    def refuses(self, cut: int) -> str | None:
        return None if cut == 0 else "noise on deeper representations is not implemented"

    def in_clear(self, session: Session) -> Tensor:
        """[V] True for token ids that are sent as they are."""
        return torch.zeros(len(session.backbone.embeddings), dtype=torch.bool)

    def fine_tune(self, session: Session) -> Tuned:
        network, wire, train = session.network(), session.wire, session.train
        clear = self.in_clear(session)

        def bottom(tokens: Tokens, neighbours: Neighbours) -> Ragged:
            """Word embeddings of the privatised tokens, computed at the customer's."""
            hidden = ~(tokens.special | clear[tokens.ids.values])
            ids = tokens.ids.values.clone()
            if self.eta is not None:
                rows = network.embeddings.weight
                ids[hidden] = privatise_tokens(
                    ids[hidden], rows, neighbours, self.eta, session.noise
                )
            return tokens.ids.with_values(network.embeddings(ids.to(session.device)))

        if self.bottom == "frozen":
            with torch.no_grad():
                vectors = bottom(train, session.neighbours)
                received = wire.send(Channel.REPRESENTATIONS, vectors, session.all_rows)

            def step(rows: Tensor, epoch: int) -> float:
                with session.autocast():
                    logits = network(received.take(rows), train.take(rows).types)
                return session.backward_through_customer(logits, rows, epoch)

            session.fit(step, {"params": network.trained()})
        else:
            self._fit_with_bottom(session, network, bottom)

        neighbours = Neighbours(network.embeddings.weight, session.device)

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            sent = bottom(tokens, neighbours)
            sent = wire.send(Channel.REPRESENTATIONS, sent, rows, split=split)
            with session.autocast():
                logits: Tensor = network(sent, tokens.types)
            return wire.send(Channel.LOGITS, logits, rows, split=split, sender="vendor")

        return Predictor(score, network)

    def _fit_with_bottom(
        self, session: Session, network: Network, bottom: Callable[[Tokens, Neighbours], Ragged]
    ) -> None:
        """Trains bottom and top together: the vendor returns the gradient at the cut."""
        wire = session.wire
        embeddings = network.embeddings.weight
        top = network.trained()
        embeddings.requires_grad_()

        def step(rows: Tensor, epoch: int) -> float:
            tokens = session.train.take(rows)
            vectors = bottom(tokens, Neighbours(embeddings, session.device))
            received = wire.send(Channel.REPRESENTATIONS, vectors, rows, round=epoch)
            received.values.requires_grad_()
            with session.autocast():
                logits = network(received, tokens.types)
            loss = session.backward_through_customer(logits, rows, epoch)
            assert received.values.grad is not None
            gradient = tokens.ids.with_values(received.values.grad)
            gradient = wire.send(
                Channel.CUT_GRADIENTS, gradient, rows, round=epoch, sender="vendor"
            )
            vectors.values.backward(gradient.values)  # type: ignore[no-untyped-call]
            return loss

        session.fit(
            step,
            {"params": top},
            # Weight decay would move the rows of tokens that never occur.
            {"params": [embeddings], "lr": self.bottom_learning_rate, "weight_decay": 0.0},
        )
