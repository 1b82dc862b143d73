"""The pages of defenses and attacks: the verdict, the curve, all settings, the threat model and the source."""

from __future__ import annotations

import inspect
from collections.abc import Collection as Several
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import Goal, grouped
from leakboard.bench.methods import Method, registry
from leakboard.bench.submissions import Collection
from leakboard.leaderboards.site.answers import Question, plot_of, words_of
from leakboard.leaderboards.site.markup import page_of
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


def method_pages(
    collection: Collection, table: ResultsTable, questions: Sequence[Question]
) -> list[dict[str, Any]]:
    """The variables of the template of each known or recorded method, defenses first."""
    records = collection.records.values()
    defenses, attacks = registry.defenses(), registry.attacks()
    against = grouped(table, lambda one: one.defense)
    made = [curve for curve in curves(table) if curve.is_made_for_goal]
    by_defense = grouped(made, lambda curve: curve.defense)
    pages = [
        _page(DEFENSE, name, registry.find(name, defenses), goals_of(name), against.get(name, []))
        | _of_defense(name, by_defense.get(name, []), collection, questions)
        for name in sorted({*defenses, *(record.cell.defense.name for record in records)})
    ]
    strongest = grouped(table, lambda one: one.attack)
    for name in sorted({*attacks, *(leak.attack.name for one in records for leak in one.leaks)}):
        cls = registry.find(name, attacks)
        goals = cls.threat.goals if cls else ()
        pages.append(_page(ATTACK, name, cls, goals, strongest.get(name, [])))
    return pages


def by_goal(pages: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """All methods by kind, and by the goals they are made for; those without a goal last."""
    order = [*PLAIN_WORDS.values()]

    def place(page: dict[str, Any]) -> list[int]:
        return [order.index(word) for word in page["goals"]] or [len(order)]

    return {
        kind: grouped(sorted(own, key=place), lambda page: ", ".join(page["goals"]))
        for kind, own in grouped(pages, lambda page: f"{page['kind']}s").items()
    }


def _page(
    kind: str,
    name: str,
    cls: type[Method] | None,
    goals: Several[Goal],
    rows: Sequence[Result],
) -> dict[str, Any]:
    # By task, model and goal, the weakest protection first.
    places = grouped(
        rows, lambda one: (one.setting.task, one.setting.model, one.goal, one.attribute)
    )
    return {
        "kind": kind,
        "name": name,
        "path": page_of(kind, name),
        "title": display_name(name) if kind == DEFENSE else name,
        "goals": [word for goal, word in PLAIN_WORDS.items() if goal in goals],
        "method": cls,
        "about": paragraphs(cls) if cls else [],
        "code": code_of(cls) if cls else "",
        "rows": [one for same in places.values() for one in sorted(same, key=_mildest)],
        "verdicts": [],
        "plot": "",
        "submissions": [],
    }


def _of_defense(
    name: str, own: Sequence[Curve], collection: Collection, questions: Sequence[Question]
) -> dict[str, Any]:
    """What a page has of a defense alone.

    Returns:
        `main`: of each goal the curve on the task with most settings. `plot`: of the question with most settings of
        the defense that have a leakage and a cost.
    """
    drawn = [(len(c.priced), one) for one in questions for c in one.curves if c.defense == name]
    main = grouped(own, lambda curve: curve.goal).values()
    submitted = {
        one.model_dump_json(): one
        for key, manifests in collection.submissions.items()
        if key in collection.records and collection.records[key].cell.defense.name == name
        for one in manifests
    }
    return {
        "main": [max(same, key=lambda c: (len(c.priced), len(c.certified))) for same in main],
        "verdicts": [words_of(one) for one in sorted(own, key=lambda one: not one.priced)],
        "plot": plot_of(max(drawn, key=lambda each: each[0])[1], name, ROOT) if drawn else "",
        "submissions": [*submitted.values()],
    }


def code_of(cls: type[Method]) -> str:
    """The source file of a method of this package; '' for methods of others, whose code is not ours to publish."""
    if not cls.__module__.startswith("leakboard."):
        return ""
    return Path(inspect.getfile(cls)).read_text("utf-8")


def _mildest(one: Result) -> tuple[bool, float]:
    """Sort key: results with a leakage first, those that leak most before others."""
    return not one.is_certified, -one.leakage.value if one.is_certified else 0.0


def paragraphs(cls: type[Method]) -> list[str]:
    """The docstring of a method."""
    return [" ".join(each.split()) for each in inspect.cleandoc(cls.__doc__ or "").split("\n\n")]
