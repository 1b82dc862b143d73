"""The pages of the site: what stands on each, and under which path."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from bench import __version__
from bench.contracts import Goal, Record
from bench.methods import registry
from bench.scoring import FLAGS, Flags, flags
from bench.submissions import Manifest
from bench.suites import load_suite, suite_names
from leaderboards.site import charts
from leaderboards.site.about import about
from leaderboards.site.answers import board_table, matrix_table, papers_table
from leaderboards.site.pictures import Picture, of_matrices, of_suites
from leaderboards.site.reading import Collection
from leaderboards.site.rows import (
    Table,
    aim,
    leaks_table,
    per_setting,
    place,
    records_table,
    settings_table,
)
from leaderboards.tables import (
    BUDGET,
    SETTING,
    Comparison,
    Matrix,
    alike,
    beside,
    boards,
    comparisons,
    failures,
    frame,
    look,
    matrices,
    mirrored,
    settings,
    setups,
    varying,
)

SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")
KINDS = ("defense", "attack")
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C takes a tenth of the time, where the library is there."""


def slug(name: str) -> str:
    """A file name for a method or task: its own name where that is harmless, else digits of its hash."""
    if SAFE.fullmatch(name):
        return name
    return f"x-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Panel:
    """A figure of utility against privacy.

    Attributes:
        name: of its files.
        about: model, data and training, in words.
        rows: its points, as `leaderboards.tables.frontier.points` builds them.
    """

    name: str
    task: str
    about: str
    goal: str
    attribute: str
    rows: pd.DataFrame

    @property
    def what(self) -> str:
        """What the attacks guess, in words."""
        return aim(self.goal, self.attribute)


