"""No adapters: activations are computed once and only the head is trained, at the customer's."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.backbones import Tokens, by_length
from bench.contracts import Channel, Envelope, Goal, Objective
from bench.exchange import Api, Call, Predictor, Session, Tuned
from bench.methods import Defense, Source
from defenses.none import NoDefense


class Frozen(Defense):
    """The floor of label leakage: nothing that depends on the labels is ever sent."""

    name: ClassVar[str] = "frozen"
    source: ClassVar[Source] = Source("P³EFT, 'no adapters' baseline", "section 4.2")
    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.TOKENS, Channel.ACTIVATIONS})
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.LABEL})
    colour: ClassVar[str] = "#7f7f7f"
    marker: ClassVar[str] = "P"

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # It protects by training no adapters.
        return (NoDefense(),)

    def fine_tune(self, session: Session) -> Tuned:
        api = Api(session, adapted=False)

        @torch.no_grad()
        def activations(tokens: Tokens, split: str, rows: Tensor) -> Tensor:
            return api.forward(Call(tokens, rows, {}, Envelope(split=split)))

        known = torch.zeros(len(session.train), session.backbone.width, device=session.device)
        batches = by_length(session.train.lengths)
        for rows in session.progress("activations", batches, len(batches)):
            known[rows] = activations(session.train.take(rows), "train", rows)

        def step(rows: Tensor, epoch: int) -> float:
            scores = api.head(known[rows])
            loss = cross_entropy(scores, session.labels[rows].to(scores.device))
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        session.fit(step, {"params": list(api.head.parameters())})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            scores: Tensor = api.head(activations(tokens, split, rows))
            return scores

        return Predictor(score, api.network)
