"""A defense as its class declares it (name, goals, style, knob), and its parameters in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, nan
from typing import Any

from leakboard.bench.contracts import Goal, grouped
from leakboard.bench.methods import Defense, registry
from leakboard.bench.records import Row, canonical_json
from leakboard.bench.tasks import TASK_ITSELF
from leakboard.leaderboards.tables.leakage import Reader

PALETTE = (
    "#332288",
    "#117733",
    "#882255",
    "#0077bb",
    "#cc6677",
    "#aa4499",
    "#44aa99",
    "#999933",
    "#ee7733",
)
"""Colours that colour-blind readers can distinguish, after Paul Tol's schemes."""
MARKERS = "osD^vP<>"
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
NAMELESS = frozenset({"bottom", "canaries", "detector", "encoder", "phase1"})
"""Parameters whose words say enough without a name, such as 'trainable' and 'high-entity'."""
VARIANTS = frozenset({"bottom", "phase1"})
"""Parameters that make another method of a defense; a value other than the default is told of a lone setting, too."""
PHASE1_TRAINING = ("phase1_batch_size", "phase1_epochs", "phase1_learning_rate")
"""Parameters that are settings of training; they are named only where no other parameter distinguishes settings."""
TELLING = ("epochs", "learning_rate", "batch_size")
"""Settings of training that tell readers most, in this order."""


@dataclass(frozen=True)
class Style:
    """Colour and marker of one defense."""

    colour: str
    marker: str


def style_of(defense: str) -> Style:
    """The style that the defense's class declares, else one derived from its name.

    A name decides its style without regard to other names, so nothing shifts when a method is added.
    """
    cls = class_of(defense)
    if cls.colour:
        return Style(cls.colour, cls.marker)
    seed = hashlib.sha256(defense.encode()).digest()
    return Style(PALETTE[seed[0] % len(PALETTE)], MARKERS[seed[1] % len(MARKERS)])


def attacks_of_authors(defense: str, *goals: Goal) -> Reader | None:
    """Attacks of a defense's authors on some goals, all by default, as they report them; None if there are none."""
    cls = class_of(defense)
    names = [name for goal in goals or cls.measured_by for name in cls.measured_by.get(goal, ())]
    own = Reader(tuple(dict.fromkeys(names)), tuple(cls.measured_on), worst=cls.measured_worst)
    return own if names else None


def display_name(defense: str) -> str:
    """A defense as its authors write it."""
    return class_of(defense).display_name or defense


def goals_of(defense: str) -> frozenset[Goal]:
    """The goals against which a defense is made; none for baselines and unknown methods."""
    cls = class_of(defense)
    return frozenset({*cls.protects, *cls.measured_by})


def class_of(defense: str) -> type[Defense]:
    """The class of a defense; that of all, which declares nothing, for an unknown one."""
    return registry.find(defense, registry.defenses()) or Defense


def knob_of(defense: str, params: Iterable[str]) -> str | None:
    """The declared knob; for an unknown defense its only number that varies over `params`."""
    declared = class_of(defense).knob
    if declared is not None:
        return declared
    texts = list(params)
    loaded = [json.loads(text) for text in texts]
    numbers = [
        name
        for name in varying_names(texts)
        if all(type(own.get(name)) in (int, float, type(None)) for own in loaded)
    ]
    return numbers[0] if len(numbers) == 1 else None


def varying_names(params: Iterable[str], but: str | None = None) -> list[str]:
    """Names of the parameters that do not have one value throughout, sorted, `but` one.

    Those in `PHASE1_TRAINING` are left out if the others distinguish as much.

    Args:
        params: each as JSON.
    """
    every = [json.loads(text) for text in set(params)]
    seen = {
        name: {canonical_json(loaded.get(name)) for loaded in every}
        for name in {name for loaded in every for name in loaded} - {but}
    }
    names = sorted(name for name, values in seen.items() if len(values) > 1)
    few = [name for name in names if name not in PHASE1_TRAINING]

    def distinct(some: Sequence[str]) -> int:
        return len({canonical_json([own.get(name) for name in [*some, but]]) for own in every})

    return few if distinct(few) == distinct(names) else names


