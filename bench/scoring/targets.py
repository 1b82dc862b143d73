"""Utility of models that predict numbers (Spearman, Pearson) or several labels per text (micro-F1, macro-F1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import METRICS, Estimate, UtilityMetric
from leakboard.bench.scoring import metrics
from leakboard.bench.scoring.metrics import Floats

Raw = dict[str, list[int]]
NUMBERS = ("predicted_millionths", "true_millionths")
"""Fields of a record with predicted and true numbers, in millionths of a standard deviation."""
MILLION = 10**6
BITS = 62
"""Labels in one number of a record, whose fields are predicted_0, true_0, predicted_1 and so on."""
Statistic = Callable[[NDArray[Any]], Floats]
"""Function from weights [R, n] of examples to the metric [R]."""


def number_fields(
    predicted: NDArray[Any], truth: NDArray[Any], metric: UtilityMetric | None
) -> dict[str, Any]:
    """Utility fields of a model that predicts numbers [n]; the other metric becomes a measure."""
    scaled = [np.round(np.asarray(each, float) * MILLION) for each in (predicted, truth)]
    most = 2.0**62
    rows = [np.clip(each, -most, most).astype(np.int64).tolist() for each in scaled]
    return _fields(dict(zip(NUMBERS, rows, strict=True)), metric, METRICS["regression"])


def label_fields(
    predicted: NDArray[np.bool_], truth: NDArray[np.bool_], metric: UtilityMetric | None
) -> dict[str, Any]:
    """Utility fields of a model that says of each label [n, C] if it applies."""
    raw: Raw = {}
    for at, start in enumerate(range(0, truth.shape[1], BITS)):
        for name, flags in (("predicted", predicted), ("true", truth)):
            part = flags[:, start : start + BITS].astype(np.int64)
            raw[f"{name}_{at}"] = (part << np.arange(part.shape[1])).sum(1).tolist()
    return _fields(raw, metric, METRICS["multilabel"])


def _fields(
    raw: Raw, metric: UtilityMetric | None, every: tuple[UtilityMetric, ...]
) -> dict[str, Any]:
    found = {name: target_estimate(name, raw) for name in every}
    chosen = metric or every[0]
    return {
        "utility_metric": chosen,
        "utility": found.pop(chosen),
        "measures": found,
        "predictions": raw,
    }


def has_targets(raw: Raw) -> bool:
    """True for raw predictions of numbers or of several labels."""
    return raw.keys() == set(NUMBERS) or "true_0" in raw


def target_estimate(metric: str, raw: Raw) -> Estimate:
    """A metric of the raw predictions of a record, with a percentile bootstrap over examples.

    Chance is the score of the best prediction that ignores the text: 0 for a correlation, and for F1 that of always
    naming the same labels.

    Raises:
        ValueError: the metric does not fit, or the raw predictions have no such form.
    """
    statistic = _statistic(metric, raw)
    n = len(next(iter(raw.values())))
    value = float(statistic(np.ones((1, n)))[0])
    low, high = np.quantile(metrics.resample(n, statistic), [0.025, 0.975])
    return Estimate(value=value, low=float(low), high=float(high), n=n, chance=_chance(metric, raw))


def target_difference(metric: str, first: Raw, second: Raw) -> tuple[float, float, float]:
    """Difference of a metric between two predictions of the same examples, with its 95 % interval."""
    one, two = _statistic(metric, first), _statistic(metric, second)
    n = len(next(iter(first.values())))
    low, high = np.quantile(metrics.resample(n, lambda w: one(w) - two(w)), [0.025, 0.975])
    ones = np.ones((1, n))
    return float(one(ones)[0] - two(ones)[0]), float(low), float(high)


def truth_of(raw: Raw) -> Raw:
    """The true labels in raw predictions; empty for language modelling."""
    return {name: v for name, v in raw.items() if name == "truth" or name.startswith("true_")}


def _statistic(metric: str, raw: Raw) -> Statistic:
    if raw.keys() == set(NUMBERS):
        x, y = (np.array(raw[name], float) for name in NUMBERS)
        if metric == "Pearson":
            return lambda weights: _correlation(x, y, weights)
        if metric == "Spearman":
            ranks = _Ranks(x), _Ranks(y)
            return lambda w: _correlation(ranks[0].under(w), ranks[1].under(w), w)
    elif "true_0" in raw:
        predicted, truth = _flags(raw, "predicted"), _flags(raw, "true")
        if metric == "micro-F1":
            sums = (2 * (predicted & truth).sum(1), predicted.sum(1) + truth.sum(1))
            return lambda weights: _ratio(*(weights @ each.astype(float) for each in sums))
        if metric == "macro-F1":
            used = (predicted | truth).any(0)
            hits = 2.0 * (predicted & truth)[:, used]
            named = predicted[:, used].astype(float) + truth[:, used]
            return lambda weights: _mean_f1(weights @ hits, weights @ named)
    raise ValueError(f"{metric} is no metric of these predictions")


def _mean_f1(hits: Floats, named: Floats) -> Floats:
    """[R] mean over the labels that occur, from sums [R, C]."""
    mean: Floats = _ratio(hits, named).sum(1) / np.maximum(1, (named > 0).sum(1))
    return mean


def _ratio(above: Floats, below: Floats) -> Floats:
    found: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found


def _chance(metric: str, raw: Raw) -> float:
    if raw.keys() == set(NUMBERS):
        return 0.0
    truth = _flags(raw, "true")
    counts, n = np.sort(truth.sum(0))[::-1], len(truth)
    if metric == "macro-F1":
        there = counts[counts > 0]
        return float((2 * there / (there + n)).mean()) if len(there) else 0.0
    named = np.arange(1, len(counts) + 1)
    return float((2 * counts.cumsum() / (named * n + counts.sum())).max())


def _flags(raw: Raw, name: str) -> NDArray[np.bool_]:
    """[n, C] labels that are predicted or true; C is a multiple of `BITS`."""
    parts = [raw[f"{name}_{at}"] for at in range(len(raw) // 2)]
    bits = [(np.array(part, np.int64)[:, None] >> np.arange(BITS)) & 1 for part in parts]
    return np.concatenate(bits, 1).astype(bool)


class _Ranks:
    """Mid-ranks of n numbers in any resample of them."""

    def __init__(self, values: Floats) -> None:
        self.order = np.argsort(values, kind="stable")
        ordered = values[self.order]
        self.starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self.group = np.empty(len(values), np.int64)
        self.group[self.order] = np.cumsum(np.r_[False, ordered[1:] != ordered[:-1]])

    def under(self, weights: NDArray[Any]) -> Floats:
        """[R, n] ranks, shifted by one half, if each example occurs `weights` [R, n] times."""
        tied = np.add.reduceat(weights[:, self.order], self.starts, axis=1)
        ranks: Floats = (tied.cumsum(1) - tied / 2)[:, self.group]
        return ranks


def _correlation(x: Floats, y: Floats, weights: NDArray[Any]) -> Floats:
    """[R] Pearson's correlation of x and y, [n] or [R, n], with weights [R, n]; 0 if one of them is constant."""
    total = weights.sum(1, keepdims=True)
    x, y = (each - (weights * each).sum(1, keepdims=True) / total for each in (x, y))
    shared = (weights * x * y).sum(1)
    scale = np.sqrt((weights * x * x).sum(1) * (weights * y * y).sum(1))
    return _ratio(shared, scale)
