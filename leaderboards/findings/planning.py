"""Tables of the seeds that claims, costs and leakages need, from the spread over seeds of their records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf, sqrt
from statistics import median

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.findings.power import ENOUGH, Comparison, comparisons
from leakboard.leaderboards.rendering import markdown
from leakboard.leaderboards.tables import (
    ClaimVerdict,
    ResultsTable,
    format_number,
    printed_claims,
)

CLAIMS, BOARD = "claims", "board"
ANSWERED = ("replicated", "contradicted")


def power_table(words: str, table: ResultsTable, verdicts: Sequence[ClaimVerdict]) -> str:
    """`claims`: what each printed claim needs; `board`: what costs and leakages need, by task.

    Raises:
        LeakboardError: another word.
    """
    if words == CLAIMS:
        return _claims(comparisons(table, printed_claims()), verdicts)
    if words == BOARD:
        return _by_task(comparisons(table, []))
    raise LeakboardError(f"power: unknown '{words}'; expected '{CLAIMS}' or '{BOARD}'")


def _claims(found: Iterable[Comparison], verdicts: Sequence[ClaimVerdict]) -> str:
    """The claims that are open, each with the cheapest of its pairs that have most seeds."""
    by_claim: dict[str, list[Comparison]] = {}
    for one in found:
        by_claim.setdefault(one.subject, []).append(one)
    rows = []
    for verdict in verdicts:
        pairs = by_claim.get(verdict.claim.id, [])
        if verdict.answer in ANSWERED:
            continue
        if not pairs:
            rows.append([verdict.claim.id, verdict.answer, *["–"] * 8])
            continue
        best = min(pairs, key=lambda one: (-one.seeds, one.seconds))
        best = replace(best, spread=_pooled(pairs))
        needed = best.seeds_needed()
        more = max((needed or 0) - best.seeds, 0)
        rows.append(
            [
                verdict.claim.id,
                verdict.answer,
                str(len(pairs)),
                f"{best.least}{' either way' * best.is_equality}",
                format_number(best.spread),
                str(best.seeds),
                format_number(best.excluded(best.seeds)),
                "> 1000" if needed is None else str(needed),
                "–" if needed is None else str(more * len(best.settings)),
                "–" if needed is None else f"{best.hours(needed, best.seeds):.1f}",
            ]
        )
    answers: list[str] = [one.answer for one in verdicts]
    counts = ", ".join(f"{answers.count(word)} {word}" for word in ANSWERED)
    head = (
        *("claim", "verdict", "pairs", "matters", "sd", "seeds", "excluded"),
        *("needed", "cells", "hours"),
    )
    decided = sum(answer in ANSWERED for answer in answers)
    return (
        f"{decided} of {len(answers)} claims are decided ({counts}). These are open:\n\n"
        f"{markdown(head, rows)}\n"
    )


def _pooled(pairs: Sequence[Comparison]) -> float:
    """Standard deviation over the seeds of all pairs."""
    freedom = sum(one.seeds - 1 for one in pairs)
    return sqrt(sum((one.seeds - 1) * one.spread**2 for one in pairs) / freedom)


def _by_task(found: Iterable[Comparison]) -> str:
    def place(one: Comparison) -> tuple[str, str, str]:
        return one.kind, one.subject, one.task

    rows = []
    for (kind, subject, task), group in groupby(sorted(found, key=place), key=place):
        own = list(group)
        needed = [one.seeds_needed() or inf for one in own]
        strong = sum(one.power(one.seeds) >= ENOUGH for one in own)
        half = median(needed)
        rows.append(
            (
                f"{kind} ({subject})" if kind == "leakage" else kind,
                task,
                own[0].least,
                str(len(own)),
                format_number(median(one.spread for one in own)),
                format_number(median(one.excluded(one.seeds) for one in own)),
                f"{strong} of {len(own)}",
                "> 1000" if half == inf else f"{half:.0f}",
            )
        )
    head = ("measure", "task", "matters", "settings", "sd", "excluded", "power ≥ 0.5", "needed")
    return markdown(head, rows) + "\n"