def other_params(params: str, *but: str | None) -> str:
    """Parameters without those of some names, as JSON."""
    return canonical_json({n: value for n, value in json.loads(params).items() if n not in but})


def format_parameter(name: str, value: Any) -> str:
    """A parameter in words, such as 'η = 75'; the names in `NAMELESS` are left out."""
    if name == "head" and value:
        return "private head" if value == "private" else f"head at {value}"
    if name == "auxiliary":
        return "text of the task" if value == TASK_ITSELF else f"text of {value}"
    if name in NAMELESS and isinstance(value, str):
        return value
    if isinstance(value, float):
        value = f"{value:g}"
    elif value is None:
        value = "none"
    return f"{SYMBOLS.get(name, name.replace('_', ' '))} = {value}"


def format_parameters(params: str, names: Iterable[str], unset: bool = True) -> str:
    """Some parameters in words; `params` is JSON, or '' for none.

    Args:
        unset: include those without a value.
    """
    loaded = json.loads(params or "{}")
    shown = (name for name in names if name in loaded and (unset or loaded[name] is not None))
    return ", ".join(format_parameter(name, loaded[name]) for name in shown)


def describe_limit(limit: int | None) -> str:
    """Number of examples that a cell uses, in words."""
    return "all examples" if limit is None else f"at most {limit:,} examples per split"


def labels_of(rows: Sequence[Row]) -> list[tuple[str, str, float]]:
    """For each setting of a group the words that distinguish it from others of its defense, its knob and the knob's value.

    Args:
        rows: each with `defense`, `params` (JSON), `cut`, `train` (JSON) and `setup`, which all else decides.
    """
    found: dict[int, tuple[str, str, float]] = {}
    for defense, own in grouped(rows, lambda row: row["defense"]).items():
        params = [row["params"] for row in own]
        knob = knob_of(defense, params) or ""
        varying = sorted({*varying_names(params, but=knob), *_variants(defense, params)})
        cuts = {row["cut"] for row in own}
        for row in own:
            value = json.loads(row["params"]).get(knob)
            words = [
                format_parameter(knob, value) if knob else "",
                format_parameters(row["params"], varying, unset=False),
                f"cut = {row['cut']}" if len(cuts) > 1 else "",
                _describe_training(row, own),
            ]
            number = float(value) if isinstance(value, int | float) else nan
            found[id(row)] = ", ".join(filter(None, words)) or defense, knob, number
    return [found[id(row)] for row in rows]


def _variants(defense: str, params: Iterable[str]) -> set[str]:
    """The names of `VARIANTS` that have another value than the default somewhere."""
    fields, every = class_of(defense).model_fields, [json.loads(text) for text in params]
    return {
        name
        for name in VARIANTS & fields.keys()
        if any(own.get(name, fields[name].default) != fields[name].default for own in every)
    }


def _describe_training(row: Row, peers: Sequence[Row]) -> str:
    """The fewest settings of training that distinguish a row from its peers, else the digits of its setup."""
    setups = {(peer["train"], peer["setup"]) for peer in peers}
    if len({setup for _, setup in setups}) < 2:
        return ""
    if len({train for train, _ in setups}) < len(setups):
        return f"setup {row['setup']}"
    others = [json.loads(train) for train in {train for train, _ in setups} - {row["train"]}]
    mine = json.loads(row["train"])
    varying = varying_names(train for train, _ in setups)
    names = sorted(varying, key=lambda name: TELLING.index(name) if name in TELLING else inf)
    chosen = next(
        some
        for size in range(1, len(names) + 1)
        for some in combinations(names, size)
        if all(any(mine[name] != other[name] for name in some) for other in others)
    )
    return format_parameters(row["train"], chosen)
