"""The pages of defenses and attacks: the verdict, the curve, all settings, the threat model and the source."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import Goal
from leakboard.bench.methods import Attack, Defense, Method, registry
from leakboard.bench.submissions import Collection
from leakboard.leaderboards.findings import task_name
from leakboard.leaderboards.site.answers import Question, plot_of, words_of
from leakboard.leaderboards.site.markup import page_of, slug
from leakboard.leaderboards.tables import (
    PLAIN_WORDS,
    Curve,
    Result,
    ResultsTable,
    count,
    curves,
    display_name,
    format_number,
    format_percent,
    goals_of,
)

ROOT = "../"
"""From a page of a method to the front."""
DEFENSE, ATTACK = "defense", "attack"


@dataclass(frozen=True)
class MethodEntry:
    """A method in the list of all of them."""

    kind: str
    name: str
    title: str
    about: str
    results: int

    @property
    def page(self) -> str:
        return page_of(self.kind, self.name)


class MethodPages:
    """Content of the pages of methods."""

    def __init__(
        self, collection: Collection, table: ResultsTable, questions: Sequence[Question]
    ) -> None:
        self._collection, self._table, self._questions = collection, table, questions
        self._curves = curves(table)
        self._known: dict[str, dict[str, type[Any]]] = {
            DEFENSE: dict(registry.defenses()),
            ATTACK: dict(registry.attacks()),
        }
        used: dict[str, set[str]] = {DEFENSE: set(), ATTACK: set()}
        for record in collection.records.values():
            used[DEFENSE].add(record.cell.defense.name)
            used[ATTACK] |= {leak.attack.name for leak in record.leaks}
        self.names = {kind: sorted({*own, *used[kind]}) for kind, own in self._known.items()}

    def code(self) -> dict[str, str]:
        """Source files of all known methods, by the name that their pages link to."""
        found = {
            f"{kind}-{slug(name)}.txt": code_of(cls)
            for kind, own in self._known.items()
            for name, cls in own.items()
        }
        return {name: text for name, text in found.items() if text}

    def groups(self) -> dict[str, dict[str, list[MethodEntry]]]:
        """All methods by kind, and by the goal they are made for."""
        found: dict[str, dict[str, list[MethodEntry]]] = {}
        for kind, names in self.names.items():
            for name in names:
                cls = registry.find(name, self._known[kind])
                own = (
                    goals_of(name) if kind == DEFENSE else cls.threat.goals if cls else frozenset()
                )
                group = ", ".join(word for goal, word in PLAIN_WORDS.items() if goal in own)
                about = facts(cls)["paragraphs"][0] if cls else "Not part of this installation."
                title = display_name(name) if kind == DEFENSE else name
                entry = MethodEntry(kind, name, title, about, len(self._results(kind, name)))
                found.setdefault(f"{kind}s", {}).setdefault(group, []).append(entry)
        order = [*PLAIN_WORDS.values()]
        return {
            kind: dict(sorted(own.items(), key=lambda item: _place(item[0], order)))
            for kind, own in found.items()
        }

    def page(self, kind: str, name: str) -> dict[str, Any]:
        """The variables of the template of one method."""
        cls, rows = registry.find(name, self._known[kind]), self._rows(kind, name)
        return {
            "kind": kind,
            "name": name,
            "title": display_name(name) if kind == DEFENSE else name,
            "about": facts(cls) if cls else None,
            "hides": [PLAIN_WORDS[goal] for goal in sorted(goals_of(name), key=list(Goal).index)]
            if kind == DEFENSE
            else [],
            "verdicts": self._verdicts(kind, name, rows),
            "plot": self._plot(name) if kind == DEFENSE else "",
            "rows": rows,
            "has_code": cls is not None and code_of(cls) != "",
            "submissions": self._submissions(kind, name),
        }

    def _results(self, kind: str, name: str) -> list[Result]:
        if kind == DEFENSE:
            return [one for one in self._table if one.defense == name]
        return [one for one in self._table if one.attack == name]

    def in_short(self, name: str) -> list[str]:
        """Leakage of a defense within the budget, for each goal that it is made for, on the task with most settings."""
        found: dict[Goal, list[Curve]] = {}
        for curve in self._curves:
            if curve.defense == name and curve.results[0].is_made_for_goal:
                found.setdefault(curve.goal, []).append(curve)
        most = (max(own, key=lambda c: (len(c.priced), len(c.certified))) for own in found.values())
        return [f"{PLAIN_WORDS[one.goal]} {_in_short(one)}" for one in most]

    def _rows(self, kind: str, name: str) -> list[Result]:
        """The results of a method by task, model and goal, the weakest protection first."""
        found: dict[tuple[object, ...], list[Result]] = {}
        for one in self._results(kind, name):
            place = (one.setting.task, one.setting.model, one.goal, one.attribute)
            found.setdefault(place, []).append(one)
        return [one for same in found.values() for one in sorted(same, key=_mildest)]

    def _verdicts(self, kind: str, name: str, rows: Sequence[Result]) -> list[str]:
        if kind == ATTACK:
            if not rows:
                return []
            tasks = dict.fromkeys(one.setting.task for one in rows)
            return [
                f"It is the strongest attack on {count(len(rows), 'setting')} of {count(len(tasks), 'task')}: "
                f"{', '.join(map(task_name, tasks))}."
            ]
        own = [c for c in self._curves if c.defense == name and c.results[0].is_made_for_goal]
        known_first = sorted(own, key=lambda curve: not curve.priced)
        return [" ".join(words_of(curve)) for curve in known_first]

    def _plot(self, name: str) -> Any:
        """Plot of the question with most settings of the defense that have a leakage and a cost."""
        found = [
            (len(curve.priced), question)
            for question in self._questions
            for curve in question.curves
            if curve.defense == name
        ]
        if not found:
            return ""
        return plot_of(max(found, key=lambda item: item[0])[1], only=name, root=ROOT)

    def _submissions(self, kind: str, name: str) -> list[Any]:
        if kind == ATTACK:
            return []
        found = {
            one.model_dump_json(): one
            for key, manifests in self._collection.submissions.items()
            if key in self._collection.records
            and self._collection.records[key].cell.defense.name == name
            for one in manifests
        }
        return list(found.values())


def code_of(cls: type[Method]) -> str:
    """The source file of a method of this package; '' for methods of others, whose code is not ours to publish."""
    if not cls.__module__.startswith("leakboard."):
        return ""
    return Path(inspect.getfile(cls)).read_text("utf-8")


def _in_short(curve: Curve) -> str:
    within = curve.leakage_within()
    if within.setting is not None:
        return format_percent(within.value.value)
    if curve.priced:
        cheapest = min(curve.priced, key=lambda one: one.cost.value)
        cost = f"{format_number(cheapest.cost.value, 1)} {cheapest.setting.unit}"
        return f"{format_percent(cheapest.leakage.value)} for {cost}"
    return "without a comparable cost" if curve.certified else "not certified"


def _mildest(one: Result) -> tuple[bool, float]:
    """Sort key: results with a leakage first, those that leak most before others."""
    return not one.is_certified, -one.leakage.value if one.is_certified else 0.0


def _place(group: str, order: Sequence[str]) -> list[int]:
    """Sort key of a group: in the order of goals, those without a goal last."""
    return [order.index(word) for word in group.split(", ")] if group else [len(order)]


def facts(cls: type[Method]) -> dict[str, Any]:
    """Declarations of the class of a method: docstring, source, threat model and parameters."""
    threat: dict[str, str] = {}
    if issubclass(cls, Attack):
        threat = {
            "guesses": _sorted_names(cls.threat.goals),
            "reads any of": _sorted_names(cls.threat.reads) or "nothing",
            "knows": _sorted_names(cls.threat.knows) or "nothing else",
        }
    elif issubclass(cls, Defense):
        by = [f"{goal}: {', '.join(names)}" for goal, names in cls.measured_by.items()]
        threat = {
            "the other party sees": _sorted_names(cls.emits),
            "trains for": _sorted_names(cls.objectives),
            "attacks of its authors": "; ".join(by) or "–",
        }
    paragraphs = inspect.cleandoc(cls.__doc__ or "").split("\n\n")
    return {
        "paragraphs": [" ".join(paragraph.split()) for paragraph in paragraphs],
        "source": cls.source,
        "version": cls.version,
        "costly": issubclass(cls, Attack) and cls.costly,
        "threat": threat,
        "parameters": [
            (name, _default(field.get_default()), " ".join((field.description or "").split()))
            for name, field in cls.model_fields.items()
        ],
    }


def _default(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sorted_names(names: Any) -> str:
    return ", ".join(sorted(names))
