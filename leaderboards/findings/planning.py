"""Tables of a plan: seeds that claims, costs and leakages need, and tuning and hours of the records that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, sqrt
from statistics import median

from leakboard.bench.contracts import LeakboardError, grouped
from leakboard.leaderboards.findings.power import ENOUGH, Comparison, comparisons
from leakboard.leaderboards.rendering import markdown
from leakboard.leaderboards.tables import (
    ClaimVerdict,
    RecordSet,
    ResultsTable,
    Setting,
    display_name,
    format_number,
    printed_claims,
    reads_either,
)

TRIALS = "-trials"
"""Ending of a folder with the trials of a suite."""
ANSWERED = ("replicated", "contradicted")


def power_table(words: str, table: ResultsTable, verdicts: Sequence[ClaimVerdict]) -> str:
    """`claims`: what each printed claim needs; `board`: what costs and leakages need, by task.

    Raises:
        LeakboardError: another word.
    """
    kinds = {"claims": lambda: _claims(table, verdicts), "board": lambda: _by_task(table)}
    return _of_kind("power", words, kinds)


def _of_kind(block: str, word: str, kinds: Mapping[str, Callable[[], str]]) -> str:
    if word not in kinds:
        expected = " or ".join(f"'{kind}'" for kind in kinds)
        raise LeakboardError(f"{block}: unknown '{word}'; expected {expected}")
    return kinds[word]()


def _claims(table: ResultsTable, verdicts: Sequence[ClaimVerdict]) -> str:
    """The claims that are open, each with the cheapest of its pairs that have most seeds."""
    by_claim = grouped(comparisons(table, printed_claims()), lambda pair: pair.subject)
    rows = []
    for verdict in verdicts:
        pairs = by_claim.get(verdict.claim.id, [])
        if verdict.answer in ANSWERED:
            continue
        if not pairs:
            rows.append([verdict.claim.id, verdict.answer, *["–"] * 8])
            continue
        best = min(pairs, key=lambda pair: (-pair.seeds, pair.seconds))
        best = replace(best, spread=_pooled(pairs))
        needed = best.seeds_needed()
        more = max((needed or 0) - best.seeds, 0)
        blocked = "" if needed is None or more else _obstacle(verdict)
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
                "–" if needed is None or blocked else str(more * len(best.settings)),
                blocked or ("–" if needed is None else f"{best.hours(needed, best.seeds):.1f}"),
            ]
        )
    answers: list[str] = [verdict.answer for verdict in verdicts]
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


def _obstacle(verdict: ClaimVerdict) -> str:
    """What keeps a claim open that has the seeds it needs, or an empty string."""
    if verdict.claim.margin is not None:
        return "at the margin"
    if verdict.claim.goal is not None and not any(map(reads_either, verdict.differences)):
        return "no attack works"
    return ""


def _pooled(pairs: Sequence[Comparison]) -> float:
    """Standard deviation over the seeds of all pairs."""
    freedom = sum(pair.seeds - 1 for pair in pairs)
    return sqrt(sum((pair.seeds - 1) * pair.spread**2 for pair in pairs) / freedom)


def _by_task(table: ResultsTable) -> str:
    found = grouped(comparisons(table, []), lambda one: (one.kind, one.subject, one.task))
    rows = []
    for (kind, subject, task), own in sorted(found.items()):
        needed = [comparison.seeds_needed() or inf for comparison in own]
        strong = sum(comparison.power(comparison.seeds) >= ENOUGH for comparison in own)
        half = median(needed)
        rows.append(
            (
                f"{kind} ({subject})" if kind == "leakage" else kind,
                task,
                own[0].least,
                str(len(own)),
                format_number(median(comparison.spread for comparison in own)),
                format_number(median(comparison.excluded(comparison.seeds) for comparison in own)),
                f"{strong} of {len(own)}",
                "> 1000" if half == inf else f"{half:.0f}",
            )
        )
    head = ("measure", "task", "matters", "settings", "sd", "excluded", "power ≥ 0.5", "needed")
    return markdown(head, rows) + "\n"


def records_table(words: str, records: RecordSet) -> str:
    """`tuning`: trials of the settings of each folder; `hours`: what its cells took.

    Raises:
        LeakboardError: another word.
    """
    kinds = {"tuning": lambda: _tuning(records), "hours": lambda: _hours(records)}
    return _of_kind("records", words, kinds)


def _tuning(records: RecordSet) -> str:
    """The settings of each folder with a tuned one, by their number of trials."""
    settings: dict[int, Setting] = {}
    rows, by_judgement = [], 0
    for folder, keys in records.by_folder.items():
        found = [
            setting
            for setting in records.table.settings
            if setting.defense != "untuned" and not keys.isdisjoint(setting.keys)
        ]
        if folder.endswith(TRIALS) or not found:
            continue
        settings |= {id(setting): setting for setting in found}
        if not any(setting.trials for setting in found):
            by_judgement += 1
            continue
        for trials in sorted({setting.trials for setting in found}):
            own = [setting for setting in found if setting.trials == trials]
            names = ", ".join(dict.fromkeys(display_name(setting.defense) for setting in own))
            rows.append((folder, str(trials), str(len(own)), names))
    tuned = sum(setting.trials > 0 for setting in settings.values())
    return (
        f"{tuned} of {len(settings)} settings were tuned, in the folders below. In {by_judgement} more, none was.\n\n"
        f"{markdown(('folder', 'trials', 'settings', 'defenses'), rows)}\n"
    )


def _hours(records: RecordSet) -> str:
    """Cells, seeds and hours of one process of each folder."""
    by_key = {record.key: record for record in records}
    rows, spent = [], 0.0
    for folder, keys in records.by_folder.items():
        own = [by_key[key] for key in sorted(keys) if key in by_key]
        seconds = sum(record.cost.total_seconds for record in own if record.cost is not None)
        seeds = len({record.cell.seed for record in own})
        rows.append((folder, str(len(own)), str(seeds), f"{seconds / 3600:.1f}"))
        spent += seconds
    head = ("folder", "cells", "seeds", "hours of one process")
    return f"{len(by_key):,} cells took {spent / 3600:.0f} hours of one process.\n\n{markdown(head, rows)}\n"
