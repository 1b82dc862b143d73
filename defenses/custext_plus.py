"""CusText+: each word is replaced by one of its K nearest words; stop words are sent unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.backbones import Backbone, Neighbours
from leakboard.bench.contracts import Claim
from leakboard.bench.defending import Epsilon, Substituting, draw_words, words_of
from leakboard.bench.methods import Source

MARKS = "Ġ▁"
"""Prefixes that mark the first token of a word in some vocabularies."""
_known: WeakKeyDictionary[Neighbours, dict[int, Tensor]] = WeakKeyDictionary()


class CusTextPlus(Substituting):
    """Replace each word by a word of its set, drawn by the exponential mechanism; stop words stay unchanged.

    The vocabulary is partitioned into sets of words that are near each other. The set of a word is visible; the
    mechanism hides which word of the set it was. Differences to the paper: sets are formed in the order of the
    vocabulary, which is public, instead of frequency in the customer's texts; stop words are those of
    scikit-learn instead of NLTK.
    """

    name: ClassVar[str] = "custext-plus"
    display_name: ClassVar[str] = "CusText+"
    source: ClassVar[Source] = Source(
        "A Customized Text Sanitization Mechanism with Differential Privacy (Chen et al. 2023)",
        "sections 3.2 and 3.3, algorithm 1",
        "https://arxiv.org/abs/2207.01193",
    )
    colour: ClassVar[str] = "#2d2dd2"
    marker: ClassVar[str] = "X"

    epsilon: Epsilon = 1.0
    """ε between two words of a set, above 0; smaller values hide more; "none" replaces no word."""
    size: int = Field(20, ge=2)
    """K, the number of words in a set; the last set may be smaller."""
    stop_words: bool = False
    """Replace stop words, too (CusText without the plus)."""

    def claim(self) -> Claim | None:
        if self.epsilon is None:
            return None
        kept = "" if self.stop_words else " stop words,"
        return Claim(
            guarantee="ε-differential privacy of a word among those of its set",
            parameters={"epsilon": self.epsilon, "words": self.size},
            covers=f"each word, once, and not which set it is in;{kept} special tokens, lengths and labels are "
            "not covered",
            unit="vector",
        )

    def draw_replacements(self, ids: Tensor, base: Backbone, rng: Generator) -> Tensor:
        sets, epsilon = sets_of(base, self.size), self.epsilon
        assert epsilon is not None
        hidden = self._hidden(ids, base)

        def weights(some: Tensor) -> tuple[Tensor, Tensor]:
            return sets[some], nearness_weights(some, sets[some], base.embeddings, epsilon)

        out = ids.clone()
        out[hidden] = draw_words(ids[hidden], weights, rng)
        return out

    def log_chances(self, words: Tensor, base: Backbone) -> Callable[[Tensor], Tensor]:
        assert self.epsilon is not None
        sets, hidden = sets_of(base, self.size)[words], self._hidden(words, base)
        chances = torch.full(sets.shape, -torch.inf, dtype=torch.double)
        chances[hidden] = nearness_weights(
            words[hidden], sets[hidden], base.embeddings, self.epsilon
        ).log()
        sets[~hidden] = -1
        sets[~hidden, 0], chances[~hidden, 0] = words[~hidden], 0.0

        def given(sent: Tensor) -> Tensor:
            found = torch.full((len(sent), len(words)), -torch.inf, dtype=torch.double)
            for some, chance in zip(sets.T, chances.T, strict=True):
                found = torch.where(sent[:, None] == some, chance, found)
            return found

        return given

    def _hidden(self, ids: Tensor, base: Backbone) -> Tensor:
        """[T] True for words that are replaced; a special token that is written in a text has no set."""
        found = sets_of(base, self.size)[ids, 0] >= 0
        return found if self.stop_words else found & ~torch.isin(ids, stop_words(base))


def sets_of(base: Backbone, size: int) -> Tensor:
    """[V, K] the words in the set of each word, including itself; padded with −1.

    In the order of the vocabulary, each word without a set forms one with its nearest words that have none.
    """
    of_size = _known.setdefault(base.neighbours, {})
    if size not in of_size:
        rows = base.embeddings.detach().float().cpu()
        squares, words = rows.square().sum(1), words_of(base)
        sets = torch.full((len(rows), size), -1)
        left = torch.full((len(rows),), torch.inf)
        left[words] = 0.0
        for word in words.tolist():
            if left[word] == 0:
                # Words that already belong to a set get an infinite distance.
                far = squares - 2 * (rows @ rows[word]) + left
                far[word] = -torch.inf
                near = far.topk(min(size, len(far)), largest=False)
                own = near.indices[near.values < torch.inf]
                sets[own, : len(own)] = own
                left[own] = torch.inf
        of_size[size] = sets
    return of_size[size]


def nearness_weights(words: Tensor, sets: Tensor, embeddings: Tensor, epsilon: float) -> Tensor:
    """[n, K] probabilities ∝ exp(ε/2 · u) of each word of its set, with u = (max − d)/(max − min) from 0 to 1.

    The sensitivity of u is 1, so the outputs for two words of a set are ε-indistinguishable.

    Args:
        words: [n] ids; `sets` [n, K] as `sets_of` gives them.
        embeddings: [V, d].
    """
    rows, there = embeddings.detach().float().cpu(), sets >= 0
    far = (rows[sets] - rows[words][:, None]).norm(dim=2).double()
    least = far.masked_fill(~there, torch.inf).amin(1, keepdim=True)
    most = far.masked_fill(~there, -torch.inf).amax(1, keepdim=True)
    u = (most - far) / (most - least).clamp(min=torch.finfo(torch.double).tiny)
    chances: Tensor = (epsilon / 2 * u).masked_fill(~there, -torch.inf).softmax(1)
    return chances


def stop_words(base: Backbone) -> Tensor:
    """Ids of the tokens that are stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    named = base.tokenizer.convert_ids_to_tokens(range(len(base.embeddings)))
    found = [
        i
        for i, name in enumerate(named)
        if name and name.strip(MARKS).lower() in ENGLISH_STOP_WORDS
    ]
    return torch.tensor(found, dtype=torch.long)
