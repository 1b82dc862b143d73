"""The leak of labels, which several figures show.

P³EFT's headline number is the largest success of spectral, norm and k-means attack on the
activations, over adapters, at the worst moment of training. Beside it stands what the strongest attack reads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from leakboard.bench.contracts import Channel, Goal, LeakboardError, Record
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    PROVEN,
    SETTING,
    add_knobs,
    average,
    canonical_json,
    count,
    counting,
    deciding,
    format_parameters,
    numbered,
    shown,
    varying_names,
)

ATTACKS = ("spectral", "norm", "kmeans")
CHANNEL = "activations"
ON_ACTIVATIONS = frozenset({Channel.ACTIVATIONS, Channel.RECOMPUTED})
"""Those that were sent, and those that a server computes of every text it has seen."""
DEFINED = (
    "the largest success of the spectral, norm and k-means attacks on activations, over adapters, at the "
    "worst moment of training; of those that are certified or find something, where there are any."
)


def leaks(frame: pd.DataFrame) -> pd.DataFrame:
    """Leak (`success`) and utility of every setting, as means over its seeds.

    Returns:
        As `leakboard.leaderboards.tables.points.points` does, in order of appearance; no `success` where the
        `standing` is 'not shown', and a `label` that begins with '≥' where more may leak.

    Raises:
        LeakboardError: none of the three attacks has a result.
    """
    rows = at_worst(frame, CHANNEL)
    if rows.empty:
        raise LeakboardError(
            f"nothing to plot: no record holds {', '.join(ATTACKS)} on {CHANNEL}; "
            "add them to `attacks` of the suite and run it again"
        )
    ranked = rows.sort_values(["counts", "success"], ascending=False, kind="stable")
    return _pointed(ranked.drop_duplicates("key").sort_index())


def strongest_leaks(
    frame: pd.DataFrame, channels: Collection[str] = frozenset(Channel)
) -> pd.DataFrame:
    """The same by the strongest of all attacks on labels that read one of some channels."""
    rows = frame[(frame["goal"] == Goal.LABEL) & frame["channel"].isin(channels)]
    return _pointed(deciding(rows))


def _pointed(rows: pd.DataFrame) -> pd.DataFrame:
    found = add_knobs(shown(average(rows, SETTING)))
    bounds = found["standing"] == PROVEN
    return found.assign(label=found["label"].mask(bounds, "≥ " + found["label"]))


def at_worst(frame: pd.DataFrame, channel: str) -> pd.DataFrame:
    """The rows of the three attacks on a channel at their worst moments.

    Returns:
        With a column `counts`: whether the attack is certified or finds something in that setting. That
        another one fails says nothing.
    """
    rows = frame[
        (frame["goal"] == "label")
        & frame["attack"].isin(ATTACKS)
        & (frame["channel"] == channel)
        & (frame["view"] == "worst")
        & (frame["status"] == "ok")
    ]
    return rows.assign(counts=counting(rows, numbered(rows, [*SETTING, "attack", "attack_params"])))


def caveats(points: pd.DataFrame) -> str:
    """What the reader must know of points that no certificate stands behind; '' where there are none."""
    told = ""
    if hidden := int((points["standing"] == NOT_SHOWN).sum()):
        told += f" Not shown: the leak of {count(hidden, 'point')} without a certified attack."
    if (points["standing"] == PROVEN).any():
        told += " ≥: at least so much, by an attack without a certificate."
    return told


def named_settings(methods: Sequence[tuple[str, str]]) -> list[str]:
    """Each defense with those of its parameters (JSON) that vary among `methods`, in words."""
    by_name: dict[str, list[str]] = {}
    for name, params in methods:
        by_name.setdefault(name, []).append(params)
    shown = {name: varying_names(every) for name, every in by_name.items()}
    words = [(name, format_parameters(params, shown[name])) for name, params in methods]
    return [f"{name} {text}".strip() for name, text in words]


def records_by_setting(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """(task, setting in words) → its records, one per seed."""
    methods = [(r.cell.defense.name, canonical_json(r.cell.defense.params)) for r in records]
    found: dict[tuple[str, str], list[Record]] = {}
    for record, setting in zip(records, named_settings(methods), strict=True):
        found.setdefault((record.cell.task, setting), []).append(record)
    return found
