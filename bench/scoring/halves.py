"""Success of an attack on each half of its units, from the raw guesses of a record."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Leak
from leakboard.bench.scoring import moments
from leakboard.bench.tasks import CEILING

LABEL_MEASURES = {name: moments.MEASURES[measure] for measure, name in moments.METRICS.items()}


def half_successes(leak: Leak) -> tuple[float, float] | None:
    """Success on the even and on the odd units, in the metric of the leak.

    None if the record has no raw guesses of this leak, or a half cannot be scored.
    """
    raw = {name: np.asarray(values) for name, values in leak.raw.items()}
    n = min((len(values) for values in raw.values()), default=0)
    if n < 4:
        return None
    halves = [_success(leak.metric, {k: v[start::2] for k, v in raw.items()}) for start in (0, 1)]
    first, second = halves
    return None if first is None or second is None else (first, second)


def _success(metric: str, raw: Mapping[str, NDArray[np.int64]]) -> float | None:
    fields = frozenset(raw)
    if fields == {"hits", "tokens"}:
        tokens = int(raw["tokens"].sum())
        return float(raw["hits"].sum() / tokens) if tokens else None
    if fields == {"guess", "truth"}:
        return _of_labels(metric, raw["guess"], raw["truth"])
    if {"twice_rank", "member"} <= fields:
        inside = raw["member"].astype(bool)
        if inside.all() or not inside.any():
            return None
        return float(moments.directed_aucs(raw["twice_rank"], inside[None].astype(int), 2)[0][0])
    if "twice_rank" in fields:
        bits = CEILING - np.log2(raw["twice_rank"] / 2)
        if "twice_rank_before" in fields:
            bits = bits - (CEILING - np.log2(raw["twice_rank_before"] / 2))
        return float(bits.mean())
    if fields in ({"hit"}, {"hit", "candidates"}):
        return float(raw["hit"].mean())
    return None


def _of_labels(metric: str, guess: NDArray[np.int64], truth: NDArray[np.int64]) -> float | None:
    if metric == "accuracy":
        return float((guess == truth).mean())
    measure = LABEL_MEASURES.get(metric)
    classes = int(truth.max()) + 1
    if measure is None or len(np.unique(truth)) < classes:
        return None
    values = guess - guess.min() if metric.startswith("matched") else guess
    return float(measure(values, truth[None], classes)[0])
