"""Training objectives, and the metrics of utility that belong to each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Objective = Literal["classification", "language modelling", "regression", "multilabel"]
"""Of each text: one class, its next tokens, a number, or any set of labels."""
UtilityMetric = Literal["accuracy", "macro-F1", "MCC", "micro-F1", "Spearman", "Pearson"]

EVERY_OBJECTIVE: frozenset[Objective] = frozenset(get_args(Objective))
WITH_HEAD: frozenset[Objective] = EVERY_OBJECTIVE - {"language modelling"}
"""Objectives that train a head with one output for each class or label, or for the number."""
METRICS: Mapping[Objective, tuple[UtilityMetric, ...]] = {
    "classification": ("accuracy", "macro-F1", "MCC"),
    "regression": ("Spearman", "Pearson"),
    "multilabel": ("micro-F1", "macro-F1"),
    "language modelling": (),
}
"""Metrics that a suite or a task can choose; the first one is the default, except for classes of users' data."""
CORRELATIONS: frozenset[str] = frozenset({"MCC", "Spearman", "Pearson"})
"""Metrics from −1 to 1, of which a hundredth is no percentage point."""


def metric_mismatch(metric: UtilityMetric | None, objective: Objective) -> str | None:
    """Reason why a metric cannot be the utility of an objective; None if it can."""
    if metric is None or metric in METRICS[objective]:
        return None
    fitting = " or ".join(METRICS[objective]) or "chosen by the task"
    return f"{metric} is no utility of {objective}, whose utility is {fitting}"
