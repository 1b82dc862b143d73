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

from leakboard.bench.contracts import Estimate, Guess, Ints, Measure, Point, grouped
from leakboard.bench.scoring.metrics import mean_ranks, resample, wilson

PERMUTATIONS = 200
Floats = NDArray[np.float64]

METRICS: dict[Measure, str] = {
    "auc": "AUC (sign-free)",
    "matching": "matched accuracy",
    "balanced accuracy": "balanced accuracy",
}
"""Names of the metrics, by measure."""


@dataclass(frozen=True)
class Trial:
    """A guess about labels, the true labels, and permuted ones.

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
    """[PERMUTATIONS, N] permutations of the labels of a split; the same ones for every attack."""
    rng, small = np.random.default_rng(0), labels.astype(np.int16)
    return np.stack([rng.permutation(small) for _ in range(PERMUTATIONS)])


def scored(trials: Sequence[Trial], classes: int, curve: bool = True) -> list[dict[str, Any]]:
    """Fields of two leaks, at the worst and at the last moment.

    Args:
        trials: guesses of one attack on one channel by one measure. Those in which a class is missing are left out
            and counted.
        curve: compute also the intervals of the moments between, which takes most of the time.
    """
    measure = trials[0].guess.measure
    metric = METRICS[measure]
    complete = [trial for trial in trials if len(np.unique(trial.truth)) == classes]
    moments = grouped(complete, lambda trial: trial.step)
    undefined = len({trial.step for trial in trials}) - len(moments)
    if not moments:
        return []
    steps = sorted(moments)
    per_moment = [_at(moments[step], measure, classes) for step in steps]
    worst = int(np.argmax([value for value, _, _ in per_moment]))
    overall = float(np.max([null for _, _, null in per_moment], axis=0).mean())
    points, chosen = [], [best for _, best, _ in per_moment]
    for i, (step, (value, best, null)) in enumerate(zip(steps, per_moment, strict=True)):
        has_interval = curve or i in (worst, len(steps) - 1)
        low, high = interval(best, value, classes) if has_interval else (value, value)
        estimate = Estimate(
            value=value, low=low, high=high, n=len(best.truth), chance=float(null.mean())
        )
        recipient = best.guess.recipient or ""
        points.append(Point(step=step, part=best.guess.part, recipient=recipient, success=estimate))
    leaks = []
    for view, at, chance in (("worst", worst, overall), ("last", -1, points[-1].success.chance)):
        leaks.append(
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
    return leaks


def _at(parts: Sequence[Trial], measure: Measure, classes: int) -> tuple[float, Trial, Floats]:
    """Largest success over the parts of one moment, its trial, and [R] the same maximum under permuted labels."""
    values = [float(MEASURES[measure](p.values, p.truth[None], classes)[0]) for p in parts]
    null = np.max([MEASURES[measure](p.values, p.null, classes) for p in parts], axis=0)
    return max(values), parts[int(np.argmax(values))], null


def ordinal(values: NDArray[Any]) -> list[int]:
    """Integers in the order of `values`, with the same ties: sufficient to compute the score again."""
    if values.dtype.kind in "iu":
        return [int(value) for value in values]
    return [int(rank) for rank in 1 + np.unique(values, return_inverse=True)[1]]


def auc(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Floats:
    """[R] sign-free AUC of one ranking `values` [n] for each row of `labels` [R, n].

    For more than two classes, it is the mean over classes of the sign-free AUC of each class against all others.
    """
    return _mean([_sign_free(a) for a in directed_aucs(values, labels, classes)])


def matching(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Floats:
    """[R] accuracy under the best assignment of clusters `values` [n] to classes."""
    clusters = np.eye(int(values.max()) + 1)[values]
    tables = np.stack([(labels == c) @ clusters for c in range(classes)], axis=2)
    from scipy.optimize import linear_sum_assignment  # slow to import

    best = [table[linear_sum_assignment(table, maximize=True)].sum() for table in tables]
    shares: Floats = np.array(best) / labels.shape[1]
    return shares


def balanced(values: NDArray[Any], labels: NDArray[Any], classes: int) -> Floats:
    """[R] balanced accuracy: mean of the recall of each class."""
    right = labels == values
    shares = [
        (right & (labels == c)).sum(1) / np.maximum((labels == c).sum(1), 1) for c in range(classes)
    ]
    return _mean(shares)


MEASURES = {"auc": auc, "matching": matching, "balanced accuracy": balanced}


def directed_aucs(values: NDArray[Any], labels: NDArray[Any], classes: int) -> list[Floats]:
    """For each class, [R] its AUC against all others; only one entry for two classes, whose AUCs sum to 1."""
    ranks = mean_ranks(values)
    aucs = []
    for c in range(1 if classes == 2 else 0, classes):
        is_class = (labels == c).astype(float)
        n = is_class.sum(1)
        pairs = n * (labels.shape[1] - n)
        # In a small window, a permutation may lack a class. Then nothing is ranked, and the AUC is 0.5.
        above = is_class @ ranks - n * (n + 1) / 2
        aucs.append(np.where(pairs > 0, above / np.maximum(pairs, 1), 0.5))
    return aucs


def _mean(of_classes: Sequence[Floats]) -> Floats:
    mean: Floats = np.mean(of_classes, axis=0)
    return mean


def _sign_free(a: Floats) -> Floats:
    return np.maximum(a, 1 - a)


def interval(trial: Trial, value: float, classes: int) -> tuple[float, float]:
    """95 % percentile bootstrap over examples. Sign and matching are those of the full sample.

    With a new sign for each resample, no interval of an AUC could reach below 0.5.
    """
    n = len(trial.truth)
    if value >= 1:
        return wilson(n, n)
    measure: Callable[[Ints], Floats]
    if trial.guess.measure == "auc":
        measure = partial(_auc_resampled, trial, classes)
    elif trial.guess.measure == "matching":
        right = trial.truth == _matched(trial.values, trial.truth, classes)
        measure = partial(_right_resampled, right)
    else:
        measure = partial(_balanced_resampled, trial, classes)
    low, high = np.nanquantile(resample(n, measure), [0.025, 0.975])
    return float(low), float(high)


def _right_resampled(right: NDArray[np.bool_], weights: Ints) -> Floats:
    """[R] accuracy on weighted rows."""
    shares: Floats = weights @ right / len(right)
    return shares


def _balanced_resampled(trial: Trial, classes: int, weights: Ints) -> Floats:
    """[R] balanced accuracy on weighted rows."""
    shares = []
    for c in range(classes):
        of_class = weights * (trial.truth == c)
        shares.append(of_class @ (trial.values == c) / np.maximum(of_class.sum(1), 1))
    return _mean(shares)


def _auc_resampled(trial: Trial, classes: int, weights: Ints) -> Floats:
    """[R] AUC on weighted rows [R, n], with the sign of the full sample."""
    order = np.argsort(trial.values, kind="stable")
    _, tied = np.unique(trial.values[order], return_inverse=True)
    starts = np.flatnonzero(np.diff(tied, prepend=-1))
    measured = directed_aucs(trial.values, trial.truth[None], classes)
    weights, truth = weights[:, order], trial.truth[order]
    areas = []
    for c, direction in zip(range(1 if classes == 2 else 0, classes), measured, strict=True):
        is_class = truth == c
        if len(starts) == len(order):  # no ties: the weight below a row is a cumulative sum
            inside = weights[:, is_class]
            below = np.cumsum(np.where(is_class, 0, weights), axis=1)
            rest, below = below[:, -1], below[:, is_class]
        else:
            inside = np.add.reduceat(weights * is_class, starts, axis=1)
            others = np.add.reduceat(weights * ~is_class, starts, axis=1)
            rest, below = others.sum(1), np.cumsum(others, axis=1) - others / 2
        area = (inside * below).sum(1) / np.maximum(inside.sum(1) * rest, 1)
        areas.append(area if direction[0] >= 0.5 else 1 - area)
    return _mean(areas)


def _matched(values: NDArray[Any], truth: Ints, classes: int) -> Ints:
    """[n] class of each row's cluster under the best assignment; −1 for a cluster without a class."""
    table = np.eye(int(values.max()) + 1)[values].T @ np.eye(classes)[truth]
    from scipy.optimize import linear_sum_assignment  # slow to import

    cluster, given = linear_sum_assignment(table, maximize=True)
    names = np.full(len(table), -1)
    names[cluster] = given
    matched: Ints = names[values]
    return matched
