"""Documents with blocks of findings, claims and papers' tables, which are filled from records.

    <!-- findings: elsewhere variants task=sst2 -->
    - a sentence
    <!-- /findings -->

`findings: all` has all findings, `findings: front` a table and three sentences on settings with five seeds.
`<!-- claims: SAP -->` has the claims of a paper, a group or an id, with our verdicts. `<!-- papers: SAP "Table 3" -->`
has a printed table with our numbers. `<!-- power: claims -->` and `<!-- power: board -->` have the seeds that claims,
costs and leakages need; `<!-- records: tuning -->` and `<!-- records: hours -->` have the trials of settings and what
cells took.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean, grouped
from leakboard.leaderboards.findings.answers import hidden, of_gain
from leakboard.leaderboards.findings.finding import Finding, place_name
from leakboard.leaderboards.findings.power import board_power, claims_power
from leakboard.leaderboards.findings.rules import CONDITIONS, TITLES, findings
from leakboard.leaderboards.rendering import markdown
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    ClaimVerdict,
    RecordSet,
    ResultsTable,
    Setting,
    artefacts,
    choose,
    claim_verdicts,
    count,
    display_name,
    format_percent,
    paper_tables,
    parameter,
    printed_claims,
)

KINDS = ("findings", "claims", "papers", "power", "records")
BLOCK = re.compile(rf"(<!-- ({'|'.join(KINDS)}): ([^\n]*?) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
ABOUT = ("rule", "task", "model", "metric")
"""Names of filters of a block of findings."""
ALL, FRONT = "all", "front"
FRONT_SEEDS = 5
"""Least seeds of a setting that counts on the front."""
TRIALS = "-trials"
"""Ending of a folder with the trials of a suite."""
HELP = (
    "sentences are written between a line '<!-- findings: elsewhere -->' and a line '<!-- /findings -->', "
    "claims between '<!-- claims: SAP -->' and '<!-- /claims -->', papers' tables between "
    "'<!-- papers: SAP \"Table 3\" -->' and '<!-- /papers -->', seeds that are needed between '<!-- power: claims -->' "
    "and '<!-- /power -->'"
)
Writer = Callable[[str], str]


def document(path: Path) -> str:
    """The text of a document with blocks.

    Raises:
        LeakboardError: there is no such file, it is no text, or there is no block in it.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise LeakboardError(f"no such file: {path}; {HELP}") from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise LeakboardError(f"{path} cannot be read as text: {why}") from error
    if not BLOCK.search(text):
        raise LeakboardError(f"{path} has no block of findings; {HELP}")
    return text


def fill(text: str, writers: Mapping[str, Writer]) -> str:
    """The text with new content of each block, from the writer of its kind.

    Raises:
        LeakboardError: a block has an unknown name.
    """

    def filled(block: re.Match[str]) -> str:
        return f"{block[1]}\n{writers[block[2]](block[3])}\n{block[4]}"

    return BLOCK.sub(filled, text)


class Writers(dict[str, Writer]):
    """Writers of all kinds of blocks for some records."""

    def __init__(self, records: RecordSet) -> None:
        found = findings(records.table)
        verdicts = claim_verdicts(records.table, printed_claims())
        super().__init__(
            findings=lambda words: _findings(words, found, records.table),
            claims=lambda words: claims_table(words, verdicts),
            papers=lambda words: papers(words, records),
            power=_one_of(
                "power",
                claims=lambda: claims_power(records.table, verdicts),
                board=lambda: board_power(records.table),
            ),
            records=_one_of(
                "records", tuning=lambda: tuning_table(records), hours=lambda: hours_table(records)
            ),
        )


def _one_of(block: str, **writers: Callable[[], str]) -> Writer:
    """Writer of a block that has one of some words; it raises LeakboardError for another word."""

    def written(word: str) -> str:
        if word not in writers:
            expected = " or ".join(f"'{known}'" for known in writers)
            raise LeakboardError(f"{block}: unknown '{word}'; expected {expected}")
        return writers[word]()

    return written


def chosen(found: Sequence[Finding], words: Sequence[str]) -> list[Finding]:
    """Findings of some rules, optionally restricted by `task=NAME`, `model=NAME` or `metric=NAME`.

    Raises:
        LeakboardError: an unknown rule or filter.
    """
    filters: dict[str, set[str]] = {}
    for word in words:
        name, _, value = word.partition("=") if "=" in word else ("rule", "", word)
        if name not in ABOUT:
            raise LeakboardError(f"'{name}=': unknown. {did_you_mean(name, ABOUT)}")
        if name == "rule" and value not in TITLES:
            raise LeakboardError(f"rule: unknown '{value}'. {did_you_mean(value, TITLES)}")
        filters.setdefault(name, set()).add(value)
    return [
        finding
        for finding in found
        if all(getattr(finding, name) in values for name, values in filters.items())
    ]


def bullets(found: Iterable[Finding]) -> str:
    """A list in Markdown."""
    return "".join(f"- {finding.sentence}\n" for finding in found)


