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
"""Added to the count of every token, since some do not occur in public text."""
STEPS = 12
"""Largest number of steps of L-BFGS, which fits five numbers."""
CHUNK = 512
"""Number of received tokens that are compared at once with all candidates."""
MOST = 4000
"""Number of tokens in the bound, the most frequent ones; leaving out others can only raise it."""


@dataclass(frozen=True)
class Posterior:
    """log p(x | y₁ … y_R) ∝ w log p(x) + Σ log p(y_r | x), with p(x) from public text.

    p(y | x) has no closed form, since the nearest row to a noisy vector depends on all rows around it. It is
    approximated by

        log p(y | x) = −a d(x, y) − b d(x, y)² + s [x = y] − u ‖x‖² + (a term that depends on y only).

    w, a, b, s and u maximise the likelihood of public tokens given their simulated replacements.

    Attributes:
        rows: [V, d] embeddings, scaled to mean norm 1.
        log_prior: [V] log-probabilities in public text.
        weights: [5] w, a, b, s and u.
        known: [K] token ids that occur in public text. Candidates are these and the received tokens.
    """

    rows: Tensor
    log_prior: Tensor
    weights: Tensor
    known: Tensor

    @classmethod
    def fitted(cls, embeddings: Tensor, counts: Tensor, truth: Tensor, sent: Tensor) -> Posterior:
        """A posterior fitted on pairs of public tokens and their replacements.

        Args:
            embeddings: [V, d].
            counts: [V] occurrences in public text.
            truth: [n] token ids.
            sent: [n] their replacements by the mechanism.
        """
        rows = embeddings / embeddings.norm(dim=1).mean()
        prior = (counts + SMOOTHING).log().to(rows)
        start = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]).to(rows)
        truth, sent = truth.to(rows.device), sent.to(rows.device)
        known = counts.nonzero()[:, 0].to(rows.device)
        # Includes tokens without occurrences in public text, so that the fit knows that such tokens are sent.
        every: Tensor = torch.cat([known, truth]).unique()  # type: ignore[no-untyped-call]
        plain = cls(rows, prior - prior.logsumexp(0), start, every)
        terms = plain._terms(sent)
        place = torch.searchsorted(every, truth)
        place[truth == sent] = len(every)
        weights = start.clone().requires_grad_()
        optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

        def loss() -> float:
            optimiser.zero_grad()
            entropy = cross_entropy(sum(map(mul, weights, terms[1:]), terms[0]), place)
            entropy.backward()  # type: ignore[no-untyped-call]
            return entropy.item()

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        return replace(plain, weights=weights.detach(), known=known)

    def read(self, received: Tensor) -> Tensor:
        """[T, R] most probable original tokens, given the replacements in R rounds [T, R]; the likeliest first."""
        different, inverse = received.to(self.rows.device).unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        best = []
        for part in different.split(CHUNK):
            candidates = torch.cat([self.known.expand(len(part), -1), part], 1)
            chosen = self._scores(part).topk(part.shape[1], 1).indices
            best.append(candidates.gather(1, chosen))
        return torch.cat(best)[inverse].cpu()

    def _scores(self, received: Tensor) -> Tensor:
        """[t, K + R] log-probabilities, up to a constant per row, of known tokens and of those received in R rounds."""
        w, a, b, s, u = self.weights.tolist()
        prior, norms = w * self.log_prior, u * self._norms
        known_scores, received_scores = prior[self.known].repeat(len(received), 1), prior[received]
        for column in received.T:
            words, row = column.unique(return_inverse=True)
            squared = self._distances(words)
            scores = -b * squared - norms[self.known] - squared.sqrt_().mul_(a)
            # The received token is a candidate of its own, with an exact distance of 0.
            scores[self.known == words[:, None]] = -inf
            known_scores += scores[row]
            squared = (self.rows[received] - self.rows[column][:, None]).square().sum(2)
            same = received == column[:, None]
            received_scores += s * same - a * squared.sqrt() - b * squared - norms[received]
        for r in range(1, received.shape[1]):  # a word that was received before is one candidate
            again = (received[:, :r] == received[:, r, None]).any(1)
            received_scores[again, r] = -inf
        return torch.cat([known_scores, received_scores], 1)

    def _distances(self, received: Tensor) -> Tensor:
        """[n, K] squared distances from received tokens to known tokens."""
        sent, candidates = self.rows[received], self.rows[self.known]
        squared = torch.addmm(self._norms[self.known], sent, candidates.T, alpha=-2)
        return squared.add_(self._norms[received, None]).clamp_(min=0)

    @cached_property
    def _norms(self) -> Tensor:
        """[V] squared norms."""
        return self.rows.square().sum(1)

    def _terms(self, sent: Tensor) -> list[Tensor]:
        """Terms of `_scores` for one round, each [n, K + 1]: the mask of non-candidates, then one term per weight."""
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
    """log p(x | y₁ … y_R) = log p(x) + Σ log p(y_r | x) for mechanisms that state p(y | x).

    Attributes:
        chances: function of words [K] that returns a function from sent ids [n] to log-probabilities [n, K].
        log_prior: [V] log-probabilities in public text.
        known: [K] token ids that occur in public text. Candidates are these and the received tokens.
    """

    chances: Callable[[Tensor], Callable[[Tensor], Tensor]]
    log_prior: Tensor
    known: Tensor

    @classmethod
    def of(
        cls, chances: Callable[[Tensor], Callable[[Tensor], Tensor]], counts: Tensor
    ) -> StatedPosterior:
        """A posterior with the prior from [V] occurrences in public text."""
        prior = (counts + SMOOTHING).double()
        return cls(chances, (prior / prior.sum()).log(), counts.nonzero()[:, 0])

    def read(self, received: Tensor) -> Tensor:
        """[T, R] most probable original tokens, given the replacements in R rounds [T, R]; the likeliest first."""
        different, inverse = received.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        new = different[~torch.isin(different, self.known)].unique()
        words = torch.cat([self.known, new])
        parts = self._of_known, self.chances(new)
        best = []
        for part in different.split(CHUNK):
            scores = self.log_prior[words].repeat(len(part), 1)
            for column in part.T:
                scores += torch.cat([given(column) for given in parts], 1)
            best.append(words[scores.topk(min(part.shape[1], len(words)), 1).indices])
        return torch.cat(best)[inverse]

    @cached_property
    def _of_known(self) -> Callable[[Tensor], Tensor]:
        return self.chances(self.known)


