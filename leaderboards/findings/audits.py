"""What an audit of the released model proves about ε, beside what its defense claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

import numpy as np

from leakboard.bench.contracts import Leak, Record, TrainSettings, attack_id
from leakboard.bench.scoring import UNTUNED, provable, proven
from leakboard.leaderboards.findings.finding import Finding, listed
from leakboard.leaderboards.tables import Comparison, canonical, counted, interval

Audited = tuple[Record, Leak]


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """The bounds at each claimed ε, means over seeds; the claim of which most is proven speaks.

    One attack audits all: that which proves most of a model without protection, so that it is not chosen by what it
    proves of the others.
    """
    for comparison in compared:
        audits = [
            (r, leak) for r in comparison.records for leak in r.leaks if leak.epsilon is not None
        ]
        open_ = [(r, k) for r, k in audits if r.undefended and r.cell.defense.name != UNTUNED]
        claimed = [(r, k) for r, k in audits if r.claim and r.claim.epsilon_of_members is not None]
        for defense in dict.fromkeys(record.cell.defense.name for record, _ in claimed):
            own = [(r, k) for r, k in claimed if r.cell.defense.name == defense]
            attack = _auditor(open_, own)
            by_claim: dict[float, list[Audited]] = {}
            for record, leak in _by(attack, own):
                claim = record.claim.epsilon_of_members if record.claim else None
                by_claim.setdefault(claim or 0.0, []).append((record, leak))
            if len(by_claim) > 1:
                yield _finding(comparison, defense, by_claim, _most(_by(attack, open_)))


def _auditor(open_: Sequence[Audited], own: Sequence[Audited]) -> str:
    """Of the attacks on a defense that which proves most without protection, of equal ones the first."""
    attacks = dict.fromkeys(attack_id(leak.attack) for _, leak in own)
    return max(attacks, key=lambda attack: _bound(_by(attack, open_)))


def _most(audits: Sequence[Audited]) -> list[Audited]:
    """Those of the one setting of which most is proven on average."""
    settings: dict[tuple[str, str, TrainSettings], list[Audited]] = {}
    for record, leak in audits:
        of = record.cell.defense
        mine = settings.setdefault((of.name, canonical(of.params), record.cell.train), [])
        mine.append((record, leak))
    return max(settings.values(), key=_bound, default=[])


def _bound(audits: Sequence[Audited]) -> float:
    """The ε that is proven on average; 0 where there is no audit."""
    return fmean([leak.epsilon or 0.0 for _, leak in audits] or [0.0])


def _by(attack: str, audits: Sequence[Audited]) -> list[Audited]:
    return [(record, leak) for record, leak in audits if attack_id(leak.attack) == attack]


def _finding(
    comparison: Comparison,
    defense: str,
    own: dict[float, list[Audited]],
    open_: Sequence[Audited],
) -> Finding:
    bounds = {claim: _bound(seen) for claim, seen in own.items()}
    worst = max(bounds, key=lambda claim: bounds[claim] / claim)
    above = [claim for claim in bounds if bounds[claim] > claim]
    verdict = "above the claim: a fault in the defense" if above else "below every claim"
    ceilings = {claim: fmean(_provable(*one) for one in seen) for claim, seen in own.items()}
    idle = [f"{claim:g}" for claim in sorted(own, reverse=True) if ceilings[claim] < claim]
    verdict += f". A perfect attacker would prove {_span(ceilings.values())}"
    if idle:
        verdict += f", so that no violation of ε = {listed(idle)} could have been found"
    seen = own[worst]
    values = np.array([leak.epsilon or 0.0 for _, leak in seen])
    seeds = len({record.cell.seed for record, _ in seen})
    return Finding(
        rule="audits",
        claim=f"On {comparison.task} with {comparison.model}, what {seen[0][1].attack.name} proves about the ε of "
        f"{defense}{_unit(seen[0][0])} is {_at(bounds)} (means over {counted(seeds, 'seed')}): {verdict}."
        + _without_noise(own, open_),
        task=comparison.task,
        model=comparison.model,
        settings=tuple(f"{defense} ε={claim:g}" for claim in sorted(own, reverse=True)),
        metric="lower bound of ε",
        figure=bounds[worst],
        interval=interval(values, np.nan, np.nan),
        n=seen[0][1].units,
        seeds=seeds,
        attack=seen[0][1].attack.name,
        keys=tuple(
            dict.fromkeys(record.key for seen in [*own.values(), open_] for record, _ in seen)
        ),
    )


def _without_noise(own: dict[float, list[Audited]], open_: Sequence[Audited]) -> str:
    """What the same attack proves by each claim of models without protection, and so whether it would notice."""
    found = dict[float, float]()
    for claim, seen in own.items():
        promised = seen[0][0].claim
        assert promised
        bounds = [bound for _, leak in open_ if (bound := proven(leak, promised)) is not None]
        if not bounds:
            return ""
        found[claim] = fmean(bounds)
    missed = [f"{claim:g}" for claim in sorted(found, reverse=True) if found[claim] <= claim]
    told = f" Of a model that is not protected at all it proves {_at(found)}: "
    if not missed:
        return f"{told}missing noise would be noticed."
    if len(missed) == len(found):
        return f"{told}not even missing noise would be noticed."
    return f"{told}missing noise would not be noticed at ε = {listed(missed)}."


def _at(bounds: dict[float, float]) -> str:
    return listed(
        [f"{bounds[claim]:.2f} at ε = {claim:g}" for claim in sorted(bounds, reverse=True)]
    )


def _unit(record: Record) -> str:
    return " for an author" if record.claim and record.claim.unit == "author" else ""


def _provable(record: Record, leak: Leak) -> float:
    return provable(record, leak) or 0.0


def _span(ceilings: Iterable[float]) -> str:
    """One number where the claims share it, and else the least and the largest."""
    ends = sorted(ceilings)
    low, high = f"{ends[0]:.2f}", f"{ends[-1]:.2f}"
    return low if low == high else f"{low} to {high}"
