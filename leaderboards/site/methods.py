"""The pages of defenses and attacks: the verdict, the curve, all settings, the threat model and the source."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from leakboard.bench.contracts import Goal, grouped
from leakboard.bench.methods import Method, registry
from leakboard.bench.submissions import Collection
from leakboard.leaderboards.site.answers import Question, plot_of, words_of
from leakboard.leaderboards.site.markup import page_of, slug
from leakboard.leaderboards.tables import (
    PLAIN_WORDS,
    Curve,
    Result,
    ResultsTable,
    curves,
    display_name,
    goals_of,
)

ROOT = "../"
"""From a page of a method to the front."""
DEFENSE, ATTACK = "defense", "attack"


class MethodPages:
    """Content of the pages of methods."""

    def __init__(
        self, collection: Collection, table: ResultsTable, questions: Sequence[Question]
    ) -> None:
        self._questions, records = questions, collection.records
        self._known: dict[str, Mapping[str, type[Any]]] = {
            DEFENSE: registry.defenses(),
            ATTACK: registry.attacks(),
        }
        used = {
            DEFENSE: {record.cell.defense.name for record in records.values()},
            ATTACK: {leak.attack.name for record in records.values() for leak in record.leaks},
        }
        self.names = {kind: sorted({*own, *used[kind]}) for kind, own in self._known.items()}
        self._results = {
            DEFENSE: grouped(table, lambda one: one.defense),
            ATTACK: grouped(table, lambda one: one.attack),
        }
        made = [curve for curve in curves(table) if curve.is_made_for_goal]
        self._curves = grouped(made, lambda curve: curve.defense)
        self._submissions: dict[str, dict[str, object]] = {}
        for key, manifests in collection.submissions.items():
            if key in records:
                own = self._submissions.setdefault(records[key].cell.defense.name, {})
                own |= {one.model_dump_json(): one for one in manifests}

    def code(self) -> dict[str, str]:
        """Source files of all known methods, by the name that their pages link to."""
        found = {
            f"{kind}-{slug(name)}.txt": code_of(cls)
            for kind, own in self._known.items()
            for name, cls in own.items()
        }
        return {name: text for name, text in found.items() if text}

    def groups(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """All methods by kind, and by the goal they are made for."""
        order = [*PLAIN_WORDS.values()]
        found: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for kind, names in self.names.items():
            own = grouped(names, lambda name: self._goals(kind, name))  # noqa: B023
            found[f"{kind}s"] = {
                group: [self._entry(kind, name) for name in own[group]]
                for group in sorted(own, key=lambda group: _place(group, order))
            }
        return found

    def _goals(self, kind: str, name: str) -> str:
        """Goals of a method in words; '' for baselines and unknown attacks."""
        cls = registry.find(name, self._known[kind])
        own = goals_of(name) if kind == DEFENSE else cls.threat.goals if cls else ()
        return ", ".join(word for goal, word in PLAIN_WORDS.items() if goal in own)

    def _entry(self, kind: str, name: str) -> dict[str, Any]:
        """A method in the list of all of them."""
        cls = registry.find(name, self._known[kind])
        return {
            "page": page_of(kind, name),
            "title": _title(kind, name),
            "about": paragraphs(cls)[0] if cls else "Not part of this installation.",
            "results": len(self._results[kind].get(name, [])),
            "curves": self._main_curves(name) if kind == DEFENSE else [],
        }

    def page(self, kind: str, name: str) -> dict[str, Any]:
        """The variables of the template of one method."""
        cls = registry.find(name, self._known[kind])
        # By task, model and goal, the weakest protection first.
        places = grouped(
            self._results[kind].get(name, []),
            lambda one: (one.setting.task, one.setting.model, one.goal, one.attribute),
        )
        rows = [one for same in places.values() for one in sorted(same, key=_mildest)]
        found = {
            "kind": kind,
            "name": name,
            "title": _title(kind, name),
            "method": cls,
            "about": paragraphs(cls) if cls else [],
            "rows": rows,
            "has_code": cls is not None and code_of(cls) != "",
        }
        if kind == ATTACK:
            return found | {"hides": [], "verdicts": [], "plot": "", "submissions": []}
        known_first = sorted(self._curves.get(name, []), key=lambda curve: not curve.priced)
        return found | {
            "hides": [PLAIN_WORDS[goal] for goal in sorted(goals_of(name), key=list(Goal).index)],
            "verdicts": [words_of(curve) for curve in known_first],
            "plot": self._plot(name),
            "submissions": [*self._submissions.get(name, {}).values()],
        }

    def _main_curves(self, name: str) -> list[Curve]:
        """Curve of a defense on the task with most settings, for each goal that it is made for."""
        found = grouped(self._curves.get(name, []), lambda curve: curve.goal).values()
        return [max(own, key=lambda c: (len(c.priced), len(c.certified))) for own in found]

    def _plot(self, name: str) -> Markup | str:
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


def _title(kind: str, name: str) -> str:
    return display_name(name) if kind == DEFENSE else name


def code_of(cls: type[Method]) -> str:
    """The source file of a method of this package; '' for methods of others, whose code is not ours to publish."""
    if not cls.__module__.startswith("leakboard."):
        return ""
    return Path(inspect.getfile(cls)).read_text("utf-8")


def _mildest(one: Result) -> tuple[bool, float]:
    """Sort key: results with a leakage first, those that leak most before others."""
    return not one.is_certified, -one.leakage.value if one.is_certified else 0.0


def _place(group: str, order: Sequence[str]) -> list[int]:
    """Sort key of a group: in the order of goals, those without a goal last."""
    return [order.index(word) for word in group.split(", ")] if group else [len(order)]


def paragraphs(cls: type[Method]) -> list[str]:
    """The docstring of a method."""
    return [" ".join(each.split()) for each in inspect.cleandoc(cls.__doc__ or "").split("\n\n")]
