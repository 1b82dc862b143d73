"""Fine-tuning over an API: the vendor answers single calls, the customer holds what is trained.

The customer keeps the adapters θ, the head, the labels and the optimiser. P³EFT, section 3.1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.backbones import Tokens
from bench.contracts import Channel
from bench.exchange.predictor import Predictor
from bench.exchange.server import Adapter, Server, random_state
from bench.exchange.session import Session
from bench.exchange.tuned import Tuned

CHANNELS = frozenset(
    {
        Channel.TOKENS,
        Channel.PARAMETERS,
        Channel.ACTIVATIONS,
        Channel.GRADIENTS,
        Channel.ADAPTER_GRADIENTS,
    }
)
"""What crosses the wire when one fine-tunes over the API."""


class Api:
    """The customer's side of the API; every call crosses the wire.

    Args:
        servers: names of those that offer the model. What one name saw, one adversary saw.
        keep: see `Server`.
    """

    def __init__(
        self,
        session: Session,
        servers: tuple[str, ...] = ("vendor",),
        adapted: bool = True,
        keep: int = 1,
    ) -> None:
        self._session, self.servers = session, servers
        self.network = session.network(adapted=adapted)
        self.head = self.network.head
        self.autocast = session.autocast()
        self._server = Server(self.network, self.autocast, keep)

    def adapter(self, number: int = 0) -> dict[str, nn.Parameter]:
        """A fresh adapter; the same one at every call and for every defense.

        All have B = 0 and so no effect yet; another number has another draw of A.
        """
        heads = {id(parameter) for parameter in self.head.parameters()}
        found = {
            name: nn.Parameter(parameter.detach().clone())
            for name, parameter in self.network.named_parameters()
            if parameter.requires_grad and id(parameter) not in heads
        }
        if number:
            draw = torch.Generator().manual_seed(self._session.seeds.initialisation + number)
            for name, parameter in found.items():
                if "lora_A" in name:  # as peft draws it
                    values = torch.empty(parameter.shape)
                    nn.init.kaiming_uniform_(values, a=math.sqrt(5), generator=draw)
                    parameter.data.copy_(values)
        return found

    def dropout(self) -> Tensor:
        """What a pass with dropout is to draw from; give it to all calls of one step."""
        return random_state(self._session.device)

    def forward(
        self,
        tokens: Tokens,
        rows: Tensor,
        adapter: Adapter,
        *,
        part: int = 0,
        round: int = 0,
        split: str = "train",
        dropout: Tensor | None = None,
        recipient: str | None = None,
    ) -> Tensor:
        """[B, d] the activations of `rows`, as a leaf of the customer's graph.

        Args:
            part: which adapter it is.
            recipient: the server that is asked; by default the first one.
        """
        session, wire = self._session, self._session.wire
        recipient = recipient or self.servers[0]
        if part == 0:
            wire.send(
                Channel.TOKENS, tokens.ids, rows, round=round, split=split, recipient=recipient
            )
        else:  # the same ids once more: they count, but tell nothing new
            wire.repeat(tokens.ids)
        if adapter:
            wire.send_adapter(
                Channel.PARAMETERS,
                adapter,
                rows,
                round=round,
                split=split,
                recipient=recipient,
                part=part,
            )
        started = time.perf_counter()
        h = self._server.forward(tokens, adapter, dropout)
        session.served(time.perf_counter() - started)
        arrived = wire.send(
            Channel.ACTIVATIONS,
            h,
            rows,
            round=round,
            split=split,
            sender="vendor",
            recipient=recipient,
            part=part,
        )
        return arrived.float().requires_grad_(torch.is_grad_enabled())

    def backward(
        self,
        tokens: Tokens,
        rows: Tensor,
        adapter: Adapter,
        gradients: Sequence[Tensor],
        weights: Sequence[float] = (1.0,),
        *,
        part: int = 0,
        round: int = 0,
        dropout: Tensor | None = None,
        recipients: Sequence[str] | None = None,
        once: bool = False,
    ) -> dict[str, Tensor]:
        """Σ wⱼ g_θ(ĝⱼ): a call for each of `gradients` [B, d], the answers weighted.

        Args:
            part: of the first gradient; the others count on.
            recipients: the server of each; by default all go to the first one.
            once: compute the answer to Σ wⱼ ĝⱼ alone, which is the same since g_θ is linear in ĝ.
                All calls are counted and recorded as they would have been made.
        """
        session, wire = self._session, self._session.wire
        arrived = []
        asked = list(recipients or [self.servers[0]] * len(gradients))
        for j, (gradient, recipient) in enumerate(zip(gradients, asked, strict=True)):
            wire.repeat(tokens.ids, *adapter.values())
            sent = wire.send(
                Channel.GRADIENTS, gradient, rows, round=round, part=part + j, recipient=recipient
            )
            arrived.append(sent)
        if once:
            whole = sum(w * g for w, g in zip(weights, arrived, strict=True))
            answers = [self._answered(tokens, adapter, whole, dropout)] * len(arrived)
            factors = [1.0 / len(arrived)] * len(arrived)
        else:
            answers = [self._answered(tokens, adapter, g, dropout) for g in arrived]
            factors = list(weights)
        total: dict[str, Tensor] = {}
        for answer, factor in zip(answers, factors, strict=True):
            returned = wire.send_adapter(
                Channel.ADAPTER_GRADIENTS, answer, rows, round=round, sender="vendor"
            )
            for name, value in returned.items():
                total[name] = factor * value + total.get(name, 0.0)
        session.calls += len(arrived) - 1 if once else 0
        return total

    def _answered(
        self, tokens: Tokens, adapter: Adapter, gradient: Any, dropout: Tensor | None
    ) -> Adapter:
        started = time.perf_counter()
        found = self._server.backward(tokens, adapter, gradient, dropout)
        self._session.served(time.perf_counter() - started)
        return found


Objective = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The customer's loss: (activations [B, d], scores [B, C], labels [B]) → a scalar."""


def cross_entropy_loss(h: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    """The loss of the task alone."""
    return cross_entropy(scores, labels)


def fine_tune(
    session: Session, objective: Objective = cross_entropy_loss, labels: Tensor | None = None
) -> Tuned:
    """Trains one adapter and the head over the API, every gradient in the clear.

    Args:
        objective: what the customer minimises.
        labels: [n] to train on instead of the session's.
    """
    api = Api(session)
    adapter, head = api.adapter(), api.head
    labels = session.labels if labels is None else labels

    def step(rows: Tensor, epoch: int) -> float:
        tokens, dropout = session.train.take(rows), api.dropout()
        h = api.forward(tokens, rows, adapter, round=epoch, dropout=dropout)
        scores, mine = head(h), labels[rows].to(h.device)
        objective(h, scores, mine).backward()  # type: ignore[no-untyped-call]
        assert h.grad is not None
        found = api.backward(tokens, rows, adapter, [h.grad], round=epoch, dropout=dropout)
        for name, parameter in adapter.items():
            parameter.grad = found[name]
        return cross_entropy(scores.detach(), mine).item()

    session.fit(step, {"params": [*adapter.values(), *head.parameters()]})

    def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        scores: Tensor = head(api.forward(tokens, rows, adapter, split=split))
        return scores

    return Predictor(score, api.network)
