"""Utility of a classifier: accuracy, macro-F1 and Matthews' correlation coefficient (MCC)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leakboard.bench import contracts
from leakboard.bench.contracts import Estimate, Ints, UtilityMetric
from leakboard.bench.scoring import metrics
from leakboard.bench.scoring.metrics import Floats

METRICS = contracts.METRICS["classification"]
PAIRED: tuple[UtilityMetric, ...] = ("macro-F1", "MCC")
"""Metrics that are not means over examples."""
RARE = 0.1
"""Share of examples below which a class hardly affects accuracy."""


def class_fields(predicted: Ints, truth: Ints, metric: UtilityMetric | None) -> dict[str, Any]:
    """Utility fields of a classifier's record; the other metrics become measures.

    Args:
        metric: metric of utility; None for accuracy, or macro-F1 if the share of the rarest class is below `RARE`.
    """
    counts = np.unique(truth, return_counts=True)[1]
    if metric is None:
        metric = "macro-F1" if counts.min() < RARE * len(truth) else "accuracy"
    estimates = {name: class_estimate(name, predicted, truth) for name in METRICS}
    return {
        "utility_metric": metric,
        "utility": estimates.pop(metric),
        "measures": estimates,
        "predictions": {"predicted": predicted.tolist(), "truth": truth.tolist()},
    }


def class_estimate(metric: UtilityMetric, predicted: Ints, truth: Ints) -> Estimate:
    """A metric of n predictions, with a percentile bootstrap over examples.

    Chance is the score of always predicting the most frequent class. If all predictions are right, the lower end of
    the interval is Wilson's for accuracy.
    """
    chance = metrics.most_frequent_share(truth)
    if metric == "accuracy":
        right = (predicted == truth).astype(np.int64)
        return metrics.share(right, np.ones_like(right), chance)
    cells, counts, n_classes = _confusion(predicted, truth)
    n = int(counts.sum())
    compute = macro_f1 if metric == "macro-F1" else matthews
    value = float(compute(cells, counts[None].astype(float), n_classes)[0])
    if (predicted == truth).all():
        low, high = metrics.wilson(n, n)
    else:
        # Examples with the same true and predicted class are interchangeable, so their counts are drawn.
        spread = _resample(counts, lambda drawn: compute(cells, drawn, n_classes))
        low, high = np.quantile(spread, [0.025, 0.975])
    guessed = 2 * chance / (1 + chance) / len(np.unique(truth)) if metric == "macro-F1" else 0.0
    return Estimate(value=value, low=float(low), high=float(high), n=n, chance=guessed)


def paired_difference(
    metric: UtilityMetric, first: Ints, second: Ints, truth: Ints
) -> tuple[float, float, float]:
    """Difference of a metric between two predictions of the same examples, with its 95 % interval."""
    names, codes = np.unique(np.concatenate([first, second, truth]), return_inverse=True)
    size, (one, two, true) = len(names), codes.reshape(3, -1)
    joint, counts = np.unique((one * size + two) * size + true, return_counts=True)
    compute = macro_f1 if metric == "macro-F1" else matthews
    both = [
        np.stack([joint // size**2, joint % size], 1),
        np.stack([joint // size % size, joint % size], 1),
    ]

    def difference(weights: Floats) -> Floats:
        return compute(both[0], weights, size) - compute(both[1], weights, size)

    low, high = np.quantile(_resample(counts, difference), [0.025, 0.975])
    return float(difference(counts[None].astype(float))[0]), float(low), float(high)


def _resample(counts: Ints, statistic: Callable[[Floats], Floats]) -> Floats:
    """[1000] bootstrap of a statistic of counts, given the counts of interchangeable examples."""
    rng, n = np.random.default_rng(0), int(counts.sum())
    rows = max(1, metrics.BLOCK // len(counts))
    sizes = [min(rows, metrics.RESAMPLES - at) for at in range(0, metrics.RESAMPLES, rows)]
    draws = (rng.multinomial(n, counts / n, size=size).astype(float) for size in sizes)
    return np.concatenate([statistic(drawn) for drawn in draws])


def _confusion(predicted: Ints, truth: Ints) -> tuple[Ints, Ints, int]:
    """[K, 2] pairs of predicted and true class that occur, their counts, and the number of classes."""
    names, codes = np.unique(np.concatenate([predicted, truth]), return_inverse=True)
    pairs, counts = np.unique(codes.reshape(2, -1).T, axis=0, return_counts=True)
    return pairs, counts, len(names)


def macro_f1(cells: Ints, weights: Floats, classes: int) -> Floats:
    """[R] mean F1 over the classes that occur in predictions or labels.

    Args:
        cells: [K, 2] predicted and true class.
        weights: [R, K] counts of each pair.
    """
    right, named, true = _sums(cells, weights, classes)
    there = named + true > 0
    f1 = np.divide(2 * right, named + true, out=np.zeros_like(right), where=there)
    mean: Floats = f1.sum(1) / there.sum(1)
    return mean


def matthews(cells: Ints, weights: Floats, classes: int) -> Floats:
    """[R] Matthews' correlation of several classes (Gorodkin 2004, R_K); 0 if one class is always predicted."""
    right, named, true = _sums(cells, weights, classes)
    total = weights.sum(1)
    shared = right.sum(1) * total - (named * true).sum(1)
    scale = np.sqrt((total**2 - (named**2).sum(1)) * (total**2 - (true**2).sum(1)))
    values: Floats = np.divide(shared, scale, out=np.zeros_like(shared), where=scale > 0)
    return values


def _sums(cells: Ints, weights: Floats, classes: int) -> tuple[Floats, Floats, Floats]:
    """[R, C] counts of each class: predicted correctly, predicted, and true."""
    kinds, ones = np.arange(len(cells)), np.ones(len(cells))
    named, true = (
        csr_array((ones, (kinds, column)), shape=(len(cells), classes)) for column in cells.T
    )
    right = csr_array(
        ((cells[:, 0] == cells[:, 1]) * ones, (kinds, cells[:, 0])), shape=named.shape
    )
    return weights @ right, weights @ named, weights @ true
