"""What fine-tuning a second time, on what was masked, gives back of what redaction takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.contracts import Record
from bench.defending import DETECTORS
from bench.methods import registry
from leaderboards.findings.finding import Finding
from leaderboards.findings.variants import Pair, either_way, gains_of, of_gains
from leaderboards.tables import Comparison, setting

BySeed = dict[int, Record]


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Points of utility of `jft`, whose first phase is redaction as it is, less those of `redacted`, at equal
    detectors on the same texts in the same order, seed by seed; the detector that masks least comes first."""
    redacted = registry.defenses()["redacted"]
    shared = [name for name in redacted.model_fields if name != "detector"]
    for comparison in compared:
        once: dict[str, dict[str, BySeed]] = {}
        twice: dict[tuple[str, str], dict[str, BySeed]] = {}
        for record in comparison.records:
            of, params = record.cell.defense, record.cell.defense.params
            if not record.utility or record.undefended:
                continue
            alike = json.dumps({name: params.get(name) for name in shared})
            if of.name == "redacted":
                own = once.setdefault(alike, {})
            elif of.name == "jft" and params["phase1"] == "direct":
                own = twice.setdefault((alike, _second(params, shared)), {})
            else:
                continue
            own.setdefault(params["detector"], {})[record.cell.seed] = record
        for (alike, second), mine in twice.items():
            other = once.get(alike, {})
            both = [each for each in DETECTORS if each in mine and each in other]
            pairs: list[tuple[Any, Pair]] = [(each, (other[each], mine[each])) for each in both]
            if gains := gains_of(pairs, redacted):
                verdict = either_way(gains)
                named = ", ".join(filter(None, [f"jft {second}", _told(json.loads(alike))]))
                yield of_gains("twice", comparison, "jft", named, "redacted", gains, verdict)


def _second(params: Mapping[str, Any], shared: Sequence[str]) -> str:
    """What the second phase is like, in words."""
    known = registry.defenses()["jft"].model_fields
    own = {name: value for name, value in params.items() if name not in (*shared, "detector")}
    told = [name for name in own if name == "epsilon" or own[name] != known[name].default]
    return ", ".join(setting(name, own[name]).replace(" = ", "=") for name in told)


def _told(shared: Mapping[str, Any]) -> str:
    """What both share and is not as usual, in words."""
    known = registry.defenses()["redacted"].model_fields
    told = {name: value for name, value in shared.items() if value != known[name].default}
    return ", ".join(f"{name} {value}" for name, value in told.items())
