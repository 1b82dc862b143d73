"""Prompt tuning and prefix tuning: a frozen model with trained vectors before each text."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from leakboard.bench.backbones.network import Network
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts import LeakboardError

Kind = Literal["prefix", "prompt"]
SCALE = 0.02
"""Initial standard deviation of a prefix, small enough to change the model little. Its authors use a reparametrisation
network instead."""


class Prompted(nn.Module):
    """A network with a frozen encoder and a trained prompt or prefix.

    A prompt is N word embeddings, which take N positions and pass through all blocks (Lester et al. 2021); it is
    initialised with embeddings of random tokens. A prefix is N keys and values in each block, without positions
    (Li & Liang 2021).

    Args:
        network: network with cut 0 and without LoRA.
        length: N.

    Raises:
        LeakboardError: this architecture does not support a prefix.
    """

    def __init__(self, network: Network, kind: Kind, length: int) -> None:
        super().__init__()
        self.network, self.kind, self.length = network, kind, length
        words, encoder = network.embeddings.weight.detach(), network.encoder
        if kind == "prompt":
            start = words[torch.randint(len(words), (length,))].clone()
        else:
            heads = network.family.heads(encoder)
            if heads is None:
                raise LeakboardError(
                    f"kind: a prefix is not supported for the architecture '{encoder.config.model_type}'; "
                    "use 'prompt', or an encoder (BERT and its relatives, T5)"
                )
            blocks = network.family.blocks(encoder)
            start = SCALE * torch.randn(blocks, 2, heads[0], length, heads[1])
        self.front = nn.Parameter(start.to(words.device))

    @property
    def room(self) -> int | None:
        """Largest number of tokens of a text; None if unlimited."""
        most = self.network.family.positions(self.network.encoder)
        return most if most is None or self.kind == "prefix" else most - self.length

    def forward(self, ids: Ragged, types: Tensor) -> Tensor:
        """Last hidden states [T, d] of the tokens, without those of a prompt.

        Args:
            ids: [T] token ids of B examples.
            types: [T] segment of each.

        Raises:
            LeakboardError: a text is too long for the model's table of positions.
        """
        network, longest = self.network, int(ids.lengths.max())
        if self.room is not None and longest > self.room:
            raise LeakboardError(
                f"length: the model has room for {max(self.room, 0)} tokens after a {self.kind} of "
                f"{self.length}, but a text with its plain tokens has {longest}. Lower length, plain or "
                "train.max_length"
            )
        words = ids.with_values(network.embeddings(ids.values.to(self.front.device)))
        h, mask = words.padded(), words.mask()
        segments = words.with_values(types.to(mask.device)).padded()
        if self.kind == "prefix":
            from leakboard.bench.backbones.prefix import Prefix  # loads transformers

            out = network.family.top(network.encoder, h, mask, segments, 0, Prefix(self.front))
            return words.unpadded(out)
        n = self.length
        h = torch.cat([self.front.expand(len(h), -1, -1), h], 1)
        wide = torch.cat([mask.new_ones(len(mask), n), mask], 1)
        segments = torch.cat([segments.new_zeros(len(mask), n), segments], 1)
        return words.unpadded(network.family.top(network.encoder, h, wide, segments, 0)[:, n:])
