"""What is checked of a submission: whole, complete, consistent with its raw guesses, and repeatable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.contracts import LeakboardError, Record, Refused, parsed, plain
from leakboard.bench.records import Corrupt, Outcome, from_bytes
from leakboard.bench.scoring import FLAGS, flags, rescore
from leakboard.bench.submissions.archive import read_submission
from leakboard.bench.submissions.completeness import gaps, missing_attacks
from leakboard.bench.submissions.consistency import Labels, badly_named, contradictions
from leakboard.bench.submissions.manifest import Submission, Verified
from leakboard.bench.submissions.reproduction import LocalResources
from leakboard.bench.submissions.rerunning import unreproduced

MOST_LINES, MOST_KEPT = 50, 1000
"""Lines shown of one kind, and those that are looked for at all."""


STYLES = {"held": "green", "note": "yellow", "refused": "bold red"}


@dataclass
class Report:
    """What came of each check; one `refused` is enough to refuse the submission.

    Attributes:
        records: without their raw numbers, of which only one record at a time is held.
        lines: check, outcome and what there is to say, in the order of the checks.
        verified: what was run again; None before that was tried.
    """

    file: Path
    submission: Submission | None = None
    records: list[Record] = field(default_factory=list)
    lines: list[tuple[str, Outcome, str]] = field(default_factory=list)
    verified: Verified | None = None

    @property
    def sound(self) -> bool:
        """Nothing that was checked is wrong; that a cell was run again does not count here."""
        return not any(outcome == "refused" for _, outcome, _ in self.lines)

    @property
    def unreproduced(self) -> tuple[str, ...]:
        """Defenses with results of which no cell was run again and gave what its record says."""
        if self.verified is None:
            return unreproduced(self.records, [])
        return self.verified.methods

    @property
    def repeated(self) -> bool:
        """A cell of every defense was run again and gave what its record says."""
        return bool(self.verified and self.verified.repeated) and not self.unreproduced

    @property
    def says_so(self) -> bool:
        """An accepted folder whose records carry `not_reproduced` for each defense that is not reproduced."""
        if self.submission is None or self.submission.manifest.verified is None:
            return False
        open_ = [r for r in self.records if r.cell.defense.name in self.unreproduced]
        return bool(open_) and all(record.provenance.not_reproduced for record in open_)

    def add(self, check: str, outcome: Outcome, details: Iterable[object]) -> None:
        """Notes what there is to say; of endless details the first thousand."""
        there = sum(line[:2] == (check, outcome) for line in self.lines)
        for i, detail in enumerate(details, start=there):
            if i == MOST_KEPT:
                self.lines.append((check, outcome, "and more, which was not looked for"))
            if i >= MOST_KEPT:
                break
            self.lines.append((check, outcome, plain(detail)))

    def settle(self, check: str, wrong: Iterable[object], held: str) -> None:
        """Refusals of a check, or that it held."""
        self.add(check, "refused", wrong)
        if all(name != check for name, *_ in self.lines):
            self.add(check, "held", [held])

    def parts(self, verdict: str = "") -> Iterator[RenderableType]:
        """For a terminal; foreign text is data and no markup.

        Args:
            verdict: what the last line says; otherwise whether anything was found wrong.
        """
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
        word = verdict or ("nothing wrong was found" if self.sound else "refused")
        yield Text(f"{plain(about)}: {len(self.records)} records, {word}", "bold")


Rerun = Callable[[Submission, Sequence[Record]], Iterator[tuple[Outcome, str] | Verified]]
"""Runs cells once more: outcomes and what there is to say, and at last what it comes to."""


def verify(path: Path, again: Rerun | None = None, here: LocalResources | None = None) -> Report:
    """Checks a submission.

    Args:
        path: a file that `leakboard submit` wrote, or a folder into which one was accepted.
        again: runs some of the cells once more, see `leakboard.bench.submissions.rerunning`.
        here: the data and models of the one who verifies.

    Raises:
        LeakboardError: there is no such file.
    """
    report = Report(path)
    try:
        report.submission = read_submission(path)
    except Refused as error:
        report.add("file", "refused", [error])
        return report
    return examine(report, again, here)


def examine(
    report: Report, again: Rerun | None = None, here: LocalResources | None = None
) -> Report:
    """The checks behind the container; each runs only where the ones before found nothing wrong."""
    submission = report.submission
    assert submission is not None
    suites = {key: entry.suite for key, entry in submission.manifest.records.items()}
    report.add("file", "held", [f"{len(suites)} records, each the one that was packed"])
    report.settle("records", _read(report), "each keeps the schema; its key is that of its cell")
    if not report.sound:
        return report
    grouped: dict[str, list[Record]] = {}
    for record in report.records:
        grouped.setdefault(suites[record.key], []).append(record)
    _attacks(report, grouped, here or LocalResources())
    missing = chain.from_iterable(gaps(suite, records) for suite, records in grouped.items())
    report.settle("completeness", missing, "every setting has every seed and every attack")
    _rescore(report)
    report.settle("consistency", contradictions(report.records), "records agree with each other")
    report.add("flags", "note", _flagged(report.records))
    report.settle("flags", (), "none")
    report.add("records", "note", _contradictions(report.records))
    if again is None:
        report.add("another run", "note", ["no cell was run again"])
    elif report.sound:
        for told in again(submission, report.records):
            if isinstance(told, Verified):
                report.verified = told
            else:
                report.add("another run", told[0], [told[1]])
    return report


def _read(report: Report) -> Iterator[str]:
    assert report.submission is not None
    for key, raw in report.submission.records.items():
        try:
            parsed(raw, "its content")
            record = from_bytes(raw, key, f"record {key}")
        except (Refused, Corrupt, LeakboardError) as error:
            yield f"{key}: {error}"
            continue
        yield from (f"{key}: {what}" for what in badly_named(record))
        report.records.append(_light(record))


def _light(record: Record) -> Record:
    """The record without what takes memory; a submission may hold 128 MiB of digits."""
    leaks = [
        leak.model_copy(update={"raw": {}, "curve": [], "told": [0] if 0 in leak.told else []})
        for leak in record.leaks
    ]
    return record.model_copy(
        update={"leaks": leaks, "predictions": {}, "projections": [], "loss": []}
    )


def _attacks(report: Report, grouped: dict[str, list[Record]], here: LocalResources) -> None:
    """Attacks that have to stand there: missing ones refuse, skipped ones are named."""
    skipped = Counter[str]()
    wrong = list[str]()
    for suite, records in grouped.items():
        for fault, what in missing_attacks(suite, records, here):
            if not fault:
                skipped[what] += 1
            elif len(wrong) <= MOST_KEPT:
                wrong.append(what)
    report.add("completeness", "refused", wrong)
    report.add("completeness", "note", (f"{what} ({n} times)" for what, n in skipped.items()))


def _rescore(report: Report) -> None:
    assert report.submission is not None
    numbers, unchecked, labels = 0, set[str](), Labels()
    for record in report.records:
        whole = from_bytes(report.submission.records[record.key], record.key, record.key)
        found = rescore(whole)
        numbers += found.numbers
        unchecked |= found.unchecked
        report.add("scores", "refused", found.mismatches)
        if what := labels.contradicts(whole):
            report.add("consistency", "refused", [what])
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


def _contradictions(records: Sequence[Record]) -> Iterator[str]:
    ended = Counter(
        f"{leak.attack.name} {leak.status}: {leak.reason}"
        for record in records
        for leak in record.leaks
        if leak.status not in ("ok", "skipped")
    )
    yield from (f"{what} ({count} times)" for what, count in ended.items())
    if any(not record.provenance.commit for record in records):
        yield "made by an installed package, whose commit is not known"
