"""Greedy and sampled continuations of prompts by a causal language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.backbones import cache_argument, chunks
from leakboard.bench.contracts import Ints, LeakboardError

ContinueRule = Callable[[list[list[int]], list[int]], list[int]]
"""Different continuations, and how often each was drawn → the numbers of those that go on."""


@dataclass(frozen=True)
class Writer:
    """A causal model that continues prompts, with the keys and values of what it has written kept.

    Attributes:
        model: a causal base model, in evaluation mode.
        head: [V, d] output embeddings.
        top_k: a word is drawn from so many likeliest ones.
        temperature: by which scores are divided before a word is drawn.
        positions: the most tokens that the model can read; None where nothing bounds them.
    """

    model: Any
    head: Tensor
    top_k: int
    temperature: float
    positions: int | None = None

    @torch.no_grad()
    def continued(self, prompt: Tensor, length: int, tries: int, draw: torch.Generator) -> Ints:
        """[1 + tries, length] token ids: the greedy continuation, then those that were drawn.

        Args:
            prompt: [L] token ids.

        Raises:
            LeakboardError: the model cannot read as many tokens.
        """
        hidden, cache = self._read(prompt, length)
        cache.batch_repeat_interleave(1 + tries)
        hidden, found = hidden.expand(1 + tries, -1), []
        for place in range(length):
            chance, words = self._likeliest(hidden)
            chosen = torch.multinomial(chance, 1, generator=draw)
            chosen[0] = 0  # the likeliest of all
            found.append(words.gather(1, chosen)[:, 0])
            if place + 1 < length:
                hidden = self._next(found[-1], cache)
        return torch.stack(found, 1).numpy()

    @torch.no_grad()
    def draw(
        self, prompt: Tensor, length: int, draws: int, draw: torch.Generator, going_on: ContinueRule
    ) -> None:
        """Draws continuations of at most `length` tokens; those that agree so far go through the model as one.

        Args:
            going_on: is told after each token the different continuations and how often each was drawn,
                and says which of them go on.

        Raises:
            LeakboardError: the model cannot read as many tokens.
        """
        hidden, cache = self._read(prompt, length)
        texts, counts = [list[int]()], [draws]
        for _ in range(length):
            chance, words = self._likeliest(hidden)
            origin, longer, often = [], [], []
            for row, count in enumerate(counts):
                picks = torch.multinomial(chance[row], count, replacement=True, generator=draw)
                for pick, times in zip(*np.unique(picks.numpy(), return_counts=True), strict=True):
                    origin.append(row)
                    longer.append([*texts[row], int(words[row, pick])])
                    often.append(int(times))
            kept = going_on(longer, often)
            if not kept:
                return
            texts, counts = [longer[i] for i in kept], [often[i] for i in kept]
            cache.batch_select_indices(torch.tensor([origin[i] for i in kept], device=self.device))
            hidden = self._next(torch.tensor([text[-1] for text in texts]), cache)

    @property
    def device(self) -> torch.device:
        return self.head.device

    def _read(self, prompt: Tensor, length: int) -> tuple[Tensor, Any]:
        """The last hidden state [1, d] behind a prompt, and its keys and values."""
        from transformers import DynamicCache  # here, since it takes a second to load

        if self.positions is not None and len(prompt) + length > self.positions:
            raise LeakboardError(
                f"a prompt of {len(prompt)} tokens and {length} to be written are more than the "
                f"{self.positions} that the model can read; lower train.max_length"
            )
        cache = DynamicCache()
        out = self.model(
            input_ids=prompt[None].to(self.device), **cache_argument(cache), use_cache=True
        )
        return out.last_hidden_state[:, -1], cache

    def _next(self, words: Tensor, cache: Any) -> Tensor:
        """[r, d] the last hidden states once each row has got its next token [r]."""
        out = self.model(
            input_ids=words[:, None].to(self.device), **cache_argument(cache), use_cache=True
        )
        hidden: Tensor = out.last_hidden_state[:, -1]
        return hidden

    def _likeliest(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """[r, k] of the likeliest words how likely each is to be drawn, and which they are; on the CPU, where
        a seed draws the same whatever the device."""
        most = min(self.top_k, len(self.head))
        tops = [scores.topk(most, dim=1) for _, scores in chunks(hidden, self.head)]
        scores = torch.cat([top.values for top in tops]).cpu().double()
        words = torch.cat([top.indices for top in tops]).cpu()
        return (scores / self.temperature).softmax(1), words


def digits_drawn(
    writer: Writer, tokenizer: Any, prompt: Tensor, digits: int, draws: int, draw: torch.Generator
) -> Ints:
    """[draws] the number that the first `digits` characters behind a prompt spell, or −1 where they spell none.

    White space among them does not count: a few tokenisers write it between any two tokens.
    """
    start = prompt.tolist()
    known = tokenizer.decode(start, skip_special_tokens=True)
    found: list[int] = []

    def spelling(texts: list[list[int]], counts: list[int]) -> list[int]:
        still = []
        for i, (ids, count) in enumerate(zip(texts, counts, strict=True)):
            whole = tokenizer.decode([*start, *ids], skip_special_tokens=True)
            told = "".join(whole.removeprefix(known).split())
            if len(told) >= digits and _spells(told[:digits]):
                found.extend([int(told[:digits])] * count)
            elif len(told) < digits and (not told or _spells(told)):
                still.append(i)
        return still

    writer.draw(prompt, 2 * digits, draws, draw, spelling)
    return np.array(found + [-1] * (draws - len(found)), np.int64)


def _spells(text: str) -> bool:
    return text.isascii() and text.isdecimal()
