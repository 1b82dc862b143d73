"""A Markov chain of words, learned from public text, and exact sums over all texts that it can produce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leakboard.bench.attacking.inversion import sample_sources
from leakboard.bench.backbones import Ragged, Tokens

GAMMAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
LEAST, MOST = 1e-4, 0.9
"""Bounds of the share of unseen words."""
KNOWN = 0.9
"""Share of the sources that are counted while the rest chooses the weight."""


@dataclass(frozen=True)
class Smoothing:
    """Weight g of single words against pairs of words, and the share among single words of those that public text lacks."""

    gamma: float = 8.0
    unseen: float = 0.05

    @classmethod
    def of(cls, public: Tokens) -> Smoothing:
        """Both chosen on texts of held-out sources; the defaults if all texts are from one source."""
        part = torch.from_numpy(sample_sources(public, KNOWN))
        if part.all():
            return cls()
        train, rest = (public.take(each.nonzero()[:, 0]).ids for each in (part, ~part))
        words = train.values.unique()  # type: ignore[no-untyped-call]
        new = float((~torch.isin(rest.values, words)).sum()) / (len(rest.values) + len(rest))
        chains = {g: WordChain.counted(train, words, len(words), cls(g, new)) for g in GAMMAS}
        gamma = max(chains, key=lambda g: chains[g].log_likelihood(rest))
        # Of single words they are a larger share, since pairs of words have none.
        before, _ = _steps(rest, words)
        return cls(gamma, min(max(new / float(chains[gamma].backing[before].mean()), LEAST), MOST))


@dataclass(frozen=True)
class WordChain:
    """p(w′|w) = (1 − b(w)) n(w, w′) / n(w) + b(w) p(w′), where b(w) = g v / (n(w) + g v) for v words that follow w.

    States are N words, then one for all words that are not among them, then the boundary of a text.

    Attributes:
        words: [N] token ids, sorted.
        pairs: [N + 2, N + 2] sparse, the first term of p(w′|w).
        backing: [N + 2] b(w).
        shares: [N + 2] p(w).
    """

    words: Tensor
    pairs: Tensor
    backing: Tensor
    shares: Tensor

    @classmethod
    def learned(
        cls, public: Tokens, received: Tensor, vocabulary: int, smoothing: Smoothing
    ) -> WordChain:
        """The chain of public text, with the received words [n] as further states."""
        every = torch.cat([public.ids.values, received.cpu()]).unique()  # type: ignore[no-untyped-call]
        return cls.counted(public.ids, every, vocabulary, smoothing)

    @classmethod
    def counted(
        cls, ids: Ragged, words: Tensor, vocabulary: int, smoothing: Smoothing
    ) -> WordChain:
        """The chain of texts, whose states are given words; other words are counted together."""
        gamma, unseen = smoothing.gamma, smoothing.unseen
        n = len(words) + 2
        before, after = _steps(ids, words)
        pairs, times = (before * n + after).unique(return_counts=True)  # type: ignore[no-untyped-call]
        first, second, times = pairs // n, pairs % n, times.float()
        total = torch.zeros(n).index_add_(0, first, times)
        kinds = torch.bincount(first, minlength=n).float()
        backing = torch.where(total > 0, gamma * kinds / (total + gamma * kinds), torch.ones(()))
        shares = torch.bincount(second, minlength=n).float()
        # Words without occurrences have equal shares; those that are no states have theirs together.
        new = (shares[:-2] == 0).float()
        others = max(vocabulary - len(words), 1)
        shares *= (1 - unseen) / shares.sum()
        shares[:-2] += new * unseen / (float(new.sum()) + others)
        shares[-2] = 1 - shares.sum()
        values = (1 - backing[first]) * times / total[first]
        table = torch.sparse_coo_tensor(
            torch.stack([first, second]), values, (n, n), check_invariants=False
        )
        return cls(words, table.coalesce(), backing, shares)

    def log_likelihood(self, ids: Ragged) -> float:
        """Mean of log p(w′|w) over the words of texts and their ends."""
        before, after = _steps(ids, self.words)
        n = len(self.shares)
        (first, second), values = self.pairs.indices(), self.pairs.values()
        sought, held = before * n + after, first * n + second
        at = torch.searchsorted(held, sought).clamp(max=len(held) - 1)
        counted = torch.where(held[at] == sought, values[at], torch.zeros(()))
        return float((counted + self.backing[before] * self.shares[after]).log().mean())

    def posterior(self, likelihoods: Tensor, lengths: Tensor) -> tuple[Tensor, float]:
        """[n, L, N + 1] p(word | all that was received of its text), and the log-likelihood of all texts.

        Computed by the forward-backward algorithm: sums over all texts, not only over likely ones.

        Args:
            likelihoods: [n, L, N + 1] p(received | word) at each place of n padded texts, up to a factor per place.
            lengths: [n].
        """
        n, longest, _ = likelihoods.shape
        backwards, edge = self.pairs.t().coalesce(), len(self.shares) - 1
        state = torch.zeros(n, edge + 1)
        state[:, edge] = 1
        total, passed = torch.zeros(()), list[Tensor]()
        inside = torch.arange(longest) < lengths[:, None]
        for at in range(longest):
            ahead = torch.sparse.mm(backwards, state.T).T
            ahead = ahead + (state @ self.backing)[:, None] * self.shares
            ahead = torch.cat([ahead[:, :-1] * likelihoods[:, at], torch.zeros(n, 1)], 1)
            norm = ahead.sum(1, keepdim=True)
            total = total + norm[inside[:, at], 0].log().sum()
            state = torch.where(inside[:, at, None], ahead / norm, state)
            passed.append(state)
        # Behind the last word comes the boundary.
        end = self.pairs.index_select(1, torch.tensor([edge])).to_dense()[:, 0]
        end = (end + self.backing * self.shares[edge]).expand(n, -1)
        total = total + (state * end).sum(1).log().sum()
        later, found = end, list[Tensor]()
        for at in range(longest - 1, -1, -1):
            here = passed[at] * later
            found.append((here / here.sum(1, keepdim=True))[:, :-1])
            seen = torch.cat([likelihoods[:, at], torch.zeros(n, 1)], 1) * later
            back = torch.sparse.mm(self.pairs, seen.T).T
            back = back + self.backing * (seen @ self.shares)[:, None]
            back = back / back.sum(1, keepdim=True)
            later = torch.where(inside[:, at, None], back, end)
        return torch.stack(found[::-1], 1), float(total)


def _steps(ids: Ragged, words: Tensor) -> tuple[Tensor, Tensor]:
    """States before and after each step of texts; a text begins and ends at the boundary."""
    edge = len(words) + 1
    at = torch.searchsorted(words, ids.values).clamp(max=len(words) - 1)
    states = torch.where(words[at] == ids.values, at, torch.tensor(len(words)))
    before, after = list[Tensor](), list[Tensor]()
    boundary = torch.tensor([edge])
    for text in _texts(ids.with_values(states)):
        before.append(torch.cat([boundary, text]))
        after.append(torch.cat([text, boundary]))
    return torch.cat(before), torch.cat(after)


def _texts(states: Ragged) -> Sequence[Tensor]:
    return torch.split(states.values, states.lengths.tolist())
