"""What a token was, from the one that stands for it: Bayes' rule for text-to-text mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
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
        weights: [5] of what `_terms` gives.
        known: [K] token ids that occur in public text; others are candidates only where they arrive.
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
        plain = cls(rows, prior - prior.logsumexp(0), start, counts.nonzero()[:, 0].to(rows.device))
        among = plain.candidates(torch.cat([truth, sent]))
        terms = plain._terms(sent, among)
        place = torch.searchsorted(among.ids, truth.to(among.ids.device))
        weights = start.clone().requires_grad_()
        optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

        def loss() -> float:
            optimiser.zero_grad()
            found = cross_entropy(sum(map(mul, weights, terms), torch.zeros(())), place)
            found.backward()  # type: ignore[no-untyped-call]
            return found.item()

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        return cls(plain.rows, plain.log_prior, weights.detach(), plain.known)

    def candidates(self, received: Tensor) -> Candidates:
        """Those that are known, and those that arrived."""
        both = torch.cat([self.known, received.flatten().to(self.known.device)])
        ids: Tensor = both.unique()  # type: ignore[no-untyped-call]
        return Candidates(ids, self.rows[ids], self.rows[ids].square().sum(1))

    def read(self, received: Tensor) -> Tensor:
        """[T] the most probable token behind what stands for it in each of R rounds [T, R]."""
        among = self.candidates(received)
        different, inverse = received.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        best = [among.ids[self._scores(part, among).argmax(1)] for part in different.split(CHUNK)]
        return torch.cat(best).cpu()[inverse]

    def _scores(self, received: Tensor, among: Candidates) -> Tensor:
        """[t, C] log-probabilities up to a constant per row: the prior once, each round's likelihood."""
        w, a, b, s, u = self.weights.tolist()
        total: Tensor = (w * self.log_prior[among.ids]).repeat(len(received), 1)
        for column in received.T:
            told, row = column.unique(return_inverse=True)
            squared, place = among.distances(told.to(total.device))
            found = -b * squared - u * among.norms - squared.sqrt_().mul_(a)
            found[range(len(place)), place] += s
            total += found[row]
        return total

    def _terms(self, received: Tensor, among: Candidates) -> list[Tensor]:
        """Log prior, −distance, −distance², whether the same, −‖x‖²: each [n, C] or [1, C]."""
        squared, place = among.distances(received.to(among.ids.device))
        same = torch.zeros_like(squared)
        same[range(len(place)), place] = 1
        prior = self.log_prior[among.ids][None]
        return [prior, -squared.sqrt(), -squared, same, -among.norms[None]]


@dataclass(frozen=True)
class Candidates:
    """Tokens that may stand behind what arrived.

    Attributes:
        ids: [C] sorted.
        rows: [C, d] their embeddings, of squared length `norms` [C].
    """

    ids: Tensor
    rows: Tensor
    norms: Tensor

    def distances(self, received: Tensor) -> tuple[Tensor, Tensor]:
        """[n, C] squared, from each of n received tokens, which are candidates, and [n] where they stand."""
        place = torch.searchsorted(self.ids, received)
        squared = torch.addmm(self.norms, self.rows[place], self.rows.T, alpha=-2)
        squared.add_(self.norms[place, None]).clamp_(min=0)
        # Exactly 0 there: rounding would add a distance where there is none.
        squared[range(len(place)), place] = 0
        return squared, place


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
