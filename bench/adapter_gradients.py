"""What the vendor can work out while it serves a call: the gradient of the adapter for each example.

It is asked for the gradient of θ of a whole batch, but has all that it takes to compute that of each
example by itself: token ids, θ and the gradients at the activations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bench.label_leakage import few
from bench.ragged import Ragged
from bench.session import Network
from bench.types import Channel, Message, Transcript

MOMENTS = 2
"""Moments of training at which this is done, the first and the last: it costs a forward and a backward
pass."""


def with_adapter_gradients(seen: Transcript, network: Network) -> Transcript:
    """The transcript with one row per example on the channel of the adapter's gradients.

    The rows of a moment are given in coordinates of their principal axes, [n, n] at most: of the
    same norms, distances and angles as the gradients [n, P] themselves, and far smaller. Dropout,
    whose random state is part of a call, is not repeated, and segment types are not known.

    Args:
        network: the vendor's model; it loses the values of its adapter.
    """
    found: list[Message] = []
    if not seen.channels >= {Channel.TOKENS, Channel.PARAMETERS, Channel.GRADIENTS}:
        return seen
    for moment in few(seen.moments(Channel.GRADIENTS), MOMENTS):
        calls = Calls.at(seen, moment)
        for recipient, part in seen.parts(Channel.GRADIENTS, moment):
            sent = [
                message
                for message in calls.gradients
                if (message.recipient, message.part) == (recipient, part)
            ]
            per_batch = [
                per_example(network, *calls.call(message), torch.tensor(message.values))
                for message in sent
            ]
            values = principal([torch.cat(layer) for layer in zip(*per_batch, strict=True)])
            rows = np.concatenate([message.rows for message in sent])
            first = sent[0]
            found.append(
                replace(
                    first,
                    channel=Channel.ADAPTER_GRADIENTS,
                    sender="vendor",
                    rows=rows,
                    values=values,
                )
            )
    return Transcript((*seen.messages, *found), seen.dropped)


class Calls:
    """The backward calls of one moment: whoever received a gradient received tokens and θ with it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.gradients = [m for m in messages if m.channel == Channel.GRADIENTS]
        self._tokens = {m.step: m for m in messages if m.channel == Channel.TOKENS}
        self._adapters = {(m.step, m.part): m for m in messages if m.channel == Channel.PARAMETERS}
        adapters = len({part for _, part in self._adapters})
        gradients = len({m.part for m in self.gradients})
        self.vectors = gradients // adapters if adapters else 0
        """How many gradients are sent per adapter."""

    @classmethod
    def at(cls, seen: Transcript, moment: int) -> Calls:
        """Those that were recorded at a moment."""
        return cls([m for m in seen.messages if (m.split, m.moment) == ("train", moment)])

    def adapter(self, step: int, part: int) -> Tensor:
        """[P] θ of an adapter at a step."""
        return torch.tensor(self._adapters[step, part].values)

    def tokens(self, step: int) -> Ragged:
        """Token ids of the batch of a step."""
        sent = self._tokens[step]
        return Ragged(torch.tensor(sent.values), torch.tensor(sent.lengths))

    def call(self, gradient: Message) -> tuple[Ragged, Tensor]:
        """Token ids and θ of the call that a gradient belongs to."""
        part = gradient.part // self.vectors
        return self.tokens(gradient.step), self.adapter(gradient.step, part)


def load(network: Network, adapter: Tensor) -> None:
    """Gives a network the adapter θ [P] as it was sent."""
    place = network.embeddings.weight.device
    nn.utils.vector_to_parameters(adapter.to(place), _weights(network).values())


def features(network: Network, ids: Ragged) -> Tensor:
    """[B, d] activations of examples, without dropout."""
    network.eval()
    device = network.embeddings.weight.device
    vectors = network.embeddings(ids.values.to(device))
    return network.features(ids.with_values(vectors), torch.zeros_like(ids.values))


def per_example(network: Network, ids: Ragged, adapter: Tensor, gradient: Tensor) -> list[Tensor]:
    """Per weight of the adapter [B, p] the gradients of single examples, by one pass for all.

    A linear layer's gradient is Σ over tokens of (∂/∂output) ⊗ input, so one that keeps both for
    each example need not sum over examples.

    Args:
        gradient: [B, d] at the activations.
    """
    load(network, adapter)
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    handles = []
    names = [name.removesuffix(".weight") for name in _weights(network)]
    for name in names:

        def keep(_: nn.Module, given: tuple[Tensor], out: Tensor, name: str = name) -> None:
            inputs[name], outputs[name] = given[0].detach(), out

        handles.append(network.get_submodule(name).register_forward_hook(keep))
    try:
        h = features(network, ids)
    finally:
        for handle in handles:
            handle.remove()
    found = torch.autograd.grad(h, [outputs[name] for name in names], gradient.to(h))
    return [
        torch.einsum("bto,bti->boi", out, inputs[name]).flatten(1)
        for name, out in zip(names, found, strict=True)
    ]


def principal(parts: Sequence[Tensor]) -> NDArray[np.float32]:
    """[n, k] coordinates of rows whose columns come in parts [n, p]: an isometry of the rows."""
    gram = torch.stack([part @ part.T for part in parts]).double().sum(0)
    values, vectors = torch.linalg.eigh(gram)
    coordinates = (vectors * values.clamp(min=0).sqrt()).flip(1)
    return coordinates.float().cpu().numpy()


def _weights(network: Network) -> dict[str, nn.Parameter]:
    heads = {id(parameter) for parameter in network.head.parameters()}
    return {
        name: parameter
        for name, parameter in network.named_parameters()
        if parameter.requires_grad and id(parameter) not in heads
    }
