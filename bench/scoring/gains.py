"""Differences in utility between records, paired by example, and comparison with the untuned model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Record
from leakboard.bench.scoring import classes

UNTUNED = "untuned"
"""Name of the defense that stands for the untuned model."""


def gain(mine: Record, other: Record) -> tuple[float, float, float]:
    """Difference in utility between two records, with a 95 % interval over the examples that both predicted.

    All values are NaN if a record has no utility; the interval is NaN if the examples differ.
    """
    if mine.utility is None or other.utility is None:
        return np.nan, np.nan, np.nan
    if pair := _paired(mine, other):
        return pair
    mean = mine.utility.value - other.utility.value
    first, second = hits(mine), hits(other)
    if len(first) < 2 or len(first) != len(second):
        return mean, np.nan, np.nan
    gaps = first - second
    half = 1.96 * float(gaps.std(ddof=1)) / np.sqrt(len(gaps))
    return mean, float(gaps.mean()) - half, float(gaps.mean()) + half


def _paired(mine: Record, other: Record) -> tuple[float, float, float] | None:
    """The same for metrics that are not means over examples, if both predicted the same examples."""
    one, two = mine.predictions, other.predictions
    metric = next((each for each in classes.PAIRED if each == mine.utility_metric), None)
    if metric is None or metric != other.utility_metric:
        return None
    if not one.keys() == two.keys() == {"predicted", "truth"} or one["truth"] != two["truth"]:
        return None
    first, second, truth = (
        np.array(each, np.int64) for each in (one["predicted"], two["predicted"], one["truth"])
    )
    return classes.paired_difference(metric, first, second, truth)


def hits(record: Record) -> NDArray[np.float64]:
    """Contribution of each evaluated example to the utility, which is their mean."""
    told = {name: np.array(values, float) for name, values in record.predictions.items()}
    if record.utility_metric == "accuracy" and told.keys() == {"predicted", "truth"}:
        return np.asarray(told["predicted"] == told["truth"], np.float64)
    if told.keys() == {"hits", "tokens"}:
        return np.asarray(told["hits"] / told["tokens"].mean(), np.float64)
    return np.empty(0)


def keys_not_above_untuned(records: Sequence[Record]) -> frozenset[str]:
    """Keys of records whose utility is not clearly above that of the untuned model, if that was run."""
    before: Mapping[Any, Record] = {
        _where(record): record for record in records if record.cell.defense.name == UNTUNED
    }
    found = set()
    for record in records:
        untuned = before.get(_where(record))
        if untuned is None or record.cell.defense.name == UNTUNED:
            continue
        mean, low, _ = gain(record, untuned)
        # Without paired predictions, means are compared.
        if (mean if np.isnan(low) else low) <= 0:
            found.add(record.key)
    return frozenset(found)


def _where(record: Record) -> tuple[Any, ...]:
    cell = record.cell
    what = (cell.data_hash, cell.limit, cell.evaluate, cell.model_hash, cell.train.max_length)
    return (*what, cell.seed, repr(cell.plant), cell.shadow)
