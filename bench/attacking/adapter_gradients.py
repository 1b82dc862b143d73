"""Per-example gradients of the adapter, which a vendor can compute from the messages of a call.

The customer asks for the gradient of θ over a batch. The vendor has token ids, θ and the gradients at the
activations, from which it can compute the gradient of each example.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakboard.bench.attacking.label_leakage import evenly_spaced
from leakboard.bench.backbones import Network, Ragged
from leakboard.bench.contracts import Channel, Message, Transcript
from leakboard.bench.exchange import Batch, batches

MOMENTS = 2
"""Moments of training at which this is done, the first and the last: it costs a forward and a backward
pass."""
ROWS = 64
"""Of a moment whole batches until they hold so many examples: what a vector tells of its own example
takes no other, and more would take as much of a cell's time as all attacks on labels together."""


def with_adapter_gradients(seen: Transcript, network: Network) -> Transcript:
    """The transcript with one row for each of `ROWS` examples or a few more on the channel of the adapter's gradients.

    The rows of a moment are given in coordinates of their principal axes, [n, n] at most: of the
    same norms, distances and angles as the gradients [n, P] themselves, and far smaller. Dropout,
    whose random state is part of a call, is not repeated, and segment types are not known.

    Args:
        network: the vendor's model; it loses the values of its adapter.
    """
    found: list[Message] = []
    if not seen.channels >= {Channel.TOKENS, Channel.PARAMETERS, Channel.GRADIENTS}:
        return seen
    for moment in evenly_spaced(seen.moments(Channel.GRADIENTS), MOMENTS):
        for (recipient, _), whole in batches(seen, moment).items():
            before = accumulate((len(batch.rows) for batch in whole), initial=0)
            sent = [batch for batch, rows in zip(whole, before, strict=False) if rows < ROWS]
            rows = np.concatenate([batch.rows for batch in sent])
            of_batch = [per_example(network, batch) for batch in sent]
            first = sent[0]
            for j, part in enumerate(first.parts):
                weights = zip(*(gradients[j] for gradients in of_batch), strict=True)
                values = principal([torch.cat(weight) for weight in weights])
                where = (Channel.ADAPTER_GRADIENTS, "train", 0)
                found.append(
                    Message(
                        *where, "vendor", recipient, part, rows, values, None, first.step, moment
                    )
                )
    return Transcript((*seen.messages, *found), seen.dropped)


def load(network: Network, adapter: Tensor) -> None:
    """Gives a network the adapter θ [P] as it was sent."""
    place = network.embeddings.weight.device
    nn.utils.vector_to_parameters(adapter.to(place), adapter_of(network).values())


def features(network: Network, tokens: Message, adapter: Tensor) -> Tensor:
    """[B, d] activations of examples under θ, without dropout.

    Args:
        tokens: their ids, as they were sent.
    """
    network.eval()
    load(network, adapter)
    device = network.embeddings.weight.device
    ids = Ragged(torch.tensor(tokens.values), torch.tensor(tokens.lengths))
    vectors = network.embeddings(ids.values.to(device))
    return network.features(ids.with_values(vectors), torch.zeros_like(ids.values))


def per_example(network: Network, batch: Batch) -> list[list[Tensor]]:
    """For each of m vectors, and per weight of the adapter, [B, p] the gradients of single examples.

    One forward pass, and one backward pass per vector: a linear layer's gradient is Σ over tokens
    of (∂/∂output) ⊗ input, so one that keeps both for each example need not sum over examples.
    """
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    handles = []
    for name in [name.removesuffix(".weight") for name in adapter_of(network)]:

        def keep(_: nn.Module, given: tuple[Tensor], out: Tensor, name: str = name) -> None:
            inputs[name], outputs[name] = given[0].detach(), out

        handles.append(network.get_submodule(name).register_forward_hook(keep))
    try:
        assert batch.tokens is not None
        h = features(network, batch.tokens, torch.tensor(batch.adapter))
    finally:
        for handle in handles:
            handle.remove()
    found = []
    for vector in torch.tensor(batch.vectors).to(h):
        gradients = torch.autograd.grad(h, list(outputs.values()), vector, retain_graph=True)
        pairs = zip(inputs.values(), gradients, strict=True)
        found.append([torch.einsum("bto,bti->boi", g, x).flatten(1) for x, g in pairs])
    return found


def principal(parts: Sequence[Tensor]) -> NDArray[np.float32]:
    """[n, k] coordinates of rows whose columns come in parts [n, p]: an isometry of the rows."""
    gram = torch.stack([part @ part.T for part in parts]).double().sum(0)
    values, vectors = torch.linalg.eigh(gram)
    coordinates = (vectors * values.clamp(min=0).sqrt()).flip(1)
    return np.asarray(coordinates.float().cpu())


def adapter_of(network: Network) -> dict[str, nn.Parameter]:
    """The parameters θ by name, in the order in which they are sent."""
    heads = {id(parameter) for parameter in network.head.parameters()}
    return {
        name: parameter
        for name, parameter in network.named_parameters()
        if parameter.requires_grad and id(parameter) not in heads
    }
