"""Checks of a submission: undamaged, complete, consistent with its raw guesses, and reproducible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from pydantic_core import from_json
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.contracts import (
    LeakboardError,
    Record,
    Refused,
    grouped,
    parsed,
    plain,
)
from leakboard.bench.records import Corrupt, Outcome, from_bytes
from leakboard.bench.scoring import FLAGS, flags, rescore
from leakboard.bench.submissions.archive import read_submission
from leakboard.bench.submissions.completeness import gaps, missing_attacks
from leakboard.bench.submissions.consistency import Labels, badly_named, contradictions
from leakboard.bench.submissions.manifest import Submission, Verified
from leakboard.bench.submissions.reproduction import LocalResources
from leakboard.bench.submissions.rerunning import unreproduced

MOST_LINES, MOST_KEPT = 50, 1000
"""Largest number of shown lines of one kind, and of collected ones."""


STYLES = {"held": "green", "note": "yellow", "refused": "bold red"}


@dataclass
class Report:
    """Results of all checks; one `refused` is enough to refuse the submission.

    Attributes:
        records: records without raw numbers, to save memory.
        lines: check, outcome and detail, in the order of the checks.
        verified: results of cells that were run again; None if none were.
    """

    file: Path
    submission: Submission | None = None
    records: list[Record] = field(default_factory=list)
    lines: list[tuple[str, Outcome, str]] = field(default_factory=list)
    verified: Verified | None = None

    @property
    def sound(self) -> bool:
        """True if no check refused, whether or not cells were run again."""
        return not any(outcome == "refused" for _, outcome, _ in self.lines)

    @property
    def unreproduced(self) -> tuple[str, ...]:
        """Defenses with results, of which no cell was reproduced."""
        if self.verified is None:
            return unreproduced(self.records, [])
        return self.verified.methods

    @property
    def repeated(self) -> bool:
        """True if a cell of every defense was reproduced."""
        return bool(self.verified and self.verified.repeated) and not self.unreproduced

    @property
    def says_so(self) -> bool:
        """True for an accepted folder whose records have `not_reproduced` for each defense that is not reproduced."""
        if self.submission is None or self.submission.manifest.verified is None:
            return False
        marked = [r for r in self.records if r.cell.defense.name in self.unreproduced]
        return bool(marked) and all(record.provenance.not_reproduced for record in marked)

    def add(self, check: str, outcome: Outcome, details: Iterable[object]) -> None:
        """Adds a line for each detail, at most the first thousand."""
        count = sum(line[:2] == (check, outcome) for line in self.lines)
        for i, detail in enumerate(details, start=count):
            if i == MOST_KEPT:
                self.lines.append((check, outcome, "and more, which are not listed"))
            if i >= MOST_KEPT:
                break
            self.lines.append((check, outcome, plain(detail)))

    def settle(self, check: str, wrong: Iterable[object], held: str) -> None:
        """Adds the refusals of a check, or a line that it held."""
        self.add(check, "refused", wrong)
        if all(name != check for name, *_ in self.lines):
            self.add(check, "held", [held])

    def parts(self, verdict: str = "") -> Iterator[RenderableType]:
        """Output for a terminal, without markup from submitted text.

        Args:
            verdict: text of the last line; by default, the result of the checks.
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
"""Function that runs cells again and yields outcomes with details, and at the end a `Verified`."""


def verify(path: Path, again: Rerun | None = None, here: LocalResources | None = None) -> Report:
    """Checks a submission.

    Args:
        path: file from `leakboard submit`, or folder of an accepted submission.
        again: function that runs some of the cells again, see `leakboard.bench.submissions.rerunning`.
        here: data and models of the verifier.

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
    """Runs the checks of the content, each only if the previous ones did not refuse."""
    submission = report.submission
    assert submission is not None
    suites = {key: entry.suite for key, entry in submission.manifest.records.items()}
    report.add("file", "held", [f"{len(suites)} records, each the one that was packed"])
    report.settle("records", _read(report), "each follows the schema, and its key matches its cell")
    if not report.sound:
        return report
    by_suite = grouped(report.records, lambda record: suites[record.key])
    _attacks(report, by_suite, here or LocalResources())
    missing = chain.from_iterable(gaps(suite, records) for suite, records in by_suite.items())
    report.settle("completeness", missing, "every setting has every seed and every attack")
    _rescore(report)
    report.settle("consistency", contradictions(report.records), "records agree with each other")
    report.add("flags", "note", _flagged(report.records))
    report.settle("flags", (), "none")
    report.add("records", "note", _contradictions(report.records))
    if again is None:
        report.add("another run", "note", ["no cell was run again"])
    elif report.sound:
        for result in again(submission, report.records):
            if isinstance(result, Verified):
                report.verified = result
            else:
                report.add("another run", result[0], [result[1]])
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
    """The record without raw numbers, to save memory."""
    leaks = [
        leak.model_copy(update={"raw": {}, "curve": [], "told": [0] if 0 in leak.told else []})
        for leak in record.leaks
    ]
    return record.model_copy(
        update={"leaks": leaks, "predictions": {}, "projections": [], "loss": []}
    )


def _attacks(report: Report, grouped: dict[str, list[Record]], here: LocalResources) -> None:
    """Refuses missing attacks and notes skipped ones."""
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
        # Its checksum holds, as `_read` checked.
        content = from_json(report.submission.records[record.key])
        complete = Record.model_validate({k: v for k, v in content.items() if k != "sha256"})
        rescored = rescore(complete)
        numbers += rescored.numbers
        unchecked |= rescored.unchecked
        report.add("scores", "refused", rescored.mismatches)
        if what := labels.contradicts(complete):
            report.add("consistency", "refused", [what])
    report.settle("scores", (), f"{numbers:,} numbers follow from the raw guesses")
    report.add("not re-scored", "note", sorted(unchecked))


def _flagged(records: Sequence[Record]) -> Iterator[str]:
    by_key = {record.key: record for record in records}
    where: dict[tuple[str, str], Counter[str]] = {}
    for (key, i), names in flags(records).items():
        record = by_key[key]
        what = record.leaks[i].attack.name if i >= 0 else "transcript"
        for flag in names:
            where.setdefault((flag, what), Counter())[record.cell.defense.name] += 1
    for (flag, what), on in sorted(where.items()):
        defenses = ", ".join(f"{defense} ({count})" for defense, count in on.items())
        yield f"{flag}: {what} on {defenses}"
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
        yield "made by an installed package with an unknown commit"
