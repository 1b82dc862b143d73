"""What servers read of labels in activations, by which of them sees what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.contracts import Channel, Goal
from leakboard.leaderboards.findings.finding import Finding, keys_of, listed, measured
from leakboard.leaderboards.tables import (
    SETTING,
    Comparison,
    average,
    deciding,
    ranged,
    settings,
    varying,
)

READ = frozenset({Channel.ACTIVATIONS, Channel.RECOMPUTED})
"""Gradients tell labels by other ways, which servers apart may close."""
SEEN = {"servers", "alternating"}
"""Parameters that say which server sees what, and change nothing of the training."""
WORDS = {
    "one": "one server",
    "per-vector": "one for each vector",
    "separate": "one for each vector",
    "per-adapter": "one for each adapter",
    "per-call": "one for each call",
}


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """The strongest attack on activations for each way to divide calls among servers; without protection, too."""
    for comparison in compared:
        yield from along("servers", comparison, "servers", SEEN, _seen)


def along(
    rule: str,
    comparison: Comparison,
    name: str,
    names: Set[str],
    said: Callable[[dict[Any, Any]], str],
) -> Iterator[Finding]:
    """The strongest attack on activations for each value of a parameter, all else being equal.

    Args:
        name: of the parameter; its numbers are told in their order.
        names: those that vary with it.
        said: a setting in words.
    """
    rows = comparison.rows
    rows = rows[(rows["goal"] == Goal.LABEL) & rows["channel"].isin(READ)]
    if rows.empty:
        return
    means = average(deciding(rows), [*SETTING, "goal", "attribute"])
    plain = means[means["undefended"]].sort_values("success", ascending=False)
    rest = [_without(params, names) for params in means["params"]]
    for (defense, *_), own in means.groupby(["defense", "setup", pd.Series(rest, means.index)]):
        values = [json.loads(params).get(name) for params in own["params"]]
        if len({*values} - {None}) > 1 and len(plain):
            if all(isinstance(value, int | float) for value in values):
                own = own.iloc[np.argsort(values)]
            others = varying(rows["params"][rows["defense"] == defense])
            told = [other for other in others if other not in names]
            params = own["params"].iloc[0]
            at = " ".join(filter(None, [str(defense), settings(params, told)])).replace(" = ", "=")
            yield _finding(
                rule, comparison, at, own.to_dict("records"), plain.iloc[0].to_dict(), said
            )


def _finding(
    rule: str,
    comparison: Comparison,
    at: str,
    every: Sequence[dict[Any, Any]],
    plain: dict[Any, Any],
    said: Callable[[dict[Any, Any]], str],
) -> Finding:
    best = min(every, key=lambda row: row["success"])
    return Finding(
        rule=rule,
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}), what is read of labels in "
        f"activations under {at}: with {listed([f'{said(row)} {_read(row)}' for row in every])} "
        f"({best['metric']}; guessing {best['chance']:.3f}; without protection {_read(plain)}).",
        settings=tuple(f"{at}, {said(row)}" for row in every),
        **measured(comparison, best),
        keys=tuple(key for row in [*every, plain] for key in keys_of(comparison, row)),
    )


def _read(row: dict[Any, Any]) -> str:
    return f"{ranged(row['success'], row['success_low'], row['success_high'])} ({row['attack']})"


def _seen(row: dict[Any, Any]) -> str:
    params = json.loads(row["params"])
    turns = ", two that take turns," if params.get("alternating") else ""
    return WORDS.get(params["servers"], str(params["servers"])) + turns


def _without(params: str, names: Set[str]) -> str:
    """Parameters but some, as JSON."""
    kept = {name: value for name, value in json.loads(params).items() if name not in names}
    return json.dumps(kept, sort_keys=True)
