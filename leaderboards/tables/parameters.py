"""The parameters of a method: which vary, which is the knob, which its user chooses; and in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.methods import registry
from leakboard.bench.tasks import OWN
from leakboard.leaderboards.tables.frame import ALIKE, Row, canonical_json, rows_of
from leakboard.leaderboards.tables.styles import style_of

TRAINED = ["limit", "train", "copies"]
"""What a setup is told by, where these tell setups apart."""
SYMBOLS = {
    "eta": "η",
    "epsilon": "ε",
    "delta": "δ",
    "sigma": "σ",
    "mu": "μ",
    "alpha": "α",
    "lambda": "λ",
    "lambda_": "λ",
}


def knob_of(defense: str, params: Iterable[str]) -> str | None:
    """The declared knob; for a defense unknown here, its only number that varies over `params`."""
    declared = style_of(defense).knob
    if declared is not None:
        return declared
    texts = list(params)
    loaded = [json.loads(text) for text in texts]
    numbers = [
        name
        for name in varying_names(texts)
        if all(isinstance(p.get(name), int | float | None) for p in loaded)
        and not any(isinstance(p.get(name), bool) for p in loaded)
    ]
    return numbers[0] if len(numbers) == 1 else None


def varying_names(params: Iterable[str], but: str | None = None) -> list[str]:
    """Names of the parameters that do not have one value throughout, sorted, `but` one.

    Args:
        params: each as JSON.
    """
    every = [json.loads(text) for text in set(params)]
    seen = {
        name: {canonical_json(loaded.get(name)) for loaded in every}
        for name in {name for loaded in every for name in loaded} - {but}
    }
    return sorted(name for name, values in seen.items() if len(values) > 1)


def choices_of(defense: str, params: Iterable[str]) -> list[str]:
    """The parameters, as JSON each, without those that state circumstances.

    Settings of equal choice are one offer to the customer; the worst of them speaks for it.
    """
    known = registry.now(defense, registry.defenses())
    given = known.circumstances if known else frozenset()
    return [
        canonical_json(
            {name: value for name, value in json.loads(text).items() if name not in given}
        )
        for text in params
    ]


def format_parameter(name: str, value: Any) -> str:
    """A parameter in words, such as 'η = 75'; a word, such as 'frozen', speaks for itself."""
    if name == "head" and value:
        return "private head" if value == "private" else f"head at {value}"
    if name == "auxiliary":
        return "text of the task" if value == OWN else f"text of {value}"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        value = f"{value:g}"
    elif value is None:
        value = "none"
    return f"{SYMBOLS.get(name, name.replace('_', ' '))} = {value}"


def format_parameters(params: str, names: Iterable[str], unset: bool = True) -> str:
    """The named ones of some parameters in words; `params` is JSON, or '' for none.

    Args:
        unset: also those without a value.
    """
    loaded = json.loads(params or "{}")
    told = (name for name in names if name in loaded and (unset or loaded[name] is not None))
    return ", ".join(format_parameter(name, loaded[name]) for name in told)


def describe_setup(row: Row, peers: pd.DataFrame) -> str:
    """What tells the setup of a row from those of its peers, which share task, model and defense.

    Names the data limit, the settings of training and how often canaries are planted where they tell setups
    apart, else the setup's digits.
    """
    return _apart(row, peers, "setup")


def describe_setup_of_curve(row: Row, peers: pd.DataFrame) -> str:
    """The same, for a curve on which each point may be trained in its own way."""
    kept = [
        canonical_json({name: json.loads(text)[name] for name in ALIKE}) for text in peers["train"]
    ]
    return _apart(row, peers.assign(train=kept), "shared")


def _apart(row: Row, peers: pd.DataFrame, digits: str) -> str:
    if len(set(peers[digits])) < 2:
        return ""
    found: dict[tuple[Any, ...], set[str]] = {}
    for *trained, own in zip(*(peers[name] for name in [*TRAINED, digits]), strict=True):
        where = tuple(None if pd.isna(value) else value for value in trained)
        found.setdefault(where, set()).add(own)
    if any(len(own) > 1 for own in found.values()):
        return f"setup {row[digits]}"
    parts: list[str] = []
    if len({limit for limit, *_ in found}) > 1:
        parts.append(
            "all data" if pd.isna(row["limit"]) else format_parameter("limit", row["limit"])
        )
    parts.append(format_parameters(row["train"], varying_names(peers["train"])))
    if len({copies for *_, copies in found}) > 1:
        parts.append(f"copies = {row['copies'] or 'none'}")
    return ", ".join(filter(None, parts))


def add_knobs(means: pd.DataFrame) -> pd.DataFrame:
    """Adds the knob of each setting, its value, and how a figure names the point."""
    knobs = {
        defense: knob_of(str(defense), rows["params"]) for defense, rows in means.groupby("defense")
    }
    names = [knobs[defense] for defense in means["defense"]]
    values = [
        json.loads(params).get(name) for name, params in zip(names, means["params"], strict=True)
    ]
    numbers = [float(v) if isinstance(v, int | float) else np.nan for v in values]
    labels = [
        defense if name is None else format_parameter(name, value)
        for defense, name, value in zip(means["defense"], names, values, strict=True)
    ]
    return means.assign(
        knob=pd.Series([name or "" for name in names], index=means.index, dtype="str"),
        knob_value=pd.Series(numbers, index=means.index, dtype="float64"),
        label=pd.Series(labels, index=means.index, dtype="str"),
    )


def distinguish_labels(settings_: pd.DataFrame) -> pd.DataFrame:
    """With labels that tell the settings of each defense apart, its knob first."""
    labels = settings_["label"].copy()
    for _, own in settings_.groupby("defense"):
        rest = varying_names(own["params"], but=own["knob"].iloc[0])
        for index, row in zip(own.index, rows_of(own), strict=True):
            words = [format_parameters(row["params"], rest, unset=False)]
            words += [f"cut = {row['cut']}"] if own["cut"].nunique() > 1 else []
            words += [describe_setup(row, own)]
            words = [word for word in words if word]
            # The name of a defense without a knob says nothing more of a setting that has words.
            named = [] if words and row["label"] == row["defense"] else [row["label"]]
            labels[index] = ", ".join([*named, *words])
    return settings_.assign(label=labels)


def describe_limit(limit: int | None) -> str:
    """How much data a cell takes, in words."""
    return "all examples" if limit is None else f"at most {limit:,} examples per split"
