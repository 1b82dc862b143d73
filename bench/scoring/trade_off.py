"""Audit of a whole privacy profile by membership guesses from one training run.

Mahloujifar, Melis and Chaudhuri 2025, "Auditing f-differential privacy in one run". A mechanism that satisfies many
pairs (ε, δ) allows far fewer right guesses than a single pair: 1,000 right guesses do not refute ε = 8 alone, but
500 refute the profile of a Gaussian mechanism with ε = 8.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Profile = tuple[tuple[float, float], ...]
"""(ε, δ) pairs that a mechanism satisfies at once; the first one is the claim."""

LARGEST = 50.0
"""ε beyond this cannot be told: a guess is then wrong once in e^50 times."""
GRID, ROUNDS = 65, 4
"""Values of ε that are tried at a time, each time inside the step that decides."""


@cache
def lower_bound(
    right: int, guesses: int, examples: int, profile: Profile, confidence: float
) -> float:
    """The ε below which a mechanism of such a profile would have allowed so many right guesses too rarely.

    The profile for another ε is the claimed one, with every ε of it in proportion. A bound above the
    claim refutes the claimed profile itself, whatever the mechanism is.

    Args:
        right: guesses that were right, of `guesses` that were made about `examples`.
    """
    low, high = 0.0, LARGEST
    for _ in range(ROUNDS):
        tried = np.linspace(low, high, GRID)
        no = refuted(tried, right, guesses, examples, profile, confidence)
        first = int(np.argmin(no)) if not no.all() else GRID - 1
        low, high = float(tried[max(0, first - 1)]), float(tried[first])
    return low


def refuted(
    epsilons: Floats, right: int, guesses: int, examples: int, profile: Profile, confidence: float
) -> NDArray[np.bool_]:
    """[E] whether each ε is out of the question: `right` or more right guesses are too rare.

    Theorem 9 and algorithm 3 of the paper. Of m examples let p_i be the probability of i right guesses of
    c, r_i = Σ_{j≥i} j·p_j/m and h_i = Σ_{j≥i} (c − j)·p_j/m. That a random example is guessed right while
    others are, too, is by its coin alone at most as much likelier as the curve f̄ allows than that it
    is guessed wrong while the same others are right: r_{i+1} ≤ f̄(h_i). Suppose that `right` guesses or more
    have the probability 1 − confidence. Going down from there each h_i has to be large enough; where
    r_0 + h_0, which is c/m, comes out larger, that was too much to suppose.
    """
    claimed = profile[0][0]
    pairs = np.array(profile)
    factors = np.exp(epsilons[:, None] / claimed * pairs[:, 0])
    deltas = pairs[:, 1]

    def needed(r: Floats) -> Floats:
        """The smallest h with r ≤ f̄(h), where f̄(h) ≤ e^ε·h + δ and 1 − f̄(h) ≥ e^−ε·(1 − δ − h)."""
        steep = (r[:, None] - deltas) / factors
        flat = 1 - deltas - factors * (1 - r[:, None])
        found: Floats = np.maximum(steep, flat).max(1).clip(0)
        return found

    rare = (1 - confidence) / examples
    r = np.full(len(epsilons), rare * right)
    h = np.full(len(epsilons), rare * (guesses - right))
    for i in range(right - 1, -1, -1):
        larger = np.maximum(h, needed(np.minimum(r, 1)))
        if (larger == h).all():
            break
        r, h = r + i / (guesses - i) * (larger - h), larger
    outside: NDArray[np.bool_] = r + h > guesses / examples
    return outside
