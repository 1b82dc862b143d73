"""Fine-tuning over an API: the vendor answers single calls, and the customer holds all trained parameters.

The customer has the adapters θ, the head, the labels and the optimiser (P³EFT, section 3.1).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from leakboard.bench.backbones import Ragged, Tokens, random_state, score_loss
from leakboard.bench.contracts import Channel, Envelope, Head, LeakboardError
from leakboard.bench.exchange.language import NextTokens, OutputLayer
from leakboard.bench.exchange.predictor import Predictor
from leakboard.bench.exchange.server import Adapter, Call, Server
from leakboard.bench.exchange.session import Session
from leakboard.bench.exchange.tuned_model import Tuned

CHANNELS = frozenset(
    {
        Channel.TOKENS,
        Channel.PARAMETERS,
        Channel.ACTIVATIONS,
        Channel.GRADIENTS,
        Channel.ADAPTER_GRADIENTS,
    }
)
"""Channels of fine-tuning over the API."""
AT_VENDOR = frozenset({Channel.LOGITS, Channel.LOGIT_GRADIENTS})
AT_CUSTOMER = frozenset({Channel.ACTIVATIONS, Channel.GRADIENTS})
"""Channels about the output layer of a language model, by who holds the layer."""


def language_channels(at: Head, channels: frozenset[Channel] = CHANNELS) -> frozenset[Channel]:
    """Channels of tuning a language model, given who holds its output layer.

    Args:
        channels: those about the rest of the model.
    """
    return channels - AT_VENDOR - AT_CUSTOMER | (AT_VENDOR if at == "vendor" else AT_CUSTOMER)


class Api:
    """The customer's side of the API; every call crosses the wire.

    Token ids cross with every call. If the session protects inputs, vectors at the cut cross instead: those of training
    texts once, before training, and later calls name the texts.

    The recipient of a call is the server that answers it; each name of a server is one adversary.

    Args:
        adapted: with LoRA; without, only the head is trained.
        keep: see `Server`.
    """

    def __init__(self, session: Session, adapted: bool = True, keep: int = 1) -> None:
        self._session = session
        self.network = session.network(adapted=adapted, cut=session.cut if session.inputs else 0)
        self.head = self.network.head
        self.autocast = session.autocast()
        self._server = Server(self.network, self.autocast, keep)
        self._about: Tokens | None = None
        self._told: dict[str, Call] = {}
        self._received = session.send_once(session.inputs) if session.inputs else None
        self._asked: deque[tuple[Call, Call]] = deque(maxlen=keep)

    def adapter(self, number: int = 0) -> dict[str, nn.Parameter]:
        """A new adapter with the same initial values for every defense.

        B is 0, so it has no effect yet; each number has its own draw of A.
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
        """State of the generator for a pass with dropout; give it to all calls of one step."""
        return random_state(self._session.device)

    def forward(self, call: Call) -> Tensor:
        """Activations of the rows of a call, as a leaf of the customer's graph.

        Returns:
            [B, d]; for language modelling [T, d], one vector per token.
        """
        h = self.passed(call)
        back = replace(call.where, sender="vendor")
        return self._crossed(Channel.ACTIVATIONS, h, call, back).requires_grad_(
            torch.is_grad_enabled()
        )

    def passed(self, call: Call) -> Tensor:
        """The same activations, not sent to the customer, because the vendor continues with them."""
        sent = self._sent(call)
        if torch.is_grad_enabled():
            self._asked.append((call, sent))
        started = time.perf_counter()
        h = self._server.forward(sent)
        self._session.served(time.perf_counter() - started)
        return h

    def _crossed(self, channel: Channel, values: Tensor, call: Call, where: Envelope) -> Tensor:
        """Sends vectors about a call and returns what arrives."""
        wire = self._session.wire
        if self.network.per_token:
            return wire.send(channel, call.tokens.ids.with_values(values), call.rows, where).values
        return wire.send(channel, values, call.rows, where)

    def _sent(self, call: Call) -> Call:
        """Sends a call and returns it as the server receives it."""
        wire, where, tokens = self._session.wire, call.where, call.tokens
        if self._about is not tokens:
            self._about, self._told = tokens, {}
        if where.recipient in self._told:  # repeated ids count, but reveal nothing new
            wire.repeat(*self._repeated(call))
        else:
            self._told[where.recipient] = self._with_inputs(call)
        adapter: Adapter = call.adapter
        if adapter:
            adapter = wire.send_adapter(Channel.PARAMETERS, adapter, call.rows, where)
        there = self._told[where.recipient]
        return replace(call, tokens=there.tokens, vectors=there.vectors, adapter=adapter)

    def _with_inputs(self, call: Call) -> Call:
        """Sends the texts of a call and returns the call as the server receives it."""
        session, tokens, where = self._session, call.tokens, call.where
        if session.inputs is None:
            ids = session.wire.send(Channel.TOKENS, tokens.ids, call.rows, where)
            return replace(call, tokens=replace(tokens, ids=ids))
        if where.split == "train":
            assert self._received is not None
            return replace(call, vectors=self._received.take(call.rows))
        vectors = session.inputs(tokens)
        return replace(
            call, vectors=session.wire.send(Channel.REPRESENTATIONS, vectors, call.rows, where)
        )

    def _repeated(self, call: Call) -> list[Ragged]:
        """What is sent again of the texts of a call: their ids; the vendor keeps vectors."""
        return [] if self._session.inputs else [call.tokens.ids]

    def backward(
        self,
        call: Call,
        gradients: Sequence[Tensor],
        weights: Sequence[float] = (1.0,),
        recipients: Sequence[str] | None = None,
        once: bool = False,
    ) -> dict[str, Tensor]:
        """Σ wⱼ g_θ(ĝⱼ): one backward call for each of m gradients, with the weighted sum of the answers.

        The gradients of adapter i are the parts i·m to i·m + m − 1.

        Args:
            gradients: each of the shape of the activations.
            recipients: the server of each call; by default that of the forward pass.
            once: compute only the answer to Σ wⱼ ĝⱼ, which is equal because g_θ is linear in ĝ. All calls
                are counted and recorded all the same.

        Raises:
            LeakboardError: several gradients in a precision below float32, in which the answers do not add up.
        """
        if len(gradients) > 1 and not call.exact and self._session.settings.precision != "float32":
            raise LeakboardError(
                "a gradient that is split into several vectors needs calls in float32, in which the answers "
                "add up: use `Call(..., exact=True)`, or train with `precision: float32`"
            )
        session, wire, where = self._session, self._session.wire, call.where
        arrived = []
        recipients_of = recipients or [where.recipient] * len(gradients)
        for j, (gradient, recipient) in enumerate(zip(gradients, recipients_of, strict=True)):
            wire.repeat(*self._repeated(call), *call.adapter.values())
            to = replace(where, recipient=recipient, part=where.part * len(gradients) + j)
            arrived.append(self._crossed(Channel.GRADIENTS, gradient, call, to))
        if once:
            whole = sum(w * g for w, g in zip(weights, arrived, strict=True))
            answers = [self._answered(call, whole)] * len(arrived)
            factors = [1.0 / len(arrived)] * len(arrived)
        else:
            answers = [self._answered(call, g) for g in arrived]
            factors = list(weights)
        total: dict[str, Tensor] = {}
        for answer, factor in zip(answers, factors, strict=True):
            for name, value in self._returned(call, answer).items():
                total[name] = factor * value + total.get(name, 0.0)
        session.calls += len(arrived) - 1 if once else 0
        return total

    def answered(self, call: Call, gradient: Tensor) -> dict[str, Tensor]:
        """g_θ of a `gradient` [T, d] at activations that the vendor already has."""
        self._session.wire.repeat(*self._repeated(call), *call.adapter.values())
        return self._returned(call, self._answered(call, gradient))

    def _returned(self, call: Call, answer: Adapter) -> dict[str, Tensor]:
        back = Envelope(call.where.round, sender="vendor")
        return self._session.wire.send_adapter(Channel.ADAPTER_GRADIENTS, answer, call.rows, back)

    def _answered(self, call: Call, gradient: Any) -> Adapter:
        started = time.perf_counter()
        # The server no longer remembers an old pass, so it repeats the pass from the customer's call.
        there = next((there for here, there in self._asked if here is call), call)
        found = self._server.backward(there, gradient)
        self._session.served(time.perf_counter() - started)
        return found


