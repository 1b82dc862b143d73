"""What tuning a prompt on privatised text keeps beside LoRA, and what rebuilding plain tokens adds to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leakboard.bench.contracts import Record
from leakboard.bench.methods import registry
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.findings.variants import Pair, either_way, gains_of, of_gains
from leakboard.leaderboards.tables import Comparison

RECONSTRUCTION, RATE = "reconstruction", "rate"


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Points of utility of `rapt` less those of `sap` at the embedding cut, and less its own without
    reconstruction; and where a part of it is changed, less its own as it is otherwise. All at equal η on
    the same texts in the same order, seed by seed."""
    fields = registry.defenses()["rapt"].model_fields
    for comparison in compared:
        own: dict[str, dict[Any, dict[int, Record]]] = {}
        split: dict[Any, dict[int, Record]] = {}
        for record in comparison.records:
            cell, params = record.cell, record.cell.defense.params
            if not record.utility or record.undefended:
                continue
            if cell.defense.name == "rapt":
                rest = {name: value for name, value in params.items() if name != "eta"}
                at = own.setdefault(json.dumps(rest, sort_keys=True), {})
                at.setdefault(params["eta"], {})[cell.seed] = record
            elif cell.defense.name == "sap" and (cell.cut, params.get("bottom")) == (0, "frozen"):
                split.setdefault(params["eta"], {})[cell.seed] = record
        for text, by_eta in own.items():
            rest = json.loads(text)
            yield from _against(comparison, rest, by_eta, split, "sap, of the same mechanism")
            without = own.get(json.dumps(rest | {RECONSTRUCTION: False}, sort_keys=True), {})
            if rest[RECONSTRUCTION]:
                yield from _against(comparison, rest, by_eta, without, "itself without it")
            usual = {name: fields[name].default for name in rest} | {RATE: rest[RATE]}
            if rest[RECONSTRUCTION] and rest != usual:
                whole = own.get(json.dumps(usual, sort_keys=True), {})
                yield from _against(comparison, rest, by_eta, whole, "itself as in the paper")


def _against(
    comparison: Comparison,
    rest: Mapping[str, Any],
    mine: Mapping[Any, dict[int, Record]],
    other: Mapping[Any, dict[int, Record]],
    named: str,
) -> Iterator[Finding]:
    cls = registry.defenses()["rapt"]
    pairs: list[tuple[Any, Pair]] = [(eta, (other[eta], mine[eta])) for eta in mine if eta in other]
    gains = gains_of(pairs, cls)
    if not gains:
        return
    told = {name: value for name, value in rest.items() if value != cls.model_fields[name].default}
    told.pop(RECONSTRUCTION, None)
    words = ["rapt" + ("" if rest[RECONSTRUCTION] else " without reconstruction")]
    words += [f"{name}={value}" for name, value in told.items()]
    yield of_gains("prompts", comparison, "rapt", " ".join(words), named, gains, either_way(gains))