def posterior_bound(embeddings: Tensor, counts: Tensor, eta: float, guesses: int = 1) -> float:
    """Upper bound on the success of guesses about single tokens x with prior p under dχ-privacy with parameter η.

    dχ-privacy means P(y|x) ≤ exp(η d(x, x′)) P(y|x′), so P(y) ≥ P(y|x) s(x) with s(x) = Σ p(x′) exp(−η d(x, x′)).
    If the attacker answers x on outputs of total probability q(x), it is right with probability at most
    p(x) min(1, q(x)/s(x)). Since the q(x) sum to the number of guesses, the bound spends them where p/s is largest.

    The bound holds for guesses that depend on y only, not on the context. For R independent observations of one token,
    the parameter is R η.

    Args:
        embeddings: [V, d].
        counts: [V] occurrences, of which p are the shares.
        guesses: number of different answers about each token, any of which may be right.
    """
    share = (counts / counts.sum()).double()
    top = share.argsort(descending=True, stable=True)[:MOST]
    top = top[share[top] > 0]
    p = share[top]
    rows = embeddings[top.to(embeddings.device)].cpu().double()
    near = torch.cdist(rows, rows)
    s = ((-eta * near).exp() * p).sum(1).maximum(p)
    order = (p / s).argsort(descending=True, stable=True)
    p, s = p[order], s[order]
    before = s.cumsum(0) - s
    spent = ((guesses - before) / s).clamp(0, 1)
    rare = float(1 - p.sum())  # tokens outside of the bound count as read
    return min(1.0, float((p * spent).sum()) + rare)
