"""The parameters of a method: which vary, which is the knob, which its user chooses; and in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from leakboard.bench.methods import registry
from leakboard.bench.tasks import TASK_ITSELF
from leakboard.leaderboards.tables.frame import ALIKE, Row, canonical
from leakboard.leaderboards.tables.looks import look
from leakboard.leaderboards.tables.means import TRAINED

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


def knob(defense: str, params: Iterable[str]) -> str | None:
    """The declared knob; for a defense unknown here, its only number that varies over `params`."""
    declared = look(defense).knob
    if declared is not None:
        return declared
    texts = list(params)
    loaded = [json.loads(text) for text in texts]
    numbers = [
        name
        for name in varying(texts)
        if all(isinstance(p.get(name), int | float | None) for p in loaded)
        and not any(isinstance(p.get(name), bool) for p in loaded)
    ]
    return numbers[0] if len(numbers) == 1 else None


def varying(params: Iterable[str], but: str | None = None) -> list[str]:
    """Names of the parameters that do not have one value throughout, sorted, `but` one.

    Args:
        params: each as JSON.
    """
    every = [json.loads(text) for text in set(params)]
    seen = {
        name: {canonical(loaded.get(name)) for loaded in every}
        for name in {name for loaded in every for name in loaded} - {but}
    }
    return sorted(name for name, values in seen.items() if len(values) > 1)


def choices(defense: str, params: Iterable[str]) -> list[str]:
    """The parameters, as JSON each, without those that state circumstances.

    Settings of equal choice are one offer to the customer; the worst of them speaks for it.
    """
    known = registry.find(defense, registry.defenses())
    given = known.circumstances if known else frozenset()
    return [
        canonical({name: value for name, value in json.loads(text).items() if name not in given})
        for text in params
    ]


def setting(name: str, value: Any) -> str:
    """A parameter in words, such as 'η = 75'; a word, such as 'frozen', speaks for itself."""
    if name == "head" and value:
        return "private head" if value == "private" else f"head at {value}"
    if name == "auxiliary":
        return "text of the task" if value == TASK_ITSELF else f"text of {value}"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        value = f"{value:g}"
    elif value is None:
        value = "none"
    return f"{SYMBOLS.get(name, name.replace('_', ' '))} = {value}"


def settings(params: str, names: Iterable[str], unset: bool = True) -> str:
    """The named ones of some parameters in words; `params` is JSON, or '' for none.

    Args:
        unset: also those without a value.
    """
    loaded = json.loads(params or "{}")
    told = (name for name in names if name in loaded and (unset or loaded[name] is not None))
    return ", ".join(setting(name, loaded[name]) for name in told)


def setup(row: Row, peers: pd.DataFrame) -> str:
    """What tells the setup of a row from those of its peers, which share task, model and defense.

    Names the data limit, the settings of training and how often canaries are planted where they tell setups
    apart, else the setup's digits.
    """
    return _apart(row, peers, "setup")


def setup_of_curve(row: Row, peers: pd.DataFrame) -> str:
    """The same, for a curve on which each point may be trained in its own way."""
    kept = [canonical({name: json.loads(text)[name] for name in ALIKE}) for text in peers["train"]]
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
        parts.append("all data" if pd.isna(row["limit"]) else setting("limit", row["limit"]))
    parts.append(settings(row["train"], varying(peers["train"])))
    if len({copies for *_, copies in found}) > 1:
        parts.append(f"copies = {row['copies'] or 'none'}")
    return ", ".join(filter(None, parts))


def examples(limit: int | None) -> str:
    """How much data a cell takes, in words."""
    return "all examples" if limit is None else f"at most {limit:,} examples per split"


def counted(n: int, noun: str) -> str:
    """'1 seed', '3 seeds'."""
    return f"{n} {noun}{'s' * (n != 1)}"
