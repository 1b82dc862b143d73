"""Audit of differential privacy by membership guesses from one training run, and ROC metrics.

Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run". Claims with a profile are audited by
`leakboard.bench.scoring.trade_off`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, expit

from leakboard.bench.contracts import Claim, Estimate, Ints, LeakboardError
from leakboard.bench.scoring import trade_off
from leakboard.bench.scoring.metrics import RESAMPLES, wilson
from leakboard.bench.scoring.trade_off import LARGEST, Profile

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
STEP = 0.25
"""Step between the values of ε that are tried before bisection."""


def p_value(right: int, guesses: int, examples: int, epsilon: float, delta: float) -> float:
    """Largest probability that an (ε, δ)-private mechanism allows `right` or more right guesses.

    Theorem 5.2 of the paper: each example was in or out by a fair coin of its own; from the result
    alone `guesses` of them are guessed and the others abstained from. With W ~ Bin(guesses,
    e^ε/(1 + e^ε)), the probability is at most

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
        right: guesses that were right, of `guesses` that were made about `examples`.
        delta: δ of the claim that is audited.

    Raises:
        LeakboardError: counts that cannot be.
    """
    if not 0 <= right <= guesses <= examples:
        raise LeakboardError(
            f"expected right ≤ guesses ≤ examples, not {right}, {guesses}, {examples}"
        )
    if not 0 <= delta < 1:
        raise LeakboardError(f"delta: expected a number in [0, 1), not {delta}")

    def refuted(epsilon: float) -> bool:
        return p_value(right, guesses, examples, epsilon, delta) <= 1 - confidence

    # The first ε that is not refuted. Not the last: with δ > 0 the bound need not grow with ε, and
    # a second chance to refute a true ε would cost confidence. Hence steps before the bisection.
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
    """Lower bound on ε from scores of examples that were in the training set by fair coins.

    The k examples of the highest scores are guessed to be in and the k of the lowest to be out; on
    the others it abstains. k is fixed before the scores are seen, or several are tried, and then each
    at confidence 1 − (1 − confidence)/tries, so that the largest bound still holds (union bound).

    Args:
        scores: [m] higher for those that seem to have been trained on.
        member: [m] whether they were.
        delta: δ of the claim that is audited.
        profile: of the claim, if it has one, which then is what is tested.
        guesses: the numbers k that are tried; by default m/2, m/8 and m/32, of a profile m/4 and not m/32.

    Raises:
        LeakboardError: lengths that differ, or a k that is not in 1…m/2.
    """
    scores, member = _checked(scores, member)
    m = len(scores)
    tried, each = _tries(m, guesses, confidence, profile)
    order = np.argsort(scores, kind="stable")
    right = [int(member[order[m - k :]].sum() + (~member[order[:k]]).sum()) for k in tried]
    return max(_bound(n, 2 * k, m, delta, profile, each) for n, k in zip(right, tried, strict=True))


@cache
def ceiling(
    examples: int, delta: float = 0.0, profile: Profile = (), confidence: float = CONFIDENCE
) -> float:
    """The bound that `audit` gives a perfect attacker, who guesses every coin right.

    No attack on so many examples can prove more: an audit whose ceiling lies below the claimed ε
    cannot fail, whatever the mechanism does. 1,000 examples at δ = 1.9e-4 come to 4.13, and to more than
    8 by the profile of DP-SGD at ε = 8.

    Raises:
        LeakboardError: fewer than two examples.
    """
    tried, each = _tries(examples, None, confidence, profile)
    return max(_bound(2 * k, 2 * k, examples, delta, profile, each) for k in tried)


def claim_terms(claim: Claim | None) -> tuple[float, Profile]:
    """δ and profile by which a claim is audited; 0 and () without a claim."""
    if claim is None:
        return 0.0, ()
    return claim.parameters.get("delta", 0.0), claim.profile


def _bound(
    right: int, guesses: int, examples: int, delta: float, profile: Profile, confidence: float
) -> float:
    if profile:
        return trade_off.lower_bound(right, guesses, examples, profile, confidence)
    return lower_bound(right, guesses, examples, delta, confidence)


def _tries(
    m: int, guesses: Sequence[int] | None, confidence: float, profile: Profile
) -> tuple[list[int], float]:
    """The numbers k that are tried, and the confidence of each."""
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
        LeakboardError: lengths that differ, or only members, or none.
    """
    # Rounded, since groups that are parted entirely must come to exactly 1, and not to 1 − 10⁻¹⁶.
    return _estimate(lambda fpr, tpr: round(float(np.trapezoid(tpr, fpr)), 12), scores, member, 0.5)


def tpr_at(fpr: float, scores: NDArray[Any], member: NDArray[Any]) -> Estimate:
    """Largest share of members found while at most `fpr` of the others are taken for members.

    Fewer than 1/fpr others allow no error at all, and it is then the share above all of them.
    Chance is `fpr`.

    Raises:
        LeakboardError: as for `auc`.
    """

    return _estimate(lambda false, tpr: float(tpr[false <= fpr].max()), scores, member, fpr)


def _estimate(
    value: Callable[[Floats, Floats], float],
    scores: NDArray[Any],
    member: NDArray[Any],
    chance: float,
) -> Estimate:
    """A value of the ROC curve, false and true positive rates from (0, 0) to (1, 1), of scores [m].

    The interval is a percentile bootstrap over examples, members and others each among themselves.
    At 0 or 1 it would have no spread; Wilson's interval over the smaller group stands instead.
    """
    scores, member = _checked(scores, member)
    levels, level = np.unique(-scores, return_inverse=True)  # equal scores share a point
    inside, outside = (np.bincount(level[i], minlength=len(levels)) for i in (member, ~member))
    n_in, n_out = int(inside.sum()), int(outside.sum())
    if not n_in or not n_out:
        raise LeakboardError("membership: expected examples that were trained on, and others")

    def of(inside: Ints, outside: Ints) -> float:
        tpr, fpr = (np.concatenate([[0], of.cumsum()]) for of in (inside, outside))
        return value(fpr / n_out, tpr / n_in)

    measured = of(inside, outside)
    if measured in (0.0, 1.0):
        fewest = min(n_in, n_out)
        low, high = wilson(int(measured) * fewest, fewest)
    else:
        rng = np.random.default_rng(0)  # an interval is a function of the scores
        p_in, p_out = inside / n_in, outside / n_out
        drawn = [
            of(rng.multinomial(n_in, p_in), rng.multinomial(n_out, p_out)) for _ in range(RESAMPLES)
        ]
        low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(
        value=measured, low=float(low), high=float(high), n=len(scores), chance=float(chance)
    )


def _checked(scores: NDArray[Any], member: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    scores, member = np.asarray(scores, dtype=np.float64), np.asarray(member, dtype=bool)
    if scores.ndim != 1 or scores.shape != member.shape:
        raise LeakboardError(
            f"expected one score per example, not {list(scores.shape)} for {list(member.shape)}"
        )
    if not np.isfinite(scores).all():
        raise LeakboardError("membership scores: some are not finite")
    return scores, member
