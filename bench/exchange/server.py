"""The vendor's side of an API: stateless, deterministic calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from leakboard.bench.backbones import Network, Ragged, Tokens, random_state, set_random_state
from leakboard.bench.contracts import Envelope
from leakboard.bench.exchange.wire import PLAIN

Adapter = Mapping[str, Tensor]
"""The trainable parameters θ of one adapter, by name in the model."""


class Features(nn.Module):
    """The model as a function of its adapter: token ids, or vectors in their place → pooled activations."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: Tokens, vectors: Ragged | None = None) -> Tensor:
        if vectors is None:
            return self.network.vectors(tokens)
        return self.network.features(vectors, tokens.types)


@dataclass(frozen=True)
class Call:
    """A request of a customer to a server: a forward pass, and backward passes through it.

    Attributes:
        rows: [B] rows of the examples `tokens`.
        where: its `part` is the number of the adapter.
        dropout: state of the random generator for dropout; None for a pass without dropout.
        exact: in float32 whatever the precision. If several vectors add up to one gradient, their noise
            cancels in the sum of the answers, but bfloat16 rounding does not.
        vectors: the representations that arrived in place of token ids.
    """

    tokens: Tokens
    rows: Tensor
    adapter: Adapter
    where: Envelope = PLAIN
    dropout: Tensor | None = None
    exact: bool = False
    vectors: Ragged | None = None

    @property
    def versions(self) -> tuple[int, ...]:
        """Versions of the adapter's parameters, which change when a parameter is modified in place."""
        return tuple(value._version for value in self.adapter.values())


class Server:
    """The vendor's model as two stateless, deterministic calls.

    Args:
        network: its LoRA layers are the places for adapters; their values are not used.
        keep: forward passes to remember, which saves repeating them for a backward call. The answers are the
            same without.
    """

    def __init__(self, network: Network, autocast: torch.autocast, keep: int = 1) -> None:
        self._model = Features(network)
        self._autocast = autocast
        self._done: deque[tuple[Call, tuple[int, ...], Adapter, Tensor]] = deque(maxlen=keep)

    def forward(self, call: Call) -> Tensor:
        """h(x, θ): [B, d] activations."""
        live = {name: value.detach().requires_grad_() for name, value in call.adapter.items()}
        self._model.network.train(call.dropout is not None)
        if call.dropout is not None:
            set_random_state(call.dropout, self._device)
        with nullcontext() if call.exact else self._autocast:
            names = {f"network.{name}": value for name, value in live.items()}
            h: Tensor = functional_call(self._model, names, (call.tokens, call.vectors))
        if torch.is_grad_enabled():
            self._done.append((call, call.versions, live, h))
        return h.detach()

    def backward(self, call: Call, gradient: Tensor) -> Adapter:
        """g_θ: the gradient of ⟨h(x, θ), `gradient`⟩, [B, d], with respect to the adapter."""
        same = (one for one in self._done if one[0] is call and one[1] == call.versions)
        done = next(same, None)
        if done is None:
            before = random_state(self._device)
            self.forward(call)
            set_random_state(before, self._device)
            done = self._done[-1]
        _, _, live, h = done
        found = torch.autograd.grad(h, list(live.values()), gradient, retain_graph=True)
        return dict(zip(live, found, strict=True))

    @property
    def _device(self) -> str:
        return str(self._model.network.embeddings.weight.device)
