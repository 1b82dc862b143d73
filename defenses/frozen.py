"""Frozen encoder: activations are computed once, and the customer trains only the head."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from leakboard.bench.backbones import (
    Ragged,
    Tokens,
    add_adapter,
    by_length,
    chunked_readings,
    label_loss,
    next_tokens,
)
from leakboard.bench.contracts import EVERY_OBJECTIVE, Channel, Envelope, Goal, Objective
from leakboard.bench.exchange import Api, Call, NextTokens, Predictor, Session, Tuned
from leakboard.bench.methods import Defense, Source, Stage
from leakboard.defenses.none import NoDefense


class Frozen(Defense):
    """Train the head alone, at the customer's: nothing that depends on the labels is sent.

    This is the lower bound of label leakage. For a language model the customer holds the output layer and trains
    a LoRA adapter of it.
    """

    name: ClassVar[str] = "frozen"
    display_name: ClassVar[str] = "Frozen encoder"
    source: ClassVar[Source] = Source("P³EFT, 'no adapters' baseline", "section 4.2")
    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.TOKENS, Channel.ACTIVATIONS})
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.LABEL})
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    colour: ClassVar[str] = "#6996ff"
    marker: ClassVar[str] = "P"
    stage: ClassVar[Stage | None] = "training"

    @property
    def head_only(self) -> bool:
        return True

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # It protects because no adapters are trained.
        return (NoDefense(head="customer" if objective == "language modelling" else None),)

    def fine_tune(self, session: Session) -> Tuned:
        api = Api(session, adapted=False)
        head: nn.Module = api.head if session.classes else add_adapter(api.head, session.settings)

        @torch.no_grad()
        def activations(tokens: Tokens, split: str, rows: Tensor) -> Tensor:
            return api.forward(Call(tokens, rows, {}, Envelope(split=split)))

        train, parts = session.train, []
        batches = by_length(train.lengths)
        for rows in session.progress("activations", batches, len(batches)):
            lengths = torch.ones_like(rows) if session.classes else train.lengths[rows]
            parts.append(Ragged(activations(train.take(rows), "train", rows), lengths))
        known = Ragged.joined(parts).take(torch.cat(batches).argsort())

        def step(rows: Tensor, epoch: int) -> float:
            loss = label_loss(head, known.take(rows).values, session.truth(rows))
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        session.fit(step, {"params": [p for p in head.parameters() if p.requires_grad]})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            scores: Tensor = head(activations(tokens, split, rows))
            return scores

        def read(tokens: Tokens, rows: Tensor, split: str) -> tuple[Tensor, Tensor]:
            h = activations(tokens, split, rows)
            return chunked_readings(head, h, next_tokens(tokens).to(h.device))

        return Predictor(score, api.network) if session.classes else NextTokens(read, api.network)
