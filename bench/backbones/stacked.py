"""Several networks over one frozen backbone in one pass, each with its own batch, adapters and dropout.

What computes row by row (the blocks) computes all rows at once. LoRA is a product of stacked matrices, one
pair for each network. What draws at random draws for each network by itself, from its own state and in the
shape that it would have alone, so that no network notices the others but by the rounding of sums.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from leakboard.bench.backbones.device import random_state
from leakboard.bench.backbones.draws import Draws, Unstackable
from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.network import Network
from leakboard.bench.backbones.ragged import Ragged


@dataclass(frozen=True)
class Part:
    """What one network asks for: the features of a batch.

    Attributes:
        h: representations at the cut, without their graph.
        types: [T] segment of each token.
        adapters: A [r, d] and B [o, r] of each adapted layer of the top, in turn; without their graph.
        kind: networks may share a pass where this is equal.
        learns: whether there will be passes back; `deeper`: as far as to h.
        autocast: whether, and to which numbers.
        state: of the random generator, from which dropout draws.
    """

    network: Network
    h: Ragged
    types: Tensor
    adapters: tuple[Tensor, ...]
    kind: tuple[Any, ...]
    learns: bool
    deeper: bool
    autocast: tuple[bool, torch.dtype]
    state: Tensor

    @staticmethod
    def of(network: Network, h: Ragged, types: Tensor) -> Part:
        device = h.values.device
        weights = tuple(weight.detach() for weight in weights_of(network))
        layers = adapted(network.family, network.encoder, network.cut).values()
        scaled = (layer.scaling["default"] for layer in layers)
        learns = torch.is_grad_enabled()
        autocast = torch.is_autocast_enabled(device.type), torch.get_autocast_dtype(device.type)
        like = (h.values.dtype, *scaled, *(weight.shape for weight in weights))
        return Part(
            network,
            h.with_values(h.values.detach()),
            types,
            weights,
            (network.cut, network.training, learns, *autocast, *like),
            learns,
            learns and h.values.requires_grad,
            autocast,
            random_state(str(device)),
        )


def weights_of(network: Network) -> list[Tensor]:
    """A and B of each adapted layer of the top, in turn: those in use, of which a server has the caller's."""
    return [
        matrix["default"].weight
        for layer in adapted(network.family, network.encoder, network.cut).values()
        for matrix in (layer.lora_A, layer.lora_B)
    ]


def adapted(family: Family, encoder: Any, cut: int) -> dict[str, Any]:
    """The layers above the cut that LoRA adapts, by name."""
    blocks = family.stack(encoder)[cut:]
    return {name: layer for name, layer in blocks.named_modules() if hasattr(layer, "lora_A")}


