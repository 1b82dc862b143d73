"""Label leakage over training: guesses at many moments and about many parts, scored as one attack.

The maximum over many moments and parts exceeds the chance level of a single one. So chance is a permutation null: the
mean of the same maximum over permutations of the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Estimate, Guess, Ints, Measure, Point
from leakboard.bench.scoring.metrics import resample, wilson

PERMUTATIONS = 200
Floats = NDArray[np.float64]

METRICS: dict[Measure, str] = {
    "auc": "AUC (sign-free)",
    "matching": "matched accuracy",
    "balanced accuracy": "balanced accuracy",
}
"""Measures that are scored here, and what they are called."""


@dataclass(frozen=True)
class Look:
    """One guess about labels with what it is scored against.

    Attributes:
        values: [n] as in `Guess`.
        truth: [n] classes.
        null: [PERMUTATIONS, n] classes under permuted labels.
    """

    guess: Guess
    step: int
    values: NDArray[Any]
    truth: Ints
    null: NDArray[np.int16]


def permuted(labels: Ints) -> NDArray[np.int16]:
    """[PERMUTATIONS, N] the labels of a split in other orders; the same ones for every attack."""
    rng, small = np.random.default_rng(0), labels.astype(np.int16)
    return np.stack([rng.permutation(small) for _ in range(PERMUTATIONS)])


def scored(looks: Sequence[Look], classes: int, curve: bool = True) -> list[dict[str, Any]]:
    """The fields of two leaks, that of the worst moment and that of the last one.

    Args:
        looks: of one attack on one channel, all of the same measure; those in which a class is
            missing are left out and counted.
        curve: also the intervals of the moments between, which take most of the time.
    """
    measure = looks[0].guess.measure
    metric = METRICS[measure]
    whole = [look for look in looks if len(np.unique(look.truth)) == classes]
    moments: dict[int, list[Look]] = {}
    for look in whole:
        moments.setdefault(look.step, []).append(look)
    undefined = len({look.step for look in looks}) - len(moments)
    if not moments:
        return []
    steps = sorted(moments)
    found_at = [_at(moments[step], measure, classes) for step in steps]
    worst = int(np.argmax([value for value, _, _ in found_at]))
    overall = float(np.max([null for _, _, null in found_at], axis=0).mean())
    points, chosen = [], [best for _, best, _ in found_at]
    for i, (step, (value, best, null)) in enumerate(zip(steps, found_at, strict=True)):
        told = curve or i in (worst, len(steps) - 1)
        low, high = interval(best, value, classes) if told else (value, value)
        estimate = Estimate(
            value=value, low=low, high=high, n=len(best.truth), chance=float(null.mean())
        )
        recipient = best.guess.recipient or ""
        points.append(Point(step=step, part=best.guess.part, recipient=recipient, success=estimate))
    found = []
    for view, at, chance in (("worst", worst, overall), ("last", -1, points[-1].success.chance)):
        found.append(
            {
                "view": view,
                "metric": metric,
                "success": points[at].success.model_copy(update={"chance": chance}),
                "step": points[at].step,
                "curve": points if curve and view == "worst" and len(points) > 1 else [],
                "undefined": undefined,
                "units": len(chosen[at].truth),
                "raw": {"guess": ordinal(chosen[at].values), "truth": chosen[at].truth.tolist()},
            }
        )
    return found


def _at(parts: Sequence[Look], measure: Measure, classes: int) -> tuple[float, Look, Floats]:
    """The largest success in the parts of one moment, where it was, and the same under permuted labels."""
    values = [float(MEASURES[measure](p.values, p.truth[None], classes)[0]) for p in parts]
    null = np.max([MEASURES[measure](p.values, p.null, classes) for p in parts], axis=0)
    return max(values), parts[int(np.argmax(values))], null


def ordinal(values: NDArray[Any]) -> list[int]:
    """Whole numbers in the order of `values`, equal where these are: enough to score again."""
    if values.dtype.kind in "iu":
        return [int(value) for value in values]
    return [int(rank) for rank in 1 + np.unique(values, return_inverse=True)[1]]


def auc(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Floats:
    """[R] sign-free AUC of one ranking `values` [n] for each row of `labels` [R, n].

    For more than two classes the mean over classes of the sign-free AUC of each against the rest.
    """
    return _mean([_sign_free(a) for a in directed_aucs(values, labels, classes)])


def matching(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Floats:
    """[R] share right under the best assignment of clusters `values` [n] to classes."""
    clusters = np.eye(int(values.max()) + 1)[values]
    tables = np.stack([(labels == c) @ clusters for c in range(classes)], axis=2)
    from scipy.optimize import linear_sum_assignment  # slow to import

    best = [table[linear_sum_assignment(table, maximize=True)].sum() for table in tables]
    shares: Floats = np.array(best) / labels.shape[1]
    return shares


def balanced(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Floats:
    """[R] mean over classes of the share right; what a balanced test set is expected to give."""
    right = labels == values
    shares = [
        (right & (labels == c)).sum(1) / np.maximum((labels == c).sum(1), 1) for c in range(classes)
    ]
    return _mean(shares)


MEASURES = {"auc": auc, "matching": matching, "balanced accuracy": balanced}


def directed_aucs(values: NDArray[Any], labels: NDArray[Any], classes: int) -> list[Floats]:
    """Per class against the rest [R]; one for two classes, whose AUCs mirror each other."""
    from scipy.stats import rankdata  # here, since it takes a second to load

    ranks = rankdata(values)
    found = []
    for c in range(1 if classes == 2 else 0, classes):
        mine = (labels == c).astype(float)
        n = mine.sum(1)
        pairs = n * (labels.shape[1] - n)
        # Where a permutation leaves a class out of a small window, nothing is ranked: 0.5.
        above = mine @ ranks - n * (n + 1) / 2
        found.append(np.where(pairs > 0, above / np.maximum(pairs, 1), 0.5))
    return found


def _mean(of_classes: Sequence[Floats]) -> Floats:
    mean: Floats = np.mean(of_classes, axis=0)
    return mean


def _sign_free(a: Floats) -> Floats:
    return np.maximum(a, 1 - a)


def interval(look: Look, value: float, classes: int) -> tuple[float, float]:
    """95 % percentile bootstrap over examples of what was measured, sign and matching kept.

    Without the sign kept, no interval of an AUC could reach below 0.5.
    """
    n = len(look.truth)
    if value >= 1:
        return wilson(n, n)
    measure: Callable[[Ints], Floats]
    if look.guess.measure == "auc":
        measure = partial(_auc_resampled, look, classes)
    elif look.guess.measure == "matching":
        right = look.truth == _matched(look.values, look.truth, classes)
        measure = partial(_right_resampled, right)
    else:
        measure = partial(_balanced_resampled, look, classes)
    low, high = np.nanquantile(resample(n, measure), [0.025, 0.975])
    return float(low), float(high)


def _right_resampled(right: NDArray[np.bool_], weights: Ints) -> Floats:
    """[R] the share of weighted rows that are right."""
    shares: Floats = weights @ right / len(right)
    return shares


def _balanced_resampled(look: Look, classes: int, weights: Ints) -> Floats:
    """[R] the mean over classes of the share of weighted rows that are right."""
    shares = []
    for c in range(classes):
        mine = weights * (look.truth == c)
        shares.append(mine @ (look.values == c) / np.maximum(mine.sum(1), 1))
    return _mean(shares)


def _auc_resampled(look: Look, classes: int, weights: Ints) -> Floats:
    """[R] AUC of weighted rows [R, n], turned as the whole sample turns it."""
    order = np.argsort(look.values, kind="stable")
    _, tied = np.unique(look.values[order], return_inverse=True)
    starts = np.flatnonzero(np.diff(tied, prepend=-1))
    whole = directed_aucs(look.values, look.truth[None], classes)
    weights, truth = weights[:, order], look.truth[order]
    found = []
    for c, given in zip(range(1 if classes == 2 else 0, classes), whole, strict=True):
        own = truth == c
        if len(starts) == len(order):  # no ties: what lies below a row of the class is a plain sum
            mine = weights[:, own]
            below = np.cumsum(np.where(own, 0, weights), axis=1)
            rest, below = below[:, -1], below[:, own]
        else:
            mine = np.add.reduceat(weights * own, starts, axis=1)
            others = np.add.reduceat(weights * ~own, starts, axis=1)
            rest, below = others.sum(1), np.cumsum(others, axis=1) - others / 2
        area = (mine * below).sum(1) / np.maximum(mine.sum(1) * rest, 1)
        found.append(area if given[0] >= 0.5 else 1 - area)
    return _mean(found)


def _matched(values: NDArray[Any], truth: Ints, classes: int) -> Ints:
    """[n] the class to which the best assignment gives each cluster; −1 for one without."""
    table = np.eye(int(values.max()) + 1)[values].T @ np.eye(classes)[truth]
    from scipy.optimize import linear_sum_assignment  # slow to import

    cluster, given = linear_sum_assignment(table, maximize=True)
    names = np.full(len(table), -1)
    names[cluster] = given
    matched: Ints = names[values]
    return matched
