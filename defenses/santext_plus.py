"""SanText+: rare words are always replaced by words near them, frequent words with a small probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import Claim
from leakboard.bench.defending import (
    SEARCHED,
    Epsilon,
    Substituting,
    distances,
    draw_words,
    exponential_weights,
    words_of,
)
from leakboard.bench.methods import Source


class SanTextPlus(Substituting):
    """Replace each sensitive word by a sensitive word drawn by distance, and other words with probability `p`.

    Sensitive words are the rare ones. The paper counts words in the customer's texts, so that the list itself
    reveals something of them; here the order of the tokeniser's vocabulary decides, which is public.
    """

    name: ClassVar[str] = "santext-plus"
    display_name: ClassVar[str] = "SanText+"
    source: ClassVar[Source] = Source(
        "Differential Privacy for Text Analytics via Natural Text Sanitization (Yue et al. 2021)",
        "section 4.2, algorithm 2",
        "https://arxiv.org/abs/2106.01221",
    )
    colour: ClassVar[str] = "#00f05a"
    marker: ClassVar[str] = "P"

    epsilon: Epsilon = 15.0
    """ε per unit of distance, above 0; smaller values hide more; "none" replaces no word."""
    sensitive: float = Field(0.9, gt=0, le=1)
    """w, the share of the vocabulary that is sensitive (the rarest words); 1 is SanText without the plus. The
    paper has 0.9, the default of the released code is 0.5."""
    p: float = Field(0.3, gt=0, le=1)
    """Probability of replacing a word that is not sensitive; 0.2 is the default of the released code."""

    def claim(self) -> Claim | None:
        if self.epsilon is None:
            return None
        if self.sensitive == 1:
            return Claim(
                guarantee="dχ-privacy (Euclidean distance of the word embeddings)",
                parameters={"eta": self.epsilon},
                covers="each token, once; special tokens, lengths and labels are not covered",
                unit="vector",
            )
        return Claim(
            guarantee="utility-optimised dχ-privacy (Euclidean distance of the word embeddings)",
            parameters={"epsilon": self.epsilon, "epsilon_0": -math.log(self.p)},
            covers=f"each word, once, as far as what stands for it is one of the {self.sensitive:.0%} of the "
            "vocabulary that are sensitive; others show what they are, and special tokens, lengths and "
            "labels are not covered",
            unit="vector",
        )

    def draw_replacements(self, ids: Tensor, base: Backbone, rng: Generator) -> Tensor:
        rare = self._rare(base)
        now_and_then = torch.from_numpy(rng.random(len(ids))) < self.p
        hidden = torch.isin(ids, rare) | now_and_then
        epsilon = self.epsilon
        assert epsilon is not None

        def weights(some: Tensor) -> tuple[Tensor, Tensor]:
            return rare, exponential_weights(some, rare, base.embeddings, epsilon)

        out = ids.clone()
        out[hidden] = draw_words(ids[hidden], weights, rng)
        return out

    def log_chances(self, words: Tensor, base: Backbone) -> Callable[[Tensor], Tensor]:
        rare, epsilon = self._rare(base), self.epsilon
        assert epsilon is not None
        often = ~torch.isin(words, rare)
        stays = torch.tensor(1 - self.p).log()

        def scores(some: Tensor, among: Tensor) -> Tensor:
            return -epsilon / 2 * distances(some, among, base.embeddings).cpu()

        totals = [scores(some, rare).logsumexp(1) for some in torch.split(words, SEARCHED)]
        replaced = torch.where(often, math.log(self.p), 0.0) - torch.cat(totals or [torch.zeros(0)])

        def given(sent: Tensor) -> Tensor:
            found = replaced + scores(sent, words)
            found[~torch.isin(sent, rare)] = -torch.inf
            kept = (sent[:, None] == words) & often
            return found.logaddexp(torch.where(kept, stays, -torch.inf))

        return given

    def _rare(self, base: Backbone) -> Tensor:
        """The ids of sensitive words, in their order."""
        words = words_of(base)
        return words[math.floor((1 - self.sensitive) * len(words)) :]
