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
"""Largest ε that is tried."""
GRID, ROUNDS = 65, 4
"""Size of the grid of ε, and number of times that it is refined."""


@cache
def lower_bound(
    right: int, guesses: int, examples: int, profile: Profile, confidence: float
) -> float:
    """Lower bound on ε for mechanisms with a profile of this shape.

    The profile for another ε is the claimed one with every ε scaled in proportion. A bound above the claimed ε
    refutes the claimed profile.

    Args:
        right, guesses, examples: numbers of right guesses, of guesses, and of audited examples.
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
    """[E] True for each ε at which `right` or more right guesses are less likely than 1 − confidence.

    Theorem 9 and algorithm 3 of the paper. Of m examples, c are guessed. Let p_i be the probability of i right
    guesses, r_i = Σ_{j≥i} j·p_j/m and h_i = Σ_{j≥i} (c − j)·p_j/m. Privacy with the trade-off curve f̄ implies
    r_{i+1} ≤ f̄(h_i). Assume that `right` or more guesses are right with probability 1 − confidence. Going down from
    i = `right`, each h_i then has a lower bound. Since r_0 + h_0 = c/m, the assumption is false if the bounds sum to
    more.
    """
    # [P, E]: the maximum over the pairs is then along the first axis, where NumPy is quick.
    levels, deltas = np.array(profile).T[:, :, None]
    factors, rest = np.exp(epsilons / profile[0][0] * levels), 1 - deltas

    def needed(r: Floats) -> Floats:
        """Smallest h with r ≤ f̄(h), where f̄(h) ≤ e^ε·h + δ and 1 − f̄(h) ≥ e^−ε·(1 − δ − h)."""
        h: Floats = np.maximum((r - deltas) / factors, rest - factors * (1 - r)).max(0)
        return h

    rare, guessed = (1 - confidence) / examples, guesses / examples
    r = np.full(len(epsilons), rare * right)
    h = np.full(len(epsilons), rare * (guesses - right))
    for i in range(right - 1, -1, -1):
        larger = np.maximum(h, needed(np.minimum(r, 1)))
        # Both only grow: what is outside stays so, and what has stopped growing has stopped for good.
        if ((larger == h) | (r + h > guessed)).all():
            break
        r, h = r + i / (guesses - i) * (larger - h), larger
    outside: NDArray[np.bool_] = r + h > guessed
    return outside
