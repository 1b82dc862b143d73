"""Audit of differential privacy by membership guesses from one training run, and ROC metrics.

Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run". Claims with a profile are audited by
`leakboard.bench.scoring.trade_off`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, expit

from leakboard.bench.contracts import Claim, Estimate, LeakboardError
from leakboard.bench.scoring import roc, trade_off
from leakboard.bench.scoring.trade_off import LARGEST, Profile

CONFIDENCE = 0.95
STEP = 0.25
"""Step between the values of ε that are tried before bisection."""


def p_value(right: int, guesses: int, examples: int, epsilon: float, delta: float) -> float:
    """Largest probability that an (ε, δ)-private mechanism allows `right` or more right guesses.

    Theorem 5.2 of the paper. A fair coin decides for each example whether it is a member. An attack guesses
    `guesses` of them from the result and abstains on the others. With W ~ Bin(guesses, e^ε/(1 + e^ε)), the
    probability is at most

        P[W ≥ right] + 2 δ · examples · max_{i ≥ 1} P[right − i ≤ W < right]/i.
    """
    q = expit(epsilon)
    value = float(bdtrc(right - 1, guesses, q))  # P[W > right − 1]
    if delta > 0 and right > 0:
        back = np.arange(1, right + 1)
        within = bdtrc(right - 1 - back, guesses, q) - value
        value += 2 * delta * examples * float((within / back).max())
    return min(value, 1.0)


def lower_bound(
    right: int, guesses: int, examples: int, delta: float = 0.0, confidence: float = CONFIDENCE
) -> float:
    """Lower bound on ε: smaller values would allow so many right guesses too rarely.

    0 if the guesses prove nothing; at most `LARGEST`.

    Args:
        right, guesses, examples: numbers of right guesses, of guesses, and of audited examples.
        delta: δ of the audited claim.

    Raises:
        LeakboardError: impossible counts.
    """
    if not 0 <= right <= guesses <= examples:
        raise LeakboardError(
            f"expected right ≤ guesses ≤ examples, not {right}, {guesses}, {examples}"
        )
    if not 0 <= delta < 1:
        raise LeakboardError(f"delta: expected a number in [0, 1), not {delta}")

    def refuted(epsilon: float) -> bool:
        return p_value(right, guesses, examples, epsilon, delta) <= 1 - confidence

    # The result is the smallest ε that is not refuted. With δ > 0 the p-value need not grow with ε, so steps
    # search upwards before the bisection.
    high = 0.0
    while refuted(high):
        if high >= LARGEST:
            return LARGEST
        high += STEP
    low = max(0.0, high - STEP)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def audit(
    scores: NDArray[Any],
    member: NDArray[Any],
    delta: float = 0.0,
    profile: Profile = (),
    guesses: Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
) -> float:
    """Lower bound on ε from scores of examples that were members by fair coins.

    The k examples with the highest scores are guessed to be members, and the k with the lowest to be none. If
    several k are tried, each bound has confidence 1 − (1 − confidence)/tries, so that the largest one is valid
    (union bound).

    Args:
        scores: [m] higher for likelier members.
        member: [m] True for members.
        delta: δ of the audited claim.
        profile: privacy profile of the claim, which is tested instead of (ε, δ) if it is not empty.
        guesses: values of k; by default m/2, m/8 and m/32, or m/2, m/4 and m/8 with a profile.

    Raises:
        LeakboardError: lengths differ, or a k is not in 1…m/2.
    """
    counts, each = _counted(scores, member, guesses, confidence, profile)
    return max(_bound(*count, delta, profile, each) for count in counts)


def exceeds(
    epsilon: float,
    scores: NDArray[Any],
    member: NDArray[Any],
    delta: float = 0.0,
    profile: Profile = (),
) -> bool:
    """Whether `audit` gives more than ε. With a profile this takes a fraction of the time."""
    if not profile:
        return audit(scores, member, delta) > epsilon
    counts, each = _counted(scores, member, None, CONFIDENCE, profile)
    return any(trade_off.refuted(np.array([epsilon]), *n, profile, each).all() for n in counts)


@cache
def ceiling(
    examples: int, delta: float = 0.0, profile: Profile = (), confidence: float = CONFIDENCE
) -> float:
    """Largest bound that `audit` can give with so many examples, from only right guesses.

    An audit whose ceiling is below the claimed ε cannot refute the claim. For 1,000 examples and δ = 1.9e-4 the
    ceiling is 4.13; with the profile of DP-SGD at ε = 8 it is above 8.

    Raises:
        LeakboardError: fewer than two examples.
    """
    tried, each = _tries(examples, None, confidence, profile)
    return max(_bound(2 * k, 2 * k, examples, delta, profile, each) for k in tried)


def claim_terms(claim: Claim | None) -> tuple[float, Profile]:
    """δ and profile of a claim; 0 and () without a claim."""
    if claim is None:
        return 0.0, ()
    return claim.parameters.get("delta", 0.0), claim.profile


def _bound(
    right: int, guesses: int, examples: int, delta: float, profile: Profile, confidence: float
) -> float:
    if profile:
        return trade_off.lower_bound(right, guesses, examples, profile, confidence)
    return lower_bound(right, guesses, examples, delta, confidence)


def _counted(
    scores: NDArray[Any],
    member: NDArray[Any],
    guesses: Sequence[int] | None,
    confidence: float,
    profile: Profile,
) -> tuple[list[tuple[int, int, int]], float]:
    """For each k the numbers of right guesses, of guesses and of examples; and the confidence of each bound."""
    scores, member = roc.checked(scores, member)
    m = len(scores)
    tried, each = _tries(m, guesses, confidence, profile)
    order = np.argsort(scores, kind="stable")
    right = [int(member[order[m - k :]].sum() + (~member[order[:k]]).sum()) for k in tried]
    return [(n, 2 * k, m) for n, k in zip(right, tried, strict=True)], each


def _tries(
    m: int, guesses: Sequence[int] | None, confidence: float, profile: Profile
) -> tuple[list[int], float]:
    """Values of k, and the confidence of each bound."""
    parts = (2, 4, 8) if profile else (2, 8, 32)
    tried = sorted(set(guesses or [m // part for part in parts if m // part]))
    if not tried or tried[0] < 1 or 2 * tried[-1] > m:
        raise LeakboardError(f"guesses: expected numbers from 1 to {m // 2}, not {tried}")
    return tried, 1 - (1 - confidence) / len(tried)


def auc(scores: NDArray[Any], member: NDArray[Any]) -> Estimate:
    """Area under the ROC curve; 0.5 by chance. Directed: higher scores mean members.

    Args:
        scores, member: [m] as in `audit`.

    Raises:
        LeakboardError: lengths differ, or all are members, or none.
    """
    return roc.estimate(roc.area, scores, member, 0.5)


def tpr_at(fpr: float, scores: NDArray[Any], member: NDArray[Any]) -> Estimate:
    """True positive rate at a false positive rate of at most `fpr`, which is also chance; errors as in `auc`.

    With fewer than 1/fpr non-members, no false positive is allowed.
    """
    return roc.estimate(roc.share_at(fpr), scores, member, fpr)
