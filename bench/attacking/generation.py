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
"""Function from distinct continuations and their counts to the indices of those to continue."""


@dataclass(frozen=True)
class Writer:
    """A causal model that continues prompts, with a cache of keys and values.

    Attributes:
        model: a causal base model, in evaluation mode.
        head: [V, d] output embeddings.
        top_k: number of likeliest words from which a word is drawn.
        temperature: divisor of scores before a word is drawn.
        positions: largest number of tokens that the model can read; None if unlimited.
    """

    model: Any
    head: Tensor
    top_k: int
    temperature: float
    positions: int | None = None

    @torch.no_grad()
    def continued(self, prompt: Tensor, length: int, tries: int, draw: torch.Generator) -> Ints:
        """[1 + tries, length] token ids: the greedy continuation, then sampled ones.

        Args:
            prompt: [L] token ids.

        Raises:
            LeakboardError: the model cannot read so many tokens.
        """
        hidden, cache = self._read(prompt, length)
        cache.batch_repeat_interleave(1 + tries)
        hidden, words = hidden.expand(1 + tries, -1), []
        for place in range(length):
            chance, likely = self._likeliest(hidden)
            chosen = torch.multinomial(chance, 1, generator=draw)
            chosen[0] = 0  # the greedy continuation
            words.append(likely.gather(1, chosen)[:, 0])
            if place + 1 < length:
                hidden = self._next(words[-1], cache)
        return torch.stack(words, 1).numpy()

    @torch.no_grad()
    def draw(
        self, prompt: Tensor, length: int, draws: int, draw: torch.Generator, going_on: ContinueRule
    ) -> None:
        """Draws continuations of at most `length` tokens; equal ones share one row of the model's input.

        Args:
            going_on: called after each token with the distinct continuations and their counts; returns the indices
                of those to continue.

        Raises:
            LeakboardError: the model cannot read so many tokens.
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
            active = going_on(longer, often)
            if not active:
                return
            texts, counts = [longer[i] for i in active], [often[i] for i in active]
            cache.batch_select_indices(
                torch.tensor([origin[i] for i in active], device=self.device)
            )
            hidden = self._next(torch.tensor([text[-1] for text in texts]), cache)

    @property
    def device(self) -> torch.device:
        return self.head.device

    def _read(self, prompt: Tensor, length: int) -> tuple[Tensor, Any]:
        """The last hidden state [1, d] of a prompt, and its keys and values."""
        from transformers import DynamicCache  # slow to import

        if self.positions is not None and len(prompt) + length > self.positions:
            raise LeakboardError(
                f"a prompt of {len(prompt)} tokens and an answer of {length} exceed the "
                f"{self.positions} tokens that the model can read; lower train.max_length"
            )
        cache = DynamicCache()
        out = self.model(
            input_ids=prompt[None].to(self.device), **cache_argument(cache), use_cache=True
        )
        return out.last_hidden_state[:, -1], cache

    def _next(self, words: Tensor, cache: Any) -> Tensor:
        """[r, d] hidden states after the next token [r] of each row."""
        out = self.model(
            input_ids=words[:, None].to(self.device), **cache_argument(cache), use_cache=True
        )
        hidden: Tensor = out.last_hidden_state[:, -1]
        return hidden

    def _likeliest(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """[r, k] probabilities of the likeliest words, and their ids; on the CPU, so that draws do not depend on the
        device."""
        most = min(self.top_k, len(self.head))
        tops = [scores.topk(most, dim=1) for _, scores in chunks(hidden, self.head)]
        scores = torch.cat([top.values for top in tops]).cpu().double()
        words = torch.cat([top.indices for top in tops]).cpu()
        return (scores / self.temperature).softmax(1), words


def digits_drawn(
    writer: Writer, tokenizer: Any, prompt: Tensor, digits: int, draws: int, draw: torch.Generator
) -> Ints:
    """[draws] number in the first `digits` characters of each sampled continuation, or −1 if they are no number.

    White space is ignored, since some tokenisers write it between any two tokens.
    """
    start = prompt.tolist()
    prompt_text = tokenizer.decode(start, skip_special_tokens=True)
    numbers: list[int] = []

    def spelling(texts: list[list[int]], counts: list[int]) -> list[int]:
        active = []
        for i, (ids, count) in enumerate(zip(texts, counts, strict=True)):
            text = tokenizer.decode([*start, *ids], skip_special_tokens=True)
            spelled = "".join(text.removeprefix(prompt_text).split())
            if len(spelled) >= digits and _spells(spelled[:digits]):
                numbers.extend([int(spelled[:digits])] * count)
            elif len(spelled) < digits and (not spelled or _spells(spelled)):
                active.append(i)
        return active

    writer.draw(prompt, 2 * digits, draws, draw, spelling)
    return np.array(numbers + [-1] * (draws - len(numbers)), np.int64)


def _spells(text: str) -> bool:
    return text.isascii() and text.isdecimal()
