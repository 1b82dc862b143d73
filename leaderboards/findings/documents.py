"""Documents with blocks of findings, claims and papers' tables, which are filled from records.

    <!-- findings: elsewhere variants task=sst2 -->
    - a sentence
    <!-- /findings -->

`findings: all` has all findings, `findings: front` a table and three sentences. `<!-- claims: SAP -->` has the claims of
a paper, a group or an id, with our verdicts. `<!-- papers: SAP "Table 3" -->` has a printed table with our numbers.
`<!-- power: claims -->` and `<!-- power: board -->` have the seeds that claims, costs and leakages need;
`<!-- records: tuning -->` and `<!-- records: hours -->` have the trials of settings and what cells took.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean
from leakboard.leaderboards.findings.answers import least_cost_of_halving
from leakboard.leaderboards.findings.finding import Finding, task_name
from leakboard.leaderboards.findings.planning import power_table, records_table
from leakboard.leaderboards.findings.rules import CONDITIONS, TITLES, findings
from leakboard.leaderboards.rendering import markdown
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    ClaimVerdict,
    RecordSet,
    ResultsTable,
    artefacts,
    choose,
    claim_verdicts,
    format_percent,
    format_points,
    paper_tables,
    printed_claims,
)

KINDS = ("findings", "claims", "papers", "power", "records")
BLOCK = re.compile(rf"(<!-- ({'|'.join(KINDS)}): ([^\n]*?) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
ABOUT = ("task", "model", "metric")
"""Names of filters of a block of findings."""
ALL, FRONT = "all", "front"
MOST = 3
"""Number of sentences of `findings: front`."""
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
        raise LeakboardError(f"there is no file {path}; {HELP}") from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise LeakboardError(f"{path} cannot be read as a text: {why}") from error
    if not BLOCK.search(text):
        raise LeakboardError(f"no block of findings is in {path}; {HELP}")
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
            findings=lambda words: _findings(words, found, records.table.reproduced),
            claims=lambda words: claims_table(words, verdicts),
            papers=lambda words: papers(words, records),
            power=lambda words: power_table(words, records.table, verdicts),
            records=lambda words: records_table(words, records),
        )


def chosen(found: Sequence[Finding], words: Sequence[str]) -> list[Finding]:
    """Findings of some rules, optionally restricted by `task=NAME`, `model=NAME` or `metric=NAME`.

    Raises:
        LeakboardError: an unknown rule or filter.
    """
    rules = [word for word in words if "=" not in word]
    filters: dict[str, set[str]] = {}
    for name, _, value in (word.partition("=") for word in words if "=" in word):
        if name not in ABOUT:
            raise LeakboardError(f"'{name}=': unknown. {did_you_mean(name, ABOUT)}")
        filters.setdefault(name, set()).add(value)
    for rule in rules:
        if rule not in TITLES:
            raise LeakboardError(f"rule: unknown '{rule}'. {did_you_mean(rule, TITLES)}")
    return [
        finding
        for finding in found
        if (not rules or finding.rule in rules)
        and all(getattr(finding, name) in values for name, values in filters.items())
    ]


def bullets(found: Iterable[Finding]) -> str:
    """A list in Markdown."""
    return "".join(f"- {finding.sentence}\n" for finding in found)


def _findings(words: str, found: Sequence[Finding], table: ResultsTable) -> str:
    if words == FRONT:
        return front(table, found)
    if words == ALL:
        parts = [f"{CONDITIONS}\n"]
        for rule, own in groupby(found, key=lambda finding: finding.rule):
            parts.append(f"**{TITLES[rule]}** (`{rule}`)\n\n{bullets(own)}")
        return "\n".join(parts)
    return bullets(chosen(found, words.split()))


def front(table: ResultsTable, found: Sequence[Finding]) -> str:
    """A table of the leakage within the budget for each goal, and at most three sentences."""
    halving = least_cost_of_halving(table)
    rows = []
    for goal in Goal:
        defenses: dict[str, set[str]] = {}
        for row in table.select(goal=goal):
            if row.is_certified and row.is_made_for_goal and row.has_cost:
                defenses.setdefault(row.setting.task, set()).add(row.defense)
        if not defenses:
            continue
        task = max(defenses, key=lambda name: len(defenses[name]))
        best, half = choose(table, task, goal.value), halving.get((goal, task))
        leak = "not clearly below 100 %"
        if best.setting is not None:
            leak = f"{format_percent(best.leakage.value)} ({best.setting.name})"
        cost = "no measured setting"
        if half is not None and half.setting is not None:
            cost = f"{format_points(half.value.value)} {half.setting.setting.unit} ({half.setting.name})"
        rows.append((GOAL_WORDS[goal], task_name(task), leak, cost))
    head = ("what is hidden", "task", f"leakage within {BUDGET:g} points", "cost of hiding half")
    first = {finding.rule: finding for finding in reversed(found)}
    shown = [first[rule] for rule in ("headlines", "elsewhere", "text") if rule in first]
    return f"{markdown(head, rows)}\n\n{bullets(shown[:MOST])}"


def claims_table(words: str, verdicts: Sequence[ClaimVerdict]) -> str:
    """Table of the claims of papers, groups or ids, with our verdicts.

    Raises:
        LeakboardError: no claim has such a paper, group or id.
    """
    wanted = shlex.split(words)
    known = {n for v in verdicts for n in (v.claim.paper, v.claim.group, v.claim.id) if n}
    for word in wanted:
        if word not in known and word != ALL:
            raise LeakboardError(f"claims: unknown '{word}'. {did_you_mean(word, known)}")
    if wanted == [ALL]:
        return _tally(verdicts)
    rows = [
        verdict.words()
        for verdict in verdicts
        if {verdict.claim.paper, verdict.claim.group, verdict.claim.id} & {*wanted}
    ]
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
