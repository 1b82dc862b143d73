"""What an audit of the released model proves about ε, beside what its defense claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

import numpy as np

from bench.contracts import Leak, Record
from bench.scoring import provable
from leaderboards.findings.finding import Finding, listed
from leaderboards.tables import Comparison, counted, interval


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """The bounds at each claimed ε, means over seeds; the claim of which most is proven speaks."""
    for comparison in compared:
        by_claim: dict[tuple[str, float], list[tuple[Record, Leak]]] = {}
        for record in comparison.records:
            claimed = record.claim.epsilon_of_members if record.claim else None
            for leak in record.leaks:
                if leak.epsilon is not None and claimed is not None:
                    by_claim.setdefault((record.cell.defense.name, claimed), []).append(
                        (record, leak)
                    )
        for defense in dict.fromkeys(name for name, _ in by_claim):
            own = {claim: seen for (name, claim), seen in by_claim.items() if name == defense}
            if len(own) > 1:
                yield _finding(comparison, defense, own)


def _finding(
    comparison: Comparison, defense: str, own: dict[float, list[tuple[Record, Leak]]]
) -> Finding:
    bounds = {claim: fmean(leak.epsilon or 0.0 for _, leak in seen) for claim, seen in own.items()}
    worst = max(bounds, key=lambda claim: bounds[claim] / claim)
    told = listed(
        [f"{bounds[claim]:.2f} at ε = {claim:g}" for claim in sorted(bounds, reverse=True)]
    )
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
        f"{defense}{_unit(seen[0][0])} is {told} (means over {counted(seeds, 'seed')}): {verdict}.",
        task=comparison.task,
        model=comparison.model,
        settings=tuple(f"{defense} ε={claim:g}" for claim in sorted(own, reverse=True)),
        metric="lower bound of ε",
        figure=bounds[worst],
        interval=interval(values, np.nan, np.nan),
        n=seen[0][1].units,
        seeds=seeds,
        attack=seen[0][1].attack.name,
        keys=tuple(dict.fromkeys(record.key for seen in own.values() for record, _ in seen)),
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
