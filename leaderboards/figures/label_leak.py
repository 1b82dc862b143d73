"""The leak of labels, which several figures show.

It is P³EFT's headline number: the largest success of spectral, norm and k-means attack on the
activations, over adapters, at the worst moment of training.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bench.contracts import LeakboardError, Record
from leaderboards.tables import SETTING, average, canonical, labelled, settings, varying

ATTACKS = ("spectral", "norm", "kmeans")
CHANNEL = "activations"
DEFINED = (
    "Leak: the largest success of the spectral, norm and k-means attacks on activations, over adapters, at "
    "the worst moment of training."
)


def leaks(frame: pd.DataFrame) -> pd.DataFrame:
    """Leak (`success`) and utility of every setting, as means over its seeds.

    Returns:
        As `leaderboards.tables.points.points` does, in order of appearance.

    Raises:
        LeakboardError: none of the three attacks has a result.
    """
    rows = frame[
        (frame["goal"] == "label")
        & frame["attack"].isin(ATTACKS)
        & (frame["channel"] == CHANNEL)
        & (frame["view"] == "worst")
        & (frame["status"] == "ok")
    ]
    if rows.empty:
        raise LeakboardError(
            f"nothing to plot: no record holds {', '.join(ATTACKS)} on {CHANNEL}; "
            "add them to `attacks` of the suite and run it again"
        )
    worst = rows.sort_values("success", ascending=False, kind="stable").drop_duplicates("key")
    return labelled(average(worst.sort_index(), SETTING))


def named_settings(methods: Sequence[tuple[str, str]]) -> list[str]:
    """Each defense with those of its parameters (JSON) that vary among `methods`, in words."""
    by_name: dict[str, list[str]] = {}
    for name, params in methods:
        by_name.setdefault(name, []).append(params)
    shown = {name: varying(every) for name, every in by_name.items()}
    words = [(name, settings(params, shown[name])) for name, params in methods]
    return [f"{name} {text}".strip() for name, text in words]


def records_by_setting(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """(task, setting in words) → its records, one per seed."""
    methods = [(r.cell.defense.name, canonical(r.cell.defense.params)) for r in records]
    found: dict[tuple[str, str], list[Record]] = {}
    for record, setting in zip(records, named_settings(methods), strict=True):
        found.setdefault((record.cell.task, setting), []).append(record)
    return found
