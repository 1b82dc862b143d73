"""What servers read of labels in activations, by which of them sees what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from bench.contracts import Channel, Goal
from leaderboards.findings.finding import Finding, keys_of, listed, measured
from leaderboards.tables import SETTING, Comparison, average, deciding, ranged, settings, varying

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
        rows = comparison.rows
        rows = rows[(rows["goal"] == Goal.LABEL) & rows["channel"].isin(READ)]
        if rows.empty:
            continue
        means = average(deciding(rows), [*SETTING, "goal", "attribute"])
        plain = means[means["undefended"]].sort_values("success", ascending=False)
        rest = [_without(params) for params in means["params"]]
        by = ["defense", "setup", pd.Series(rest, means.index)]
        for (defense, *_), own in means.groupby(by):
            seen = {json.loads(params).get("servers") for params in own["params"]}
            if len(seen - {None}) > 1 and len(plain):
                others = rows["params"][rows["defense"] == defense]
                yield _finding(comparison, str(defense), own, plain.iloc[0].to_dict(), others)


def _finding(
    comparison: Comparison,
    defense: str,
    own: pd.DataFrame,
    plain: dict[Any, Any],
    others: pd.Series,
) -> Finding:
    every = own.to_dict("records")
    told = [name for name in varying(others) if name not in SEEN]
    at = " ".join(filter(None, [defense, settings(every[0]["params"], told)])).replace(" = ", "=")
    said = listed([f"{_seen(row)} {_read(row)}" for row in every])
    best = min(every, key=lambda row: row["success"])
    return Finding(
        rule="servers",
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}), what is read of labels in "
        f"activations under {at}: with {said} ({best['metric']}; guessing {best['chance']:.3f}; without "
        f"protection {_read(plain)}).",
        settings=tuple(f"{at}, {_seen(row)}" for row in every),
        **measured(comparison, best),
        keys=tuple(key for row in [*every, plain] for key in keys_of(comparison, row)),
    )


def _read(row: dict[Any, Any]) -> str:
    return f"{ranged(row['success'], row['success_low'], row['success_high'])} ({row['attack']})"


def _seen(row: dict[Any, Any]) -> str:
    params = json.loads(row["params"])
    turns = ", two that take turns," if params.get("alternating") else ""
    return WORDS.get(params["servers"], str(params["servers"])) + turns


def _without(params: str) -> str:
    """Parameters but those that say which server sees what, as JSON."""
    kept = {name: value for name, value in json.loads(params).items() if name not in SEEN}
    return json.dumps(kept, sort_keys=True)
