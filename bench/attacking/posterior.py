"""Posterior of original tokens given replaced tokens, for text-to-text mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from operator import mul

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

SMOOTHING = 0.5
"""Added to the count of every token: public text does not hold all of them."""
STEPS = 12
"""Of L-BFGS, at most; five numbers are fitted."""
CHUNK = 512
"""Received tokens weighed at once against all candidates."""
MOST = 4000
"""Tokens that enter the bound, the most frequent ones; leaving others out can only raise it."""


@dataclass(frozen=True)
class Posterior:
    """log p(x | y₁ … y_R) ∝ w log p(x) + Σ log p(y_r | x), with p(x) from public text.

    The mechanism says how likely y is for x, but not in closed form: which row is nearest to a noisy one
    depends on all rows around it. What counts for the comparison of one x with another is near enough to

        log p(y | x) = −a d(x, y) − b d(x, y)² + s [x = y] − u ‖x‖² + (what depends on y alone),

    whose four numbers, and w, are those under which public tokens are likeliest given what the
    mechanism made of them.

    Attributes:
        rows: [V, d] embeddings, of mean norm 1.
        log_prior: [V].
        weights: [5] w, a, b, s and u.
        known: [K] token ids that occur in public text. Candidates are these and what arrived.
    """

    rows: Tensor
    log_prior: Tensor
    weights: Tensor
    known: Tensor

    @classmethod
    def fitted(cls, embeddings: Tensor, counts: Tensor, truth: Tensor, sent: Tensor) -> Posterior:
        """From pairs of public tokens and what the mechanism made of each.

        Args:
            embeddings: [V, d].
            counts: [V] occurrences in public text.
            truth: [n] token ids; `sent` [n] those that stand for them.
        """
        rows = embeddings / embeddings.norm(dim=1).mean()
        prior = (counts + SMOOTHING).log().to(rows)
        start = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]).to(rows)
        truth, sent = truth.to(rows.device), sent.to(rows.device)
        known = counts.nonzero()[:, 0].to(rows.device)
        # What public text lacks belongs to it here, or the fit would not know that such tokens are sent.
        every: Tensor = torch.cat([known, truth]).unique()  # type: ignore[no-untyped-call]
        plain = cls(rows, prior - prior.logsumexp(0), start, every)
        terms = plain._terms(sent)
        place = torch.searchsorted(every, truth)
        place[truth == sent] = len(every)
        weights = start.clone().requires_grad_()
        optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

        def loss() -> float:
            optimiser.zero_grad()
            found = cross_entropy(sum(map(mul, weights, terms[1:]), terms[0]), place)
            found.backward()  # type: ignore[no-untyped-call]
            return found.item()

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        return replace(plain, weights=weights.detach(), known=known)

    def read(self, received: Tensor) -> Tensor:
        """[T] the most probable token behind what stands for it in each of R rounds [T, R]."""
        different, inverse = received.to(self.rows.device).unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        best = []
        for part in different.split(CHUNK):
            candidates = torch.cat([self.known.expand(len(part), -1), part], 1)
            best.append(candidates.gather(1, self._scores(part).argmax(1, keepdim=True))[:, 0])
        return torch.cat(best)[inverse].cpu()

    def _scores(self, received: Tensor) -> Tensor:
        """[t, K + R] log-probabilities of the tokens that are known and of those that arrived in R rounds.

        Up to a constant per row: the prior once, each round's likelihood.
        """
        w, a, b, s, u = self.weights.tolist()
        prior, norms = w * self.log_prior, u * self._norms
        known, own = prior[self.known].repeat(len(received), 1), prior[received]
        for column in received.T:
            told, row = column.unique(return_inverse=True)
            squared = self._distances(told)
            found = -b * squared - norms[self.known] - squared.sqrt_().mul_(a)
            # It stands among those that arrived, at a distance of 0 that no rounding blurs.
            found[self.known == told[:, None]] = -inf
            known += found[row]
            squared = (self.rows[received] - self.rows[column][:, None]).square().sum(2)
            same = received == column[:, None]
            own += s * same - a * squared.sqrt() - b * squared - norms[received]
        return torch.cat([known, own], 1)

    def _distances(self, received: Tensor) -> Tensor:
        """[n, K] squared, from each of n received tokens to those that are known."""
        one, other = self.rows[received], self.rows[self.known]
        squared = torch.addmm(self._norms[self.known], one, other.T, alpha=-2)
        return squared.add_(self._norms[received, None]).clamp_(min=0)

    @cached_property
    def _norms(self) -> Tensor:
        """[V] squared."""
        return self.rows.square().sum(1)

    def _terms(self, sent: Tensor) -> list[Tensor]:
        """What `_scores` adds up for one round, each [n, K + 1]: what is no candidate, then by weight."""
        zeros = torch.zeros(len(sent), 1).to(self.rows)
        squared = torch.cat([self._distances(sent), zeros], 1)
        twice = torch.cat([self.known == sent[:, None], zeros > 0], 1)
        candidates = torch.cat([self.known.expand(len(sent), -1), sent[:, None]], 1)
        same = torch.zeros_like(squared)
        same[:, -1] = 1
        never = torch.zeros_like(squared).masked_fill_(twice, -inf)
        return [
            never,
            self.log_prior[candidates],
            -squared.sqrt(),
            -squared,
            same,
            -self._norms[candidates],
        ]


@dataclass(frozen=True)
class StatedPosterior:
    """log p(x | y₁ … y_R) = log p(x) + Σ log p(y_r | x), where the mechanism states p(y | x) itself.

    Attributes:
        chances: words [K] → of ids [n] that were sent the log-probabilities [n, K] that each word gives them.
        log_prior: [V].
        known: [K] token ids that occur in public text. Candidates are these and what arrived.
    """

    chances: Callable[[Tensor], Callable[[Tensor], Tensor]]
    log_prior: Tensor
    known: Tensor

    @classmethod
    def of(
        cls, chances: Callable[[Tensor], Callable[[Tensor], Tensor]], counts: Tensor
    ) -> StatedPosterior:
        """With the prior from [V] occurrences in public text."""
        prior = (counts + SMOOTHING).double()
        return cls(chances, (prior / prior.sum()).log(), counts.nonzero()[:, 0])

    def read(self, received: Tensor) -> Tensor:
        """[T] the most probable token behind what stands for it in each of R rounds [T, R]."""
        different, inverse = received.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        new = different[~torch.isin(different, self.known)].unique()
        words = torch.cat([self.known, new])
        parts = self._of_known, self.chances(new)
        best = []
        for part in different.split(CHUNK):
            scores = self.log_prior[words].repeat(len(part), 1)
            for column in part.T:
                scores += torch.cat([given(column) for given in parts], 1)
            best.append(words[scores.argmax(1)])
        return torch.cat(best)[inverse]

    @cached_property
    def _of_known(self) -> Callable[[Tensor], Tensor]:
        return self.chances(self.known)


def posterior_bound(embeddings: Tensor, counts: Tensor, eta: float) -> float:
    """The largest success that dχ-privacy with parameter η leaves to who knows how frequent tokens are.

    It is about single tokens x with prior p. dχ-privacy says P(y|x) ≤ exp(η d(x, x′)) P(y|x′), so
    that P(y) ≥ P(y|x) s(x) with s(x) = Σ p(x′) exp(−η d(x, x′)). Who answers x on a set of outputs
    whose probability is q(x) is therefore right with probability p(x) P(set|x) ≤ p(x) min(1, q(x)/s(x)), and
    the q(x) add up to 1: the best he can hope for is to spend them where p/s is largest.

    Nobody whose guess depends on y alone does better; the context of a token is another matter. For R
    independent observations of the same token the parameter is R η.

    Args:
        embeddings: [V, d].
        counts: [V] occurrences, of which p are the shares.
    """
    share = (counts / counts.sum()).double().to(embeddings.device)
    top = share.argsort(descending=True, stable=True)[:MOST]
    top = top[share[top] > 0]
    p = share[top]
    near = torch.cdist(embeddings[top].double(), embeddings[top].double())
    s = ((-eta * near).exp() * p).sum(1).maximum(p)
    order = (p / s).argsort(descending=True, stable=True)
    p, s = p[order], s[order]
    before = s.cumsum(0) - s
    spent = ((1 - before) / s).clamp(0, 1)
    rare = float(1 - p.sum())  # of these nothing is said
    return min(1.0, float((p * spent).sum()) + rare)
