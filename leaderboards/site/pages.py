"""The pages of the site: what stands on each, and under which path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from bench import __version__
from bench.contracts import Record
from bench.methods import registry
from bench.scoring import FLAGS, NEEDED, Strengths
from bench.submissions import Manifest
from leaderboards.findings import RULES, Finding
from leaderboards.site import charts
from leaderboards.site.board_tables import board_table, matrix_table, papers_table
from leaderboards.site.cells import Table, aim
from leaderboards.site.content import Content
from leaderboards.site.links import Links, slug
from leaderboards.site.markup import mark, rows
from leaderboards.site.method_facts import facts
from leaderboards.site.panels import by_task
from leaderboards.site.prints import Prints
from leaderboards.site.record_tables import leaks_table, records_table, settings_table
from leaderboards.tables import (
    BUDGET,
    beside,
    boards,
    failures,
    look,
    mirrored,
    paper_of,
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
        yield Page("findings.html", prints.all, self._findings)
        about = partial(self._page, "about.html", TOP, flags=FLAGS, needed=NEEDED)
        yield Page("about.html", prints.code, about)
        for kind, names in self._shown.methods.items():
            for name in names:
                made = partial(self._method, kind, name)
                yield Page(TOP.method(kind, name), prints.method(kind, name), made)
        for record in self._shown.records:
            made = partial(self._record, record)
            yield Page(TOP.record(record.key), prints.record(record), made)

    def _front(self) -> str:
        """What the benchmark measures, the answers, the curves of each task, and all settings."""
        shown = self._shown
        return self._page(
            "index.html",
            TOP,
            matrices=[
                matrix_table(found, f"matrix-{n}", TOP) for n, found in enumerate(shown.matrices)
            ],
            budget=f"{BUDGET:g}",
            **self._boards,
            tasks=by_task(shown.panels),
            figures={one.name: charts.chart(one.rows, shown.keys) for one in shown.panels},
            settings=settings_table(shown.settings, shown.keys, TOP),
            methods=shown.methods,
            troubles=failures(shown.frame),
            notes=shown.collection.notes,
            n_records=len(shown.records),
        )

    def _list(self) -> str:
        """All records."""
        listed = records_table(self._shown.records, self._shown.words, TOP)
        return self._page("records.html", TOP, listed=listed)

    def _questions(self) -> str:
        """The leaderboards."""
        return self._page("boards.html", TOP, **self._boards)

    def _findings(self) -> str:
        """Every claim that the records bear, by the rule it comes from."""
        found: dict[str, list[Finding]] = {}
        for one in self._shown.findings:
            found.setdefault(one.rule, []).append(one)
        rules = {RULES[rule][1]: own for rule, own in found.items()}
        return self._page("findings.html", TOP, rules=rules)

    @cached_property
    def _boards(self) -> dict[str, Any]:
        """The leaderboards by question and what to know of its answers, the papers', and pictures."""
        questions: dict[tuple[str, str], list[Table]] = {}
        for n, board in enumerate(boards(self._shown.compared)):
            table = board_table(board, f"board-{n}", TOP)
            questions.setdefault((board.question, board.note), []).append(table)
        pictures = [*self._shown.matrix_pictures, *self._shown.suite_pictures]
        # Those of one question beside each other.
        pictures = sorted(pictures, key=lambda picture: picture.question)
        return {"questions": questions, "papers": self._papers(), "pictures": pictures}

    def _papers(self) -> list[Table]:
        """For each folder of a suite that mirrors a paper: ours beside the paper's numbers."""
        found, frame = [], self._shown.frame
        for name, own in self._shown.collection.by_folder.items():
            paper = paper_of(name)
            if paper is None:
                continue
            keys = {record.key for record in own}
            pairs = beside(frame[frame["key"].isin(keys)], mirrored(paper))
            if len(pairs):
                found.append(papers_table(name, pairs, paper.note, f"paper-{name}", TOP))
        return found

    def _method(self, kind: str, name: str) -> str:
        """One defense or attack: what it is, its settings, records, flags and certificates."""
        shown = self._shown
        known: dict[str, type[Any]] = dict(
            registry.defenses() if kind == "defense" else registry.attacks()
        )
        cls = known.get(name)
        rows = shown.settings[shown.settings[kind] == name]
        records = shown.using[kind].get(name, [])
        raised = [
            flag
            for record in records
            for index, leak in enumerate(record.leaks)
            if name == (leak.attack.name if kind == "attack" else record.cell.defense.name)
            for flag in shown.flags.get((record.key, index), ())
        ]
        if kind == "defense":
            raised += [flag for r in records for flag in shown.flags.get((r.key, -1), ())]
        return self._page(
            "method.html",
            BELOW,
            kind=kind,
            name=name,
            about=facts(cls) if cls else None,
            listed=settings_table(rows, shown.keys, BELOW) if len(rows) else None,
            records=records_table(records, shown.words, BELOW) if records else None,
            flags={flag: (raised.count(flag), FLAGS[flag]) for flag in FLAGS if flag in raised},
            certificates=_certificates(records, shown.strengths, kind, name),
            submissions=self._submissions(records),
        )

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
        made = Environment(
            loader=PackageLoader("leaderboards.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.globals |= {
            "look": look,
            "mark": mark,
            "rows": rows,
            "version": __version__,
            "slug": slug,
        }
        return made


def _certificates(
    records: Sequence[Record], sure: Strengths, kind: str, name: str
) -> list[tuple[str, str, str]]:
    """(what is certified, where, key) of each undefended cell on which an attack is shown to work."""
    found: dict[tuple[str, str], str] = {}
    for record in records:
        for index, leak in enumerate(record.leaks if record.undefended else ()):
            who = leak.attack.name if kind == "attack" else record.cell.defense.name
            if sure.get((record.key, index), 0.0) >= NEEDED and who == name:
                guessed = aim(leak.goal, leak.attribute)
                what = f"{leak.attack.name} ({guessed}, reads {leak.channel or 'nothing'})"
                cell = record.cell
                where = f"{cell.task}, {cell.model}, cut {cell.cut}, on {cell.defense.name}"
                found.setdefault((what, where), record.key)
    return [(what, where, key) for (what, where), key in found.items()]