def _findings(words: str, found: Sequence[Finding], table: ResultsTable) -> str:
    if words == FRONT:
        return front(table)
    if words == ALL:
        parts = [f"{CONDITIONS}\n"]
        for rule, own in groupby(found, key=lambda finding: finding.rule):
            parts.append(f"**{TITLES[rule]}** (`{rule}`)\n\n{bullets(own)}")
        return "\n".join(parts)
    return bullets(chosen(found, words.split()))


def front(table: ResultsTable) -> str:
    """A table of the leakage within the budget for each goal, and at most three sentences.

    They rest on settings with `FRONT_SEEDS` seeds or more, or on all if there are no such.
    """
    table = table.reproduced
    table = table.where(lambda setting: len(setting.seeds) >= FRONT_SEEDS) or table
    found = findings(table)
    rows = []
    for goal in Goal:
        own, word = table.select(goal=goal), GOAL_WORDS[goal]
        if goal == Goal.MEMORISATION and any(parameter(r, "canaries") == "missed" for r in own):
            word += " that detectors miss"  # the worst circumstance counts
        counted = (r for r in own if r.is_certified and r.is_made_for_goal and r.has_cost)
        places = grouped(counted, lambda row: (row.setting.task, row.setting.model))
        if not places:
            continue
        task, model = max(places, key=lambda at: len({row.defense for row in places[at]}))
        best = choose(table, task, goal.value, model=model)
        half = table.least_cost_of_halving.get((goal, task, model))
        leak = "not clearly below 100 %"
        if best.setting is not None:
            leak = f"{format_percent(best.leakage.value)} ({best.names})"
        cost = "none that still learns"
        if half is not None and (cheapest := half.setting) is not None:
            lost, hides = of_gain(cheapest, half.value), hidden(table, cheapest)
            least = f"{lost} ({cheapest.setting.choice}; {hides})"
            cost = least if cheapest.still_learns else f"{cost}; {least}"
        rows.append((word, place_name(task, model), leak, cost))
    head = ("what is hidden", "task", f"leakage within {BUDGET:g} points", "cost of hiding half")
    first = {finding.rule: finding for finding in reversed(found)}
    shown = [first[rule] for rule in ("headlines", "elsewhere", "text") if rule in first]
    return f"{markdown(head, rows)}\n\n{bullets(shown)}"


def claims_table(words: str, verdicts: Sequence[ClaimVerdict]) -> str:
    """Table of the claims of papers, groups or ids, with our verdicts.

    Raises:
        LeakboardError: no claim has such a paper, group or id.
    """
    if words == ALL:
        return _tally(verdicts)
    named = [({v.claim.paper, v.claim.group or "", v.claim.id}, v) for v in verdicts]
    known, wanted = set[str]().union(*(names for names, _ in named)) - {""}, {*shlex.split(words)}
    for word in sorted(wanted - known):
        raise LeakboardError(f"claims: unknown '{word}'. {did_you_mean(word, known)}")
    rows = [verdict.words() for names, verdict in named if names & wanted]
    return markdown(("claim", "where", "ours", "verdict", "excluded"), rows) + "\n"


def _tally(verdicts: Sequence[ClaimVerdict]) -> str:
    """The number of claims of each paper by verdict."""
    words = ("replicated", "contradicted", "undecided", "not measured")
    rows = []
    for paper in dict.fromkeys(verdict.claim.paper for verdict in verdicts):
        own: list[str] = [verdict.answer for verdict in verdicts if verdict.claim.paper == paper]
        rows.append((paper, *(f"{own.count(word)}" for word in words)))
    return markdown(("paper", *words), rows) + "\n"


def papers(words: str, found: RecordSet) -> str:
    """A printed table with our numbers, such as `SAP "Table 3"`.

    Raises:
        LeakboardError: an unknown paper or table.
    """
    wanted = tuple(shlex.split(words))
    if wanted not in artefacts():
        names = [f'{paper} "{artefact}"' for paper, artefact in artefacts()]
        raise LeakboardError(f"papers: unknown '{words}'. {did_you_mean(words, names)}")
    parts = []
    for table in paper_tables(found.table, found.by_folder, [(wanted[0], wanted[1])]):
        rows = [tuple(map(str, row)) for row in table.frame.itertuples(index=False)]
        notes = "".join(f"\n- {note}" for note in table.notes)
        parts.append(
            f"**{table.title}**\n\n{markdown([*map(str, table.frame)], rows)}\n{notes}".rstrip()
            + "\n"
        )
    return "\n".join(parts)


def tuning_table(records: RecordSet) -> str:
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
        for trials, own in sorted(grouped(found, lambda setting: setting.trials).items()):
            names = ", ".join(dict.fromkeys(display_name(setting.defense) for setting in own))
            rows.append((folder, str(trials), str(len(own)), names))
    tuned = sum(setting.trials > 0 for setting in settings.values())
    return (
        f"{tuned} of {len(settings)} settings were tuned, in the folders below. "
        f"In {count(by_judgement, 'other folder')}, no setting was tuned.\n\n"
        f"{markdown(('folder', 'trials', 'settings', 'defenses'), rows)}\n"
    )


def hours_table(records: RecordSet) -> str:
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