Objective = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The customer's loss: function (activations [B, d], scores [B, C], labels of the batch) → scalar."""


def task_loss(h: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    """The loss of the task, without a regulariser."""
    return score_loss(scores, labels)


def fine_tune(
    session: Session, objective: Objective = task_loss, labels: Tensor | None = None
) -> Tuned:
    """Trains one adapter and the head over the API and sends every gradient in the clear.

    Args:
        objective: the loss that the customer minimises.
        labels: [n] labels to train on; by default those of the session.
    """
    api = Api(session)
    adapter, head = api.adapter(), api.head
    labels = session.labels if labels is None else labels

    def step(rows: Tensor, epoch: int) -> float:
        call = Call(session.train.take(rows), rows, adapter, Envelope(epoch), api.dropout())
        h = api.forward(call)
        scores, mine = head(h), labels[rows].to(h.device)
        objective(h, scores, mine).backward()  # type: ignore[no-untyped-call]
        assert h.grad is not None
        found = api.backward(call, [h.grad])
        for name, parameter in adapter.items():
            parameter.grad = found[name]
        return score_loss(scores.detach(), mine).item()

    session.fit(step, {"params": [*adapter.values(), *head.parameters()]})

    def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        scores: Tensor = head(api.forward(Call(tokens, rows, adapter, Envelope(split=split))))
        return scores

    return Predictor(score, api.network)


def fine_tune_language(session: Session, at: Head) -> Tuned:
    """Trains one adapter of a language model over the API and sends every gradient in the clear.

    Args:
        at: who holds the output layer.
    """
    api = Api(session)
    adapter, output = api.adapter(), OutputLayer.held(session, api.head, at)

    def step(rows: Tensor, epoch: int) -> float:
        call = Call(session.train.take(rows), rows, adapter, Envelope(epoch), api.dropout())
        gradient, loss = output.learnt(api.passed(call), rows, epoch)
        found = api.answered(call, gradient)
        for name, parameter in adapter.items():
            parameter.grad = found[name]
        return loss

    session.fit(step, {"params": [*adapter.values(), *output.trained]})

    def read(tokens: Tokens, rows: Tensor, split: str) -> tuple[Tensor, Tensor]:
        h = api.passed(Call(tokens, rows, adapter, Envelope(split=split)))
        return output.read(h, tokens, rows, split)

    return NextTokens(read, api.network)
