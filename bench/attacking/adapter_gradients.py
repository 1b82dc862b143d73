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
"""Moments of training at which gradients are computed: the first and the last."""
ROWS = 64
"""Examples per moment, rounded up to full batches; more would take as long as all label attacks together."""


def with_adapter_gradients(seen: Transcript, network: Network) -> Transcript:
    """The transcript with per-example gradients of the adapter for about `ROWS` examples per moment.

    Rows are coordinates along principal axes, at most [n, n], with the norms, distances and angles of the gradients
    [n, P]. Dropout is not repeated, and all tokens have segment type 0.

    Args:
        network: the vendor's model; its adapter is overwritten.
    """
    messages: list[Message] = []
    if not seen.channels >= {Channel.PARAMETERS, Channel.GRADIENTS}:
        return seen
    for moment in evenly_spaced(seen.moments(Channel.GRADIENTS), MOMENTS):
        for (recipient, _), every in batches(seen, moment).items():
            sent = [batch for batch in every if batch.tokens is not None]
            if not sent:
                continue
            counts = accumulate((len(batch.rows) for batch in sent), initial=0)
            chosen = [batch for batch, rows in zip(sent, counts, strict=False) if rows < ROWS]
            rows = np.concatenate([batch.rows for batch in chosen])
            of_batch = [per_example(network, batch) for batch in chosen]
            first = chosen[0]
            for j, part in enumerate(first.parts):
                weights = zip(*(gradients[j] for gradients in of_batch), strict=True)
                values = principal([torch.cat(weight) for weight in weights])
                place = (Channel.ADAPTER_GRADIENTS, "train", 0)
                messages.append(
                    Message(
                        *place, "vendor", recipient, part, rows, values, None, first.step, moment
                    )
                )
    return Transcript((*seen.messages, *messages), seen.dropped)


def load(network: Network, adapter: Tensor) -> None:
    """Sets the adapter of a network to θ [P]."""
    place = network.embeddings.weight.device
    nn.utils.vector_to_parameters(adapter.to(place), adapter_of(network).values())


def features(network: Network, tokens: Message, adapter: Tensor) -> Tensor:
    """[B, d] activations of examples under θ, without dropout.

    Args:
        tokens: message with the token ids or the vectors of the examples.
    """
    network.eval()
    load(network, adapter)
    inputs = Ragged(torch.tensor(tokens.values), torch.tensor(tokens.lengths))
    types = torch.zeros(len(inputs.values), dtype=torch.long)
    return network.features(vectors_of(network, inputs), types)


def vectors_of(network: Network, inputs: Ragged) -> Ragged:
    """Vectors [T, d] as they were sent, or the word embeddings of ids [T]."""
    values = inputs.values.to(network.embeddings.weight.device)
    return inputs.with_values(values if values.is_floating_point() else network.embeddings(values))


def per_example(network: Network, batch: Batch) -> list[list[Tensor]]:
    """For each of m vectors and each weight of the adapter, [B, p] gradients of single examples.

    A linear layer's gradient is the sum over tokens of (∂/∂output) ⊗ input. Inputs and output gradients are stored
    per example, so one forward pass and one backward pass per vector suffice.
    """
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    handles = []
    for name in [name.removesuffix(".weight") for name in adapter_of(network)]:

        def keep(_: nn.Module, inputs_of: tuple[Tensor], out: Tensor, name: str = name) -> None:
            inputs[name], outputs[name] = inputs_of[0].detach(), out

        handles.append(network.get_submodule(name).register_forward_hook(keep))
    try:
        assert batch.tokens is not None
        h = features(network, batch.tokens, torch.tensor(batch.adapter))
    finally:
        for handle in handles:
            handle.remove()
    gradients_per_vector = []
    for vector in torch.tensor(batch.vectors).to(h):
        gradients = torch.autograd.grad(h, list(outputs.values()), vector, retain_graph=True)
        pairs = zip(inputs.values(), gradients, strict=True)
        gradients_per_vector.append(
            [torch.einsum("bto,bti->boi", g, x).flatten(1) for x, g in pairs]
        )
    return gradients_per_vector


def principal(parts: Sequence[Tensor]) -> NDArray[np.float32]:
    """[n, k] coordinates of rows along their principal axes; columns of the rows are given in parts [n, p]."""
    gram = torch.stack([part @ part.T for part in parts]).cpu().double().sum(0)
    values, vectors = torch.linalg.eigh(gram)
    coordinates = (vectors * values.clamp(min=0).sqrt()).flip(1)
    return np.asarray(coordinates.float())


def adapter_of(network: Network) -> dict[str, nn.Parameter]:
    """The parameters θ by name, in the order in which they are sent."""
    heads = {id(parameter) for parameter in network.head.parameters()}
    return {
        name: parameter
        for name, parameter in network.named_parameters()
        if parameter.requires_grad and id(parameter) not in heads
    }
