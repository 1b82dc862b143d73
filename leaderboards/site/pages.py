"""The pages of the site: what stands on each, and under which path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import yaml
from jinja2 import Environment

from leakboard.bench.contracts import GLOSSARY, Record, explained
from leakboard.bench.scoring import FLAGS
from leakboard.bench.submissions import Manifest
from leakboard.bench.tasks import listing
from leakboard.leaderboards.findings import RULES, Finding, headlines
from leakboard.leaderboards.site import charts
from leakboard.leaderboards.site.beside import beside as side_by_side
from leakboard.leaderboards.site.board_tables import board_table, matrix_table, papers_table
from leakboard.leaderboards.site.cells import Table
from leakboard.leaderboards.site.content import Content
from leakboard.leaderboards.site.front import SYMBOLS, answer, first_of
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.site.markup import environment
from leakboard.leaderboards.site.methods import Methods
from leakboard.leaderboards.site.panels import by_task
from leakboard.leaderboards.site.prints import Prints
from leakboard.leaderboards.site.record_tables import leaks_table, records_table, settings_table
from leakboard.leaderboards.site.scatter import scatter
from leakboard.leaderboards.tables import (
    BUDGET,
    Board,
    artefacts,
    beside,
    boards,
    failures,
)

DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C takes a tenth of the time, where the library is there."""
TOP, BELOW = Links(), Links("../")
"""Of the pages at the root, and of those in a folder."""


@dataclass(frozen=True)
class Page:
    """A page of the site.

    Attributes:
        of: a digest of all that it shows.
        text: makes it.
    """

    path: str
    of: str
    text: Callable[[], str]


