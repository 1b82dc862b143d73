"""What is checked of a submission: whole, complete, consistent with its raw guesses, and repeatable."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bench.contracts import Leak, LeakboardError, Record, name_of
from bench.methods import registry
from bench.records import Corrupt, Outcome, from_bytes
from bench.scoring import FLAGS, flags, rescored
from bench.submissions.packing import Submission, opened
from bench.submissions.untrusted import Refused, parsed, plain, visible
from bench.suites import load_suite, suite_names

METHOD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)?")
"""A task, a model of the hub, or the name of a folder."""


MOST_LINES = 50
"""Lines shown of one kind; the others are counted."""


STYLES = {"held": "green", "note": "yellow", "refused": "bold red"}


@dataclass
class Report:
    """What came of each check; one `refused` is enough to refuse the submission.

    Attributes:
        lines: check, outcome and what there is to say, in the order of the checks.
    """

    file: Path
    submission: Submission | None = None
    records: list[Record] = field(default_factory=list)
    lines: list[tuple[str, Outcome, str]] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return not any(outcome == "refused" for _, outcome, _ in self.lines)

    def add(self, check: str, outcome: Outcome, details: Iterable[object]) -> None:
        self.lines += [(check, outcome, plain(detail)) for detail in details]

    def settle(self, check: str, wrong: Iterable[object], held: str) -> None:
        """Refusals of a check, or that it held."""
        self.add(check, "refused", wrong)
        if all(name != check for name, *_ in self.lines):
            self.add(check, "held", [held])

    def parts(self) -> Iterator[RenderableType]:
        """For a terminal; foreign text is data and no markup."""
        table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for column in ("check", "", "what"):
            table.add_column(column, overflow="fold", no_wrap=column != "what")
        seen: Counter[tuple[str, Outcome]] = Counter()
        for check, outcome, detail in self.lines:
            seen[check, outcome] += 1
            if seen[check, outcome] <= MOST_LINES:
                table.add_row(check, Text(outcome, STYLES[outcome]), Text(detail))
        for (check, ended), count in seen.items():
            if count > MOST_LINES:
                table.add_row(check, Text(ended), Text(f"and {count - MOST_LINES} more"))
        yield table
        about = self.submission.manifest.method if self.submission else str(self.file)
        word = "accepted" if self.accepted else "refused"
        yield Text(f"{plain(about)}: {len(self.records)} records, {word}", "bold")


def verify(
    path: Path, again: Callable[[Sequence[Record]], Iterator[tuple[Outcome, str]]] | None = None
) -> Report:
    """Checks a submission.

    Args:
        path: a file that `leakboard submit` wrote, or a folder into which one was accepted.
        again: runs some of the cells once more, see `bench.submissions.rerunning`.

    Raises:
        LeakboardError: there is no such file.
    """
    report = Report(path)
    try:
        report.submission = opened(path)
    except Refused as error:
        report.add("file", "refused", [error])
        return report
    return examine(report, again)


def examine(
    report: Report,
    again: Callable[[Sequence[Record]], Iterator[tuple[Outcome, str]]] | None = None,
) -> Report:
    """The checks behind the container; each runs only where the ones before found nothing wrong."""
    assert report.submission is not None
    suites = {key: entry.suite for key, entry in report.submission.manifest.records.items()}
    report.add("file", "held", [f"{len(suites)} records, each the one that was packed"])
    report.settle("records", _read(report), "each keeps the schema; its key is that of its cell")
    if not report.accepted:
        return report
    grouped: dict[str, list[Record]] = {}
    for record in report.records:
        grouped.setdefault(suites[record.key], []).append(record)
    wrong = [line for suite, records in grouped.items() for line in gaps(suite, records)]
    report.settle("completeness", wrong, "every setting has every seed and every attack")
    report.settle("consistency", _contradictions(report.records), "records agree with each other")
    _rescore(report)
    report.add("flags", "note", _flagged(report.records))
    report.settle("flags", (), "none")
    report.add("records", "note", _odd(report.records))
    if again is None:
        report.add("another run", "note", ["no cell was run again"])
    elif report.accepted:
        for outcome, what in again(report.records):
            report.add("another run", outcome, [what])
    return report


def gaps(suite: str, records: Sequence[Record]) -> Iterator[str]:
    """What is missing or unfinished among the records of one suite.

    A suite is a grid: each of its settings has all of its seeds, and each cell all of its attacks.
    One that comes with this program has to have all of its seeds, too.
    """
    seeds = {record.cell.seed for record in records}
    if suite in suite_names():
        seeds |= set(load_suite(suite).seeds)
    there: dict[str, set[int]] = {}
    for record in records:
        there.setdefault(_setting(record), set()).add(record.cell.seed)
    lacking: dict[tuple[int, ...], list[str]] = {}
    for setting, found in there.items():
        lacking.setdefault(tuple(sorted(seeds - found)), []).append(setting)
    for missing, settings in lacking.items():
        if missing:
            lost = ", ".join(map(str, missing))
            yield f"{suite}: {len(settings)} settings lack seed {lost}, the first of them {settings[0]}"
    # What attackers train themselves is measured by the attacks that need it alone.
    whole = [record for record in records if record.status == "ok" and record.cell.shadow is None]
    attacks = {_attack(leak) for record in whole for leak in record.leaks}
    for record in records:
        if record in whole:
            done = {_attack(leak) for leak in record.leaks}
            for name, params in sorted(attacks - done):
                yield f"{record.key}: {name} {params} was run on other cells of {suite}, not here"
        yield from (f"{record.key}: {what}" for what in _unfinished(record))


def _unfinished(record: Record) -> Iterator[str]:
    if record.status in ("failed", "out-of-memory"):
        yield f"ended {record.status}: {record.reason}; run it again"
    if record.provenance.dirty:
        yield "was made from a source tree with uncommitted changes; commit them and run it again"
    if record.status != "ok":
        if not record.reason:
            yield f"ended {record.status} and does not say why"
        return
    if record.utility is None or record.cost is None:
        yield "has no utility or no cost"
    if not record.leaks:
        yield "was attacked by nothing"
    for leak in record.leaks:
        if leak.status == "ok" and leak.success is None:
            yield f"{name_of(leak)}: nothing was measured"
        if leak.status != "ok" and not leak.reason:
            yield f"{name_of(leak)}: ended {leak.status} and does not say why"


def _setting(record: Record) -> str:
    """All of a cell but its seed; what a reader looks for stands first."""
    cell = record.cell
    where = f"{cell.defense.name} {json.dumps(cell.defense.params)} on {cell.task}, cut {cell.cut}"
    return f"{where}, {cell.model_dump_json(exclude={'seed'})}"


def _attack(leak: Leak) -> tuple[str, str]:
    return leak.attack.name, json.dumps(leak.attack.params, sort_keys=True)


def _read(report: Report) -> Iterator[str]:
    assert report.submission is not None
    for key, raw in report.submission.records.items():
        try:
            parsed(raw, "its content")
            record = from_bytes(raw, key, f"record {key}")
        except (Refused, Corrupt, LeakboardError) as error:
            yield f"{key}: {error}"
            continue
        yield from (f"{key}: {what}" for what in _badly_named(record))
        report.records.append(record)


def _badly_named(record: Record) -> Iterator[str]:
    """Names that would not stand well in a table, such as of two lines or without an end."""
    cell = record.cell
    methods = {cell.defense.name, *(leak.attack.name for leak in record.leaks)}
    yield from (f"'{name}' is no name of a method" for name in methods if not _is(METHOD, name))
    places = {cell.task, cell.model}
    yield from (
        f"'{name}' is no name of a task or model" for name in places if not _is(PLACE, name)
    )
    words = {cell.evaluate, *record.measures, record.provenance.device, record.provenance.platform}
    for leak in record.leaks:
        words |= {leak.view, leak.metric, leak.attribute or ""}
        words |= {point.recipient for point in leak.curve}
    for word in words:
        if len(word) > 100 or not _shows(word):
            yield f"'{word}' is no name"


def _is(pattern: re.Pattern[str], name: str) -> bool:
    return len(name) <= 100 and bool(pattern.fullmatch(name))


def _shows(word: str) -> bool:
    try:
        return bool(visible(word) or True)
    except ValueError:
        return False


def _contradictions(records: Sequence[Record]) -> Iterator[str]:
    """What cannot be true of all these records together, or of one of them."""
    truths: dict[tuple[object, ...], tuple[str, list[int]]] = {}
    for record in records:
        cell = record.cell
        if record.utility_metric == "accuracy" and record.predictions:
            same = (cell.data_hash, cell.limit, cell.evaluate, cell.seed)
            truth = record.predictions.get("truth", [])
            first, known = truths.setdefault(same, (record.key, truth))
            if truth != known:
                yield f"{record.key} and {first} are about the same examples, with other labels"
        for leak in record.leaks:
            if leak.certificate and not record.undefended:
                yield f"{record.key}: {name_of(leak)} is certified on a defended cell"
            if leak.success and not 0 <= leak.success.chance <= leak.ceiling:
                yield f"{record.key}: {name_of(leak)} has a chance of {leak.success.chance}"
        known_here = registry.defenses().get(cell.defense.name)
        if known_here and known_here.version == cell.defense.version:
            try:
                undefended = known_here(**cell.defense.params).undefended
            except Exception as error:  # whatever its validators raise
                yield f"{record.key}: {cell.defense.name} takes no such parameters: {error}"
                continue
            if undefended != record.undefended:
                yield f"{record.key}: says the wrong thing about whether it is defended"


def _rescore(report: Report) -> None:
    numbers, unchecked = 0, set[str]()
    for record in report.records:
        found = rescored(record)
        numbers += found.numbers
        unchecked |= found.unchecked
        report.add("scores", "refused", found.mismatches)
    report.settle("scores", (), f"{numbers:,} numbers follow from the raw guesses")
    report.add("not re-scored", "note", sorted(unchecked))


def _flagged(records: Sequence[Record]) -> Iterator[str]:
    by_key = {record.key: record for record in records}
    where: dict[tuple[str, str], Counter[str]] = {}
    for (key, i), found in flags(records).items():
        record = by_key[key]
        what = record.leaks[i].attack.name if i >= 0 else "transcript"
        for flag in found:
            where.setdefault((flag, what), Counter())[record.cell.defense.name] += 1
    for (flag, what), on in sorted(where.items()):
        told = ", ".join(f"{defense} ({count})" for defense, count in on.items())
        yield f"{flag}: {what} on {told}"
    yield from (f"{flag}: {FLAGS[flag]}" for flag in sorted({flag for flag, _ in where}))


def _odd(records: Sequence[Record]) -> Iterator[str]:
    ended = Counter(
        f"{leak.attack.name} {leak.status}: {leak.reason}"
        for record in records
        for leak in record.leaks
        if leak.status not in ("ok", "skipped")
    )
    yield from (f"{what} ({count} times)" for what, count in ended.items())
    if any(not record.provenance.commit for record in records):
        yield "made by an installed package, whose commit is not known"
