"""What a server can compute from the calls that it answers: it has inputs, adapters and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from bench.api import Features
from bench.backbones import Backbone
from bench.ragged import Ragged, Tokens
from bench.record import TrainSettings
from bench.session import Network
from bench.types import Channel, Message, Transcript

MOMENTS = 3
"""Moments at which gradients per example are computed: the first, the middle and the last."""
STEPS = 4
"""Steps of each, since it costs as much as training these steps once more."""
SKETCH = 1024
"""Width to which a gradient per example is sketched; it keeps inner products in expectation."""


@dataclass(frozen=True)
class Calls:
    """A server's model with the adapters that were sent to it. Passes are without dropout."""

    network: Network
    device: str

    @classmethod
    def of(cls, base: Backbone, settings: TrainSettings, classes: int = 2) -> Calls:
        network = Network(base, 0, classes, settings, slice(0, None)).eval()
        return cls(network, base.device)

    def activations(self, tokens: Tokens, vector: NDArray[np.float32]) -> Tensor:
        """h(x, θ), [B, d] with its graph; θ as the one vector that was sent."""
        model = Features(self.network)
        h: Tensor = functional_call(model, self._adapter(vector), (tokens,))
        return h

    def _adapter(self, vector: NDArray[np.float32]) -> dict[str, Tensor]:
        head = {id(p) for p in self.network.head.parameters()}
        values = torch.tensor(vector, device=self.device)
        found, at = {}, 0
        for name, slot in self.network.named_parameters():
            if slot.requires_grad and id(slot) not in head:
                part = values[at : at + slot.numel()].reshape(slot.shape)
                found[f"network.{name}"] = part.detach().requires_grad_()
                at += slot.numel()
        if at != len(values):
            raise ValueError(f"an adapter of {len(values)} numbers does not fit this model's {at}")
        return found

    def per_example(
        self, tokens: Tokens, vector: NDArray[np.float32], gradients: list[Tensor]
    ) -> Iterator[Tensor]:
        """For each ∂loss/∂h [B, d] the sketch [B, SKETCH] of ∂loss/∂θ of every example alone.

        A linear layer's gradient is a sum over tokens of output gradient times input; summed over
        the tokens of one example it is that example's own.
        """
        seen: list[tuple[Tensor, Tensor]] = []
        layers = [m for n, m in self.network.named_modules() if "lora_" in n and _linear(m)]
        hooks = [
            layer.register_forward_hook(lambda _, given, out: seen.append((given[0].detach(), out)))
            for layer in layers
        ]
        try:
            h = self.activations(tokens, vector)
        finally:
            for hook in hooks:
                hook.remove()
        for gradient in gradients:
            outs = [out for _, out in seen]
            found = torch.autograd.grad(h, outs, gradient.to(h), retain_graph=True)
            rows = torch.zeros(len(h), SKETCH, device=self.device)
            draw = torch.Generator().manual_seed(0)
            for (given, _), back in zip(seen, found, strict=True):
                own = torch.einsum("blo,bli->boi", back.float(), given.float()).flatten(1)
                bucket = torch.randint(SKETCH, (own.shape[1],), generator=draw).to(own.device)
                sign = torch.randint(2, (own.shape[1],), generator=draw).to(own.device) * 2 - 1
                rows.index_add_(1, bucket, own * sign)
            yield rows


def with_adapter_gradients(
    seen: Transcript, base: Backbone, settings: TrainSettings, train: Tokens
) -> Transcript:
    """Adds what the server can work out of `seen`: gradients of θ, one row per example.

    Args:
        train: the tokenised training examples, which the server has in the clear.
    """
    moments = seen.moments(Channel.PARAMETERS)
    if not moments or not seen.moments(Channel.GRADIENTS):
        return seen
    chosen = {moments[i] for i in np.linspace(0, len(moments) - 1, MOMENTS).round().astype(int)}
    calls = Calls.of(base, settings)
    at: dict[int, dict[Channel, list[Message]]] = {}
    for m in seen.messages:
        if m.moment in chosen and m.channel in (Channel.PARAMETERS, Channel.GRADIENTS):
            at.setdefault(m.step, {}).setdefault(m.channel, []).append(m)
    starts = {moment: min(m.step for m in seen.messages if m.moment == moment) for moment in chosen}
    near = {start + i for start in starts.values() for i in range(STEPS)}
    added = []
    for sent in (sent for step, sent in at.items() if step in near):
        # Every call of a step names its adapter, whichever server it goes to.
        adapters = {m.part: m for m in sent.get(Channel.PARAMETERS, [])}
        gradients = sent.get(Channel.GRADIENTS, [])
        each = len({m.part for m in gradients}) // max(1, len(adapters))
        for part, adapter in adapters.items():
            mine = [m for m in gradients if each and m.part // each == part]
            tokens = train.take(torch.from_numpy(np.array(adapter.rows)))
            values = [torch.tensor(m.values, device=base.device) for m in mine]
            rows = calls.per_example(tokens, adapter.values, values)
            for message, found in zip(mine, rows, strict=True):
                array = found.cpu().numpy()
                array.setflags(write=False)
                added.append(replace(message, channel=Channel.ADAPTER_GRADIENTS, values=array))
    return Transcript((*seen.messages, *added), seen.dropped)


def _linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear)


def tokens_of(message: Message) -> Tokens:
    """The token ids of one message as the input of a model; segment types are not sent."""
    assert message.lengths is not None
    ids = Ragged(torch.tensor(message.values), torch.tensor(message.lengths))
    types = torch.zeros(len(ids.values), dtype=torch.long)
    return Tokens(ids, types, types.bool())
