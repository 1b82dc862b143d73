"""Differences in utility between records, paired by example, and comparison with the untuned model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Record
from leakboard.bench.scoring import classes
from leakboard.bench.scoring.targets import has_targets, target_difference, truth_of

UNTUNED = "untuned"
"""Name of the reference defense that leaves the model untuned."""


def gain(record: Record, other: Record) -> tuple[float, float, float]:
    """Difference in utility between two records, with a 95 % interval over the examples that both predicted.

    Above the untuned model means above its `level`. All values are NaN if a record has no utility; the interval is NaN if the examples differ.
    """
    if record.utility is None or other.utility is None:
        return np.nan, np.nan, np.nan
    raised = level(other) - other.utility.value
    mean, low, high = _paired(record, other) or _by_example(record, other)
    return mean - raised, low - raised, high - raised


def level(record: Record) -> float:
    """Utility of a record; that of the untuned model is at least that of guessing the most common class.

    Its head is random, and often worse than such a guess.
    """
    assert record.utility is not None
    utility = record.utility.value
    return max(utility, record.utility.chance) if record.cell.defense.name == UNTUNED else utility


def _by_example(record: Record, other: Record) -> tuple[float, float, float]:
    """Difference in a metric that is a mean over examples."""
    assert record.utility is not None
    assert other.utility is not None
    mean = record.utility.value - other.utility.value
    first, second = hits(record), hits(other)
    if len(first) < 2 or len(first) != len(second):
        return mean, np.nan, np.nan
    gaps = first - second
    half = 1.96 * float(gaps.std(ddof=1)) / np.sqrt(len(gaps))
    return mean, float(gaps.mean()) - half, float(gaps.mean()) + half


def _paired(record: Record, other: Record) -> tuple[float, float, float] | None:
    """Difference in a metric that is no mean over examples; None if the records differ in metric or examples."""
    a, b = record.predictions, other.predictions
    if record.utility_metric != other.utility_metric or truth_of(a) != truth_of(b):
        return None
    if has_targets(a) and a.keys() == b.keys():
        return target_difference(record.utility_metric, a, b)
    metric = next((each for each in classes.PAIRED if each == record.utility_metric), None)
    if metric is None or not a.keys() == b.keys() == {"predicted", "truth"}:
        return None
    first, second, truth = (
        np.array(each, np.int64) for each in (a["predicted"], b["predicted"], a["truth"])
    )
    return classes.paired_difference(metric, first, second, truth)


def hits(record: Record) -> NDArray[np.float64]:
    """Contribution of each evaluated example to the utility, which is their mean."""
    arrays = {name: np.array(values, float) for name, values in record.predictions.items()}
    if record.utility_metric == "accuracy" and arrays.keys() == {"predicted", "truth"}:
        return np.asarray(arrays["predicted"] == arrays["truth"], np.float64)
    if arrays.keys() == {"hits", "tokens"}:
        return np.asarray(arrays["hits"] / arrays["tokens"].mean(), np.float64)
    return np.empty(0)


def keys_not_above_untuned(records: Sequence[Record]) -> frozenset[str]:
    """Keys of records whose utility is not clearly above that of the untuned model, if that was run."""
    untuned_records: Mapping[Any, Record] = {
        _where(record): record for record in records if record.cell.defense.name == UNTUNED
    }
    keys = set()
    for record in records:
        untuned = untuned_records.get(_where(record))
        if untuned is None or record.cell.defense.name == UNTUNED:
            continue
        mean, low, _ = gain(record, untuned)
        # Without paired predictions, means are compared.
        if (mean if np.isnan(low) else low) <= 0:
            keys.add(record.key)
    return frozenset(keys)


def _where(record: Record) -> tuple[Any, ...]:
    cell = record.cell
    what = (cell.data_hash, cell.limit, cell.evaluate, cell.model_hash, cell.train.max_length)
    return (*what, cell.seed, repr(cell.plant), cell.shadow)