class Pages:
    """All pages of one collection of records, as text by path; each part is made when it is needed."""

    def __init__(self, collection: Collection) -> None:
        self.records, self.collection = collection.records, collection

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All results, as `leaderboards.tables.frame.frame` builds them."""
        return frame(self.records)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """All settings, as `per_setting` builds them."""
        return per_setting(self.frame)

    @cached_property
    def flags(self) -> Flags:
        """What to doubt, by key and index of the leak."""
        return flags(self.records)

    @cached_property
    def keys(self) -> dict[tuple[Any, ...], str]:
        """For each setting the key of its first record."""
        found: dict[tuple[Any, ...], str] = {}
        for row in self.frame[[*SETTING, "key"]].drop_duplicates().to_dict("records"):
            found.setdefault(place(row), row["key"])
        return found

    @cached_property
    def links(self) -> dict[str, str]:
        """The page of each method, from the site's root."""
        return {
            f"{kind} {name}": f"{kind}s/{slug(name)}.html"
            for kind in KINDS
            for name in self._named(kind)
        }

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
            "outline": charts.outline,
            "links": self.links,
            "version": __version__,
            "slug": slug,
        }
        return made

    def every(self) -> Iterator[tuple[str, str]]:
        """Path and text of each page."""
        yield "index.html", self.front()
        yield (
            "records.html",
            self._page(
                "records.html", "", listed=records_table(self.records, self.words, self.links)
            ),
        )
        yield (
            "boards.html",
            self._page(
                "boards.html",
                "",
                questions=self.questions,
                papers=self.papers,
                pictures=self.pictures,
            ),
        )
        yield "about.html", self._page("about.html", "", flags=FLAGS)
        for kind in KINDS:
            for name in self._named(kind):
                yield self.links[f"{kind} {name}"], self.method(kind, name)
        for record in self.records:
            yield f"records/{record.key}.html", self.record(record)

    def front(self) -> str:
        """What the benchmark measures, the answers, the curves of each task, and all settings."""
        return self._page(
            "index.html",
            "",
            matrices=[
                matrix_table(found, f"matrix-{n}", self.links)
                for n, found in enumerate(self.matrices)
            ],
            budget=f"{BUDGET:g}",
            questions=self.questions,
            papers=self.papers,
            pictures=self.pictures,
            tasks=self.tasks,
            figures={one.name: charts.chart(one.rows, self.keys) for one in self.panels},
            settings=settings_table(self.rows, self.keys, self.links),
            troubles=failures(self.frame),
            notes=self.collection.notes,
            n_records=len(self.records),
        )

    def method(self, kind: str, name: str) -> str:
        """One defense or attack: what it is, its settings, records, flags and certificates."""
        known: dict[str, type[Any]] = dict(
            registry.defenses() if kind == "defense" else registry.attacks()
        )
        cls = known.get(name)
        rows = self.rows[self.rows[kind] == name]
        records = self._using[kind].get(name, [])
        raised = [
            flag
            for record in records
            for index, leak in enumerate(record.leaks)
            if name == (leak.attack.name if kind == "attack" else record.cell.defense.name)
            for flag in self.flags.get((record.key, index), ())
        ]
        if kind == "defense":
            raised += [flag for r in records for flag in self.flags.get((r.key, -1), ())]
        return self._page(
            "method.html",
            "../",
            kind=kind,
            name=name,
            about=about(cls) if cls else None,
            listed=settings_table(rows, self.keys, self.links, "../") if len(rows) else None,
            records=records_table(records, self.words, self.links, "../") if records else None,
            flags={flag: (raised.count(flag), FLAGS[flag]) for flag in FLAGS if flag in raised},
            certificates=self._certificates(kind, name),
            submissions=self._submissions(records),
        )

    def record(self, record: Record) -> str:
        """One record: its numbers, and everything that is needed to run it again."""
        places = range(-1, len(record.leaks))
        own = {i: names for i in places if (names := self.flags.get((record.key, i)))}
        cell = record.cell.model_dump(mode="json")
        return self._page(
            "record.html",
            "../",
            record=record,
            words=self.words[record.key],
            folders=self.collection.folders(record.key),
            leaks=leaks_table(record, own, self.links, "../"),
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
        told = (one for record in records for one in self.collection.submitted.get(record.key, ()))
        return list({one.model_dump_json(): one for one in told}.values())

    @cached_property
    def compared(self) -> list[Comparison]:
        """What may be compared, of all records."""
        return comparisons(self.records, self.frame)

    @cached_property
    def matrices(self) -> list[Matrix]:
        """Defense × goal, of each comparison."""
        return matrices(self.compared)

    @cached_property
    def questions(self) -> dict[tuple[str, str], list[Table]]:
        """By question, and what to know of its answers, the leaderboards."""
        found: dict[tuple[str, str], list[Table]] = {}
        for n, board in enumerate(boards(self.compared)):
            found.setdefault((board.question, board.note), []).append(
                board_table(board, f"board-{n}", self.links)
            )
        return found

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures of the matrices and of single folders, those of one question beside each other."""
        every = [*self.matrix_pictures, *self.suite_pictures]
        return sorted(every, key=lambda picture: picture.question)

    @cached_property
    def matrix_pictures(self) -> list[Picture]:
        """The figures of the matrices."""
        return of_matrices(self.matrices)

    @cached_property
    def suite_pictures(self) -> list[Picture]:
        """The figures of single folders."""
        return of_suites(self.collection, slug)

    @cached_property
    def papers(self) -> list[Table]:
        """For each folder of a suite that mirrors a paper: ours beside the paper's numbers."""
        found = []
        for name, own in self.collection.by_folder.items():
            paper = load_suite(name).paper if name in suite_names() else None
            if paper is None:
                continue
            keys = {record.key for record in own}
            pairs = beside(self.frame[self.frame["key"].isin(keys)], mirrored(paper))
            if len(pairs):
                found.append(papers_table(name, pairs, paper.note, f"paper-{name}", self.links))
        return found

    @cached_property
    def panels(self) -> list[Panel]:
        """The figures of utility against privacy: of what may be compared, one per goal and attribute."""
        groups = alike(self.records)
        words = setups(groups)
        group_of = {record.key: digits for digits, own in groups.items() for record in own}
        whole = self.rows.dropna(subset=["utility", "ep"])
        shared = [group_of[self.keys[place(row)]] for row in whole.to_dict("records")]
        found = []
        by = [whole["task"], pd.Series(shared, whole.index), whole["goal"], whole["attribute"]]
        for names, rows in whole.groupby(by, sort=False):
            task, digits, goal, attribute = map(str, names)
            cell = groups[digits][0].cell
            # No slug holds a dot, so no two of these names are the same.
            name = ".".join(slug(part) for part in (task, digits, goal, attribute) if part)
            about = f"{cell.model}, {words[digits]}"
            found.append(Panel(name, task, about, goal, attribute, rows))
        return found

    @cached_property
    def tasks(self) -> dict[str, dict[str, list[Panel]]]:
        """The panels by task and by what they share, the groups of most defenses first."""
        found: dict[str, dict[str, list[Panel]]] = {}
        for panel in self.panels:
            found.setdefault(panel.task, {}).setdefault(panel.about, []).append(panel)
        order = [str(goal) for goal in Goal]
        for groups in found.values():
            for panels in groups.values():
                panels.sort(key=lambda panel: order.index(panel.goal))
        return {
            task: dict(sorted(groups.items(), key=lambda group: -_defenses(group[1])))
            for task, groups in found.items()
        }

    @cached_property
    def words(self) -> dict[str, str]:
        """By key the parameters of the defense in words, those that vary within it."""
        found: dict[str, str] = {}
        for name in self._named("defense"):
            own = self._using["defense"].get(name, [])
            told = varying(record.cell.defense.params for record in own)
            found |= {r.key: settings(json.dumps(r.cell.defense.params), told) for r in own}
        return found

    def _named(self, kind: str) -> list[str]:
        """All methods that are known or that have a record."""
        known = registry.defenses() if kind == "defense" else registry.attacks()
        return sorted({*known, *self._using[kind]})

    @cached_property
    def _using(self) -> dict[str, dict[str, list[Record]]]:
        """By kind and name, the records of a method."""
        found: dict[str, dict[str, list[Record]]] = {kind: {} for kind in KINDS}
        for record in self.records:
            found["defense"].setdefault(record.cell.defense.name, []).append(record)
            for name in dict.fromkeys(leak.attack.name for leak in record.leaks):
                found["attack"].setdefault(name, []).append(record)
        return found

    def _certificates(self, kind: str, name: str) -> list[tuple[str, str, str]]:
        """(what is certified, where, key) of each certificate that the method has part in."""
        found: dict[tuple[str, str], str] = {}
        for record in self.records:
            for leak in record.leaks:
                who = leak.attack.name if kind == "attack" else record.cell.defense.name
                if leak.certificate and who == name:
                    guessed = aim(leak.goal, leak.attribute)
                    what = f"{leak.attack.name} ({guessed}, reads {leak.channel or 'nothing'})"
                    cell = record.cell
                    where = f"{cell.task}, {cell.model}, cut {cell.cut}, on {cell.defense.name}"
                    found.setdefault((what, where), record.key)
        return [(what, where, key) for (what, where), key in found.items()]

    def _page(self, template: str, root: str, **content: Any) -> str:
        return self._environment.get_template(template).render(root=root, **content)


def _defenses(panels: Sequence[Panel]) -> int:
    return len({name for panel in panels for name in panel.rows["defense"]})
