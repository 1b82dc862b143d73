"""sipit: exact inversion of hidden states behind causal blocks, token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.attacking import Discriminant
from leakboard.bench.backbones import Backbone, Ragged, cache_argument
from leakboard.bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Conditions, Knowledge, Silent, Source

FIRST, GROWTH, CHUNK = 16, 4, 512
"""Words that are tried at first, by how many times more each further time, and at most in one pass."""
EXACT = 1e-3
"""Distance of a match, relative to the median distance of the words that are tried with it. The paper compares with
a fixed tolerance; rounding grows with the vectors, which differ a thousandfold between models."""
SURE = 1e30
"""Score of special tokens, which are few and tried first."""


class SipIt(Attack):
    """Find each token as the one whose output behind the known prefix is the received vector.

    The output of a causal block depends only on the tokens so far. So the attacker goes from left to right, and
    tries words of the vocabulary behind the words that it has found, whose keys and values it keeps. Words are
    ordered by a linear discriminant, which learns the influence of the context from the outputs of the words that
    are tried. The first match within rounding is the token; without noise every token is found.

    If no word of the vocabulary matches, there is noise. From then on, `candidates` words are tried at each position,
    and the nearest is taken, which is the likeliest where noise has the same law in all directions. Distances of
    repeated messages add up. To keep more than one prefix gains less than a point behind noise.

    With `order: any`, the vectors of a text may have been permuted before they were sent. Each token is then the one
    whose output is any received vector that is not explained yet, by vocabulary matching (Thomas et al. 2025,
    arXiv 2505.18332), and the order of the text is found with its tokens.

    Windows of attention are not applied, so tokens behind the first window of a text are not found.
    """

    name: ClassVar[str] = "sipit"
    display_name: ClassVar[str] = "SipIt"
    source: ClassVar[Source] = Source(
        "Language Models are Injective and Hence Invertible (Nikolaou et al. 2025)",
        "algorithm 1",
        "https://arxiv.org/abs/2510.15511",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION}, reads={Channel.REPRESENTATIONS}, knows={Knows.BASE_WEIGHTS}
    )
    costly: ClassVar[bool] = True

    candidates: int = Field(64, ge=1)
    """Words that are tried at each position if there is noise."""
    order: Literal["sent", "any"] = "sent"
    """Whether the vectors of a text were sent in its order, or may have been permuted."""

    younger: ClassVar[frozenset[str]] = frozenset({"order"})

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.causal is False:
            return "the model is not causal: a hidden state depends on later tokens, too"
        return None

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        base, channel, guesses = knowledge.base, Channel.REPRESENTATIONS, []
        assert base is not None
        if not base.is_causal:
            raise Silent(
                f"model '{base.name}' is not causal: a hidden state depends on later tokens, too"
            )
        search = Search(base, knowledge.cut, Discriminant(base, knowledge.cut, rng, robust=True))
        for split in seen.splits(channel):
            blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
            rows, lengths = blocks[0].rows, blocks[0].lengths
            assert lengths is not None
            ends = np.cumsum(lengths)
            received = np.stack([block.values for block in blocks], 1)
            found = [
                self._read(search, torch.from_numpy(own).to(base.device))
                for own in np.split(received, ends[:-1])
            ]
            words: Ints = np.concatenate(found)
            guesses.append(Guess(Goal.INVERSION, channel, split, rows, words, lengths, view=split))
        return guesses

    @torch.no_grad()
    def _read(self, search: Search, received: Tensor) -> Ints:
        """[L] tokens of one text from vectors [L, R, d] that were received in R rounds."""
        likely = search.discriminant.scores(Ragged(received.mean(1), torch.tensor([len(received)])))
        likely[:, list(search.base.special_ids)] = SURE
        prefix, left = Prefix(search.base, search.cut), list(range(len(received)))
        while left:
            tried = left if self.order == "any" else left[:1]
            word, at = search.nearest(prefix, received[tried], likely[tried], self.candidates)
            prefix = prefix.extended(word)
            del left[at]
        return np.array(prefix.words, np.int64)


@dataclass
class Search:
    """Search for the word behind a vector.

    Attributes:
        noisy: a vector was received that no word explains.
    """

    base: Backbone
    cut: int
    discriminant: Discriminant
    noisy: bool = False

    def nearest(
        self, prefix: Prefix, received: Tensor, scores: Tensor, candidates: int
    ) -> tuple[int, int]:
        """The word with the smallest summed distance of its output among those that are tried, up to a match.

        Args:
            received: [n, R, d] vectors of n positions in each round, one of which is that of the word.
            scores: [n, V] by which words are ordered at first.
            candidates: number of words that are tried if there is noise.

        Returns:
            The word, and which of the n positions is its.
        """
        scores = scores.max(0).values
        most = len(scores)
        best, place, least = 0, 0, math.inf
        untried, size = torch.ones(most, dtype=torch.bool, device=scores.device), FIRST
        while left := (min(candidates, most) if self.noisy else most) - int((~untried).sum()):
            words = scores.masked_fill(~untried, -torch.inf).topk(min(size, left)).indices
            untried[words] = False
            outputs = torch.cat([prefix.outputs(part)[0] for part in torch.split(words, CHUNK)])
            every = [[(outputs - each).norm(dim=1) for each in rounds] for rounds in received]
            distances = torch.stack([torch.stack(rounds).sum(0) for rounds in every])
            at = int(distances.min(1).values.argmin())
            far = distances[at]
            if far.min() < least:
                best, place, least = int(words[far.argmin()]), at, float(far.min())
            if far.min() <= EXACT * far.median():
                return best, place
            after = [
                self.discriminant.scores_after(each.mean(0), words, outputs) for each in received
            ]
            scores = torch.stack(after).max(0).values
            size *= GROWTH
        self.noisy = True
        return best, place


@dataclass(frozen=True)
class Prefix:
    """Words that were found so far, with keys and values [1, H, t, w] of each block below the cut."""

    base: Backbone
    cut: int
    words: tuple[int, ...] = ()
    past: Sequence[tuple[Tensor, Tensor]] = ()

    def extended(self, word: int) -> Prefix:
        _, past = self.outputs(torch.tensor([word], device=self.base.device))
        return Prefix(self.base, self.cut, (*self.words, word), past)

    def outputs(self, words: Tensor) -> tuple[Tensor, Sequence[tuple[Tensor, Tensor]]]:
        """[c, d] output of each of some words [c] behind the prefix, and keys and values of all of them."""
        if self.cut == 0:
            return self.base.embeddings[words], ()
        from transformers import DynamicCache  # here, since it takes a second to load

        model, cache, t, c = self.base.model, DynamicCache(), len(self.words), len(words)
        for number, (keys, values) in enumerate(self.past):
            cache.update(keys, values, number)
        # They go through the model side by side, each blind to the others.
        least = torch.finfo(model.dtype).min
        mask = torch.zeros(c, t + c, dtype=model.dtype, device=words.device)
        mask[:, t:] = torch.full_like(mask[:, t:], least).fill_diagonal_(0)
        inputs = {
            "input_ids": words[None],
            "position_ids": torch.full_like(words[None], t),
            "attention_mask": mask[None, None],
            "use_cache": True,
            **cache_argument(cache),
        }
        found = output_of(model, self.base.family.stack(model)[self.cut - 1], inputs)
        return found[0], [(layer.keys, layer.values) for layer in cache.layers]


class Reached(Exception):
    """Raised behind the block whose output is wanted, since later ones are not needed."""


def output_of(model: Any, block: Any, inputs: dict[str, Any]) -> Tensor:
    """[1, c, d] output of one block of a model."""
    found: list[Tensor] = []

    def stop(module: Any, args: Any, output: Any) -> None:
        found.append(output if isinstance(output, Tensor) else output[0])
        raise Reached

    handle = block.register_forward_hook(stop)
    try:
        model(**inputs)
    except Reached:
        pass
    finally:
        handle.remove()
    return found[0]