class Pages:
    """All pages of one collection of records."""

    def __init__(self, content: Content, prints: Prints) -> None:
        self._shown, self._prints = content, prints

    def every(self) -> Iterator[Page]:
        """Each page, to be made where it is wanted."""
        prints = self._prints
        yield Page("index.html", prints.all, self._front)
        yield Page("records.html", prints.all, self._list)
        yield Page("boards.html", prints.all, self._questions)
        methods = Methods(self._shown, BELOW)
        listed = partial(self._page, "methods.html", TOP, kinds=methods.kinds)
        yield Page("methods.html", prints.all, listed)
        yield Page("compare.html", prints.all, self._compare)
        yield Page("findings.html", prints.all, self._findings)
        reading = partial(self._page, "about.html", TOP, flags=FLAGS)
        yield Page("about.html", prints.code, reading)
        for task in self._shown.tasks:
            yield Page(TOP.task(task), prints.task(task), partial(self._task, task))
        for kind, names in self._shown.methods.items():
            for name in names:
                told = methods.verdict(kind, name)
                made = partial(self._method, methods, kind, name)
                yield Page(TOP.method(kind, name), prints.method(kind, name, told), made)
        for record in self._shown.records:
            made = partial(self._record, record)
            yield Page(TOP.record(record.key), prints.record(record), made)

    def _front(self) -> str:
        """Which defense hides what, and at what cost."""
        shown = self._shown
        matrix = first_of(shown.matrices)
        first = matrix and headlines(
            shown.findings, matrix.comparison.task, matrix.comparison.model
        )
        return self._page(
            "index.html",
            TOP,
            headlines=first,
            found=matrix and answer(matrix, TOP),
            tasks=shown.tasks,
            n_defenses=len(shown.methods["defense"]),
            n_attacks=len(shown.methods["attack"]),
            n_failed=sum(record.status not in ("ok", "skipped") for record in shown.records),
            notes=shown.collection.notes,
            n_records=len(shown.records),
        )

    def _task(self, task: str) -> str:
        """All that is known on a task: answers, numbers, curves, settings, and what failed."""
        shown = self._shown
        # Where nothing was attacked, as in trials, there is nothing to answer.
        own = [one for one in shown.matrices if one.comparison.task == task and one.aims]
        panels = by_task(shown.panels).get(task, {})
        rows, frame = shown.settings, shown.frame
        here = rows[rows["task"] == task]
        return self._page(
            "task.html",
            BELOW,
            task=task,
            description=self._described.get(task, ""),
            answers=[answer(one, BELOW) for one in own],
            matrices=[matrix_table(one, f"matrix-{n}", BELOW) for n, one in enumerate(own)],
            groups=panels,
            figures={
                one.name: charts.chart(one.rows, shown.keys, BELOW)
                for every in panels.values()
                for one in every
            },
            settings=settings_table(here, shown.keys, BELOW) if len(here) else None,
            troubles=failures(frame[frame["task"] == task]),
        )

    @cached_property
    def _described(self) -> dict[str, str]:
        """What each known task is about."""
        return {task.name: task.description for task in listing()}

    def _list(self) -> str:
        """All records."""
        listed = records_table(self._shown.records, self._shown.words, TOP)
        return self._page("records.html", TOP, listed=listed)

    def _findings(self) -> str:
        """Every claim that the records bear, by the rule it comes from."""
        found: dict[str, list[Finding]] = {}
        for one in self._shown.findings:
            found.setdefault(one.rule, []).append(one)
        rules = {RULES[rule][1]: own for rule, own in found.items()}
        return self._page("findings.html", TOP, rules=rules)

    def _questions(self) -> str:
        """The leaderboards, a table for each question; the papers' numbers; and pictures."""
        shown = self._shown
        questions: dict[str, list[Board]] = {}
        for board in boards(shown.compared):
            questions.setdefault(board.name, []).append(board)
        pictures = [*shown.matrix_pictures, *shown.suite_pictures]
        first = first_of(shown.matrices)
        given = {"goal": " ".join(first.aims[0]).strip() if first and first.aims else ""}
        if first:
            one = first.comparison
            given |= {"task": one.task, "model": one.model, "setup": one.words}
        return self._page(
            "boards.html",
            TOP,
            questions=[board_table(own, TOP) for own in questions.values()],
            given=given,
            papers=self._papers(),
            # Those of one question beside each other.
            pictures=sorted(pictures, key=lambda picture: picture.question),
        )

    def _compare(self) -> str:
        """Any two defenses beside each other."""
        return self._page("compare.html", TOP, found=side_by_side(self._shown.matrices, TOP))

    def _papers(self) -> list[Table]:
        """Each table of a paper of which something was measured: ours beside it."""
        found: list[Table] = []
        frame = self._shown.frame
        folders = {
            name: frozenset(record.key for record in own)
            for name, own in self._shown.collection.by_folder.items()
        }
        for paper, artefact in artefacts():
            for laid in beside(paper, artefact, frame, self._shown.records, folders):
                if len(laid.measured):
                    found.append(papers_table(laid, f"paper-{len(found)}", TOP))
        return found

    def _method(self, methods: Methods, kind: str, name: str) -> str:
        """One defense or attack."""
        records = self._shown.using[kind].get(name, [])
        told = methods.page(kind, name)
        return self._page("method.html", BELOW, **told, submissions=self._submissions(records))

    def _record(self, record: Record) -> str:
        """One record: its numbers, and everything that is needed to run it again."""
        shown, places = self._shown, range(-1, len(record.leaks))
        own = {i: names for i in places if (names := shown.flags.get((record.key, i)))}
        sure = {
            i: shown.strengths[record.key, i] for i in places if (record.key, i) in shown.strengths
        }
        cell = record.cell.model_dump(mode="json")
        return self._page(
            "record.html",
            BELOW,
            record=record,
            words=shown.words[record.key],
            folders=shown.collection.folders(record.key),
            leaks=leaks_table(record, own, sure, BELOW),
            figure=charts.over_steps(record),
            flags={
                flag: FLAGS[flag] for flag in FLAGS if any(flag in names for names in own.values())
            },
            whole={flag: FLAGS[flag] for flag in own.get(-1, ())},
            as_yaml=yaml.dump(cell, Dumper=DUMPER, sort_keys=False, allow_unicode=True, width=100),
            as_json=json.dumps(cell, indent=1, ensure_ascii=False),
            cost=record.cost.model_dump(mode="json") if record.cost else {},
            provenance=record.provenance.model_dump(mode="json"),
            submissions=self._submissions([record]),
        )

    def _submissions(self, records: Sequence[Record]) -> list[Manifest]:
        """What others said with these records, each submission once."""
        submitted = self._shown.collection.submitted
        told = (one for record in records for one in submitted.get(record.key, ()))
        return list({one.model_dump_json(exclude={"records"}): one for one in told}.values())

    def _page(self, template: str, links: Links, **content: Any) -> str:
        found = self._environment.get_template(template)
        return found.render(root=links.root, links=links, **content)

    @cached_property
    def _environment(self) -> Environment:
        made = environment()
        made.globals |= {
            "documents": self._prints.documents,
            "scatter": scatter,
            "symbols": SYMBOLS,
            "glossary": GLOSSARY,
            "explained": explained,
            "budget": f"{BUDGET:g}",
        }
        return made
