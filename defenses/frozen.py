"""No adapters: activations are computed once and only the head is trained, at the customer's."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.ragged import Tokens
from bench.session import Predictor, Session
from bench.training import by_length
from bench.types import Channel, Defense, Source, Tuned


class Frozen(Defense):
    """The floor of label leakage: nothing that depends on the labels is ever sent."""

    name: ClassVar[str] = "frozen"
    source: ClassVar[Source] = Source("P³EFT, 'no adapters' baseline", "section 4.2")
    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.TOKENS, Channel.ACTIVATIONS})
    colour: ClassVar[str] = "#7f7f7f"
    marker: ClassVar[str] = "P"

    def fine_tune(self, session: Session) -> Tuned:
        network, wire = session.network(adapted=False), session.wire
        network.encoder.eval()  # no dropout: the vendor answers a query the same way every time

        @torch.no_grad()
        def activations(tokens: Tokens, split: str, rows: Tensor) -> Tensor:
            ids = wire.send(Channel.TOKENS, tokens.ids, rows, split=split)
            vectors = network.embeddings(ids.values.to(session.device))
            with session.autocast():
                h = network.features(ids.with_values(vectors), tokens.types)
            return wire.send(Channel.ACTIVATIONS, h, rows, split=split, sender="vendor").float()

        known = torch.zeros(len(session.train), session.backbone.width, device=session.device)
        batches = by_length(session.train.lengths)
        for rows in session.progress("activations", batches, len(batches)):
            known[rows] = activations(session.train.take(rows), "train", rows)

        def step(rows: Tensor, epoch: int) -> float:
            scores = network.head(known[rows])
            loss = cross_entropy(scores, session.labels[rows].to(scores.device))
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        session.fit(step, {"params": list(network.head.parameters())})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            scores: Tensor = network.head(activations(tokens, split, rows))
            return scores

        return Predictor(score, network)
