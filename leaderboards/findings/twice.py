"""What fine-tuning a second time, on what was masked, gives back of what redaction takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leakboard.bench.contracts import Record
from leakboard.bench.defending import DETECTORS, Private
from leakboard.bench.methods import registry
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.findings.variants import Pair, either_way, gains_of, of_gains
from leakboard.leaderboards.tables import Comparison, format_parameter

WEIGHTS = {"lora": "", "full": "all weights", "head": "a head alone"}
"""Words for what is trained."""
BySeed = dict[int, Record]


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Points of utility of `jft`, whose first phase is redaction as it is, less those of `redacted`, at equal
    detectors on the same texts in the same order, seed by seed; the detector that masks least comes first.

    Both train the same weights: LoRA, all, or a head alone.
    """
    redacted = registry.defenses()["redacted"]
    shared = [name for name in redacted.model_fields if name != "detector"]
    for comparison in compared:
        once: dict[str, dict[str, BySeed]] = {}
        twice: dict[tuple[str, str], dict[str, BySeed]] = {}
        for record in comparison.records:
            of, params = record.cell.defense, record.cell.defense.params
            weights = WEIGHTS[record.cell.train.tune]
            if not record.utility or record.undefended:
                continue
            alike = json.dumps([weights, {name: params.get(name) for name in shared}])
            if of.name == "redacted":
                own = once.setdefault(alike, {})
            elif of.name == "jft" and params["phase1"] == "direct":
                own = twice.setdefault((alike, _second(params)), {})
            else:
                continue
            own.setdefault(params["detector"], {})[record.cell.seed] = record
        for (alike, second), mine in sorted(twice.items()):
            other = once.get(alike, {})
            both = [each for each in DETECTORS if each in mine and each in other]
            pairs: list[tuple[Any, Pair]] = [(each, (other[each], mine[each])) for each in both]
            if gains := gains_of(pairs, redacted):
                verdict = either_way(gains)
                named = ", ".join(filter(None, [f"jft {second}", *_told(*json.loads(alike))]))
                yield of_gains("twice", comparison, "jft", named, "redacted", gains, verdict)


def _second(params: Mapping[str, Any]) -> str:
    """The noise of the second phase, in words."""
    known = Private.model_fields
    own = {name: params[name] for name in known if name in params}
    told = [name for name in own if name == "epsilon" or own[name] != known[name].default]
    return ", ".join(format_parameter(name, own[name]).replace(" = ", "=") for name in told)


def _told(weights: str, shared: Mapping[str, Any]) -> list[str]:
    """What both share and is not as usual, in words."""
    known = registry.defenses()["redacted"].model_fields
    told = {name: value for name, value in shared.items() if value != known[name].default}
    return [*(f"{name} {value}" for name, value in told.items()), weights]