class Grouped(nn.Module):
    """A frozen layer whose rows belong to K groups of equal size, each with an adapter of its own.

    Attributes:
        a, b: [K, r, d] and [K, o, r].
        examples: K·B, the rows of an input [K·B, L, d].
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.base, self.scaling = layer.base_layer, layer.scaling["default"]
        self.a = self.b = torch.empty(0)
        self.examples = 0

    def forward(self, x: Tensor) -> Tensor:
        if len(x) != self.examples:
            raise Unstackable(f"an adapter on a tensor of shape {tuple(x.shape)}")
        out: Tensor = self.base(x)
        rows = x.reshape(len(self.a), -1, x.shape[-1]).to(self.a.dtype)
        # Block by block: what is not finite in one group reaches no other.
        change = rows @ self.a.transpose(1, 2) @ self.b.transpose(1, 2)
        adapted: Tensor = out + change.reshape(out.shape) * self.scaling
        return adapted.to(out.dtype)


class Stacked:
    """The model that all share.

    Args:
        network: one of them, whose frozen weights are used.
    """

    def __init__(self, network: Network) -> None:
        self.family, self.cut = network.family, network.cut
        frozen = {id(p): p for p in network.encoder.parameters() if not p.requires_grad}
        self.encoder = copy.deepcopy(network.encoder, frozen)
        blocks = self.family.stack(self.encoder)[self.cut :]
        self.layers = []
        for name, layer in adapted(self.family, self.encoder, self.cut).items():
            self.layers.append(Grouped(layer))
            blocks.set_submodule(name, self.layers[-1])
        self.encoder.requires_grad_(False)

    def passed(self, parts: Sequence[Part]) -> Pass:
        """One pass for parts of one kind.

        Raises:
            Unstackable: the model adapts, or draws, what belongs to no example.
        """
        first, rows = parts[0], max(len(part.h) for part in parts)
        filled = [_filled(part, rows) for part in parts]
        h, types = Ragged.joined([h for h, _ in filled]), torch.cat([types for _, types in filled])
        h.values.requires_grad_(any(part.deeper for part in parts))
        adapters = [
            torch.stack(one).requires_grad_(first.learns)
            for one in zip(*(part.adapters for part in parts), strict=True)
        ]
        for layer, a, b in zip(self.layers, adapters[::2], adapters[1::2], strict=True):
            layer.a, layer.b, layer.examples = a, b, len(parts) * rows
        self.encoder.train(first.network.training)
        enabled, dtype = first.autocast
        device = h.values.device
        autocast = torch.autocast(device.type, dtype, enabled)
        draws = Draws([part.h.lengths for part in parts], rows, device, [p.state for p in parts])
        with torch.set_grad_enabled(first.learns), autocast, draws:
            out = self.family.pooled(self.encoder, h, types, self.cut)
        draws.check()
        return Pass(tuple(parts), out.view(len(parts), rows, -1), h, adapters, draws.states)


def _filled(part: Part, rows: int) -> tuple[Ragged, Tensor]:
    """A batch with so many rows, and their segments; those that are added have one token of zeros."""
    h, more = part.h, rows - len(part.h)
    values = torch.cat([h.values, h.values.new_zeros(more, h.values.shape[1])])
    return Ragged(values, pad(h.lengths, (0, more), value=1)), pad(part.types, (0, more))


@dataclass(frozen=True)
class Pass:
    """A pass that was made, and what passes back need of it.

    Attributes:
        out: [K, B, d] features, with their graph.
        h: all representations, one part after the other; adapters: [K, …] each.
        states: of the random generators, after each part's draws.
    """

    parts: tuple[Part, ...]
    out: Tensor
    h: Ragged
    adapters: list[Tensor]
    states: list[Tensor]

    def features(self, k: int) -> Tensor:
        """[Bₖ, d] those of one part, without their graph."""
        return self.out[k, : len(self.parts[k].h)].detach().clone()

    def backward(self, gradients: Mapping[int, Tensor]) -> dict[int, list[Tensor | None]]:
        """For each part that asks, by its number: gradients of h where it goes so deep, and of its adapters.

        Args:
            gradients: [Bₖ, d] at the features of each.
        """
        whole = torch.zeros_like(self.out)
        for k, gradient in gradients.items():
            whole[k, : len(gradient)] = gradient
        deeper = self.h.values.requires_grad
        wanted = [*([self.h.values] if deeper else []), *self.adapters]
        found = list(torch.autograd.grad(self.out, wanted, whole, retain_graph=True))
        at_h, answers = found.pop(0) if deeper else None, {}
        rows = self.out.shape[1]
        for k in gradients:
            start, size = int(self.h.starts[k * rows]), len(self.parts[k].h.values)
            own = at_h[start : start + size] if at_h is not None and self.parts[k].deeper else None
            answers[k] = [own, *(one[k] for one in found)]
        return answers


@dataclass(frozen=True)
class Share:
    """What a network gets of a pass.

    Attributes:
        back: gradients at its features → those of its h, or None, and of its adapters.
    """

    features: Tensor
    back: Callable[[Tensor], Sequence[Tensor | None]]


class Joined(torch.autograd.Function):
    """Puts a share into the graph of the one who asked: (share, h, *weights) → features."""

    @staticmethod
    def forward(ctx: Any, share: Share, *asked: Tensor) -> Tensor:
        ctx.back = share.back
        return share.features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, *ctx.back(gradient)
