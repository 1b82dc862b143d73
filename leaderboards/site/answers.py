"""Answers of the front page: a sentence, a table and a plot for each goal, task, model and budget."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from math import asinh, isnan
from typing import Any

from markupsafe import Markup

from leakboard.bench.contracts import Goal, grouped
from leakboard.leaderboards.findings import model_name, task_name
from leakboard.leaderboards.rendering import Axis, Panel, Plot, Point, Reference, Series, svg_plot
from leakboard.leaderboards.site.markup import address_of, environment, unbroken, word_of
from leakboard.leaderboards.tables import (
    BUDGET,
    HALF,
    Curve,
    Entry,
    Interval,
    Ranking,
    Result,
    ResultsTable,
    display_name,
    equal_settings,
    format_interval,
    format_parameter,
    format_percent_interval,
    other_params,
    rankings,
    style_of,
)

BUDGETS = (1.0, BUDGET, 5.0, 10.0)
FIRST = (Goal.INVERSION, "sst2")
"""Default question of the page, if it was measured."""
ORDER = ("texts", "labels", "authors", "membership", "secrets", "the model", "texts and labels")
"""Things to hide that the page offers, measured or not."""
TICKS = [(asinh(points), f"{points:g}") for points in (-10, -3, -1, 0, 1, 3, 10, 30, 100)]
"""Ticks of costs on a scale that is logarithmic for large values and includes 0."""


class Question:
    """A goal on one task and model, with its rankings for all `BUDGETS`.

    Attributes:
        word: the goals as the page names them, such as 'authors (age group)' or 'texts and labels'.
    """

    def __init__(self, rankings: Mapping[float, Ranking]) -> None:
        one = rankings[BUDGET]
        self.rankings, self.ranking, self.task, self.model = rankings, one, one.task, one.model
        self.word = " and ".join(word_of(goal, one.attribute) for goal in (one.goal, *one.also))
        self.entries = self.ranking.entries
        self.curves = [entry.curve for entry in self.entries]

    @cached_property
    def left(self) -> float:
        """Left end of the bars: the leakage of guessing, which is below 0 where the floor is higher."""
        shown = [*(one.setting for one in self.entries), *self.ranking.baselines]
        return max(min((one.chance_leakage for one in shown), default=0.0), -1.0)

    def sentence(self, budget: float = BUDGET) -> str:
        """The answer: what the budget buys, and what halving the leakage costs; numbers keep their units on a line."""
        return unbroken(plain_words("sentence", self, budget))

    def best(self, budget: float) -> Entry | None:
        """The entry whose evidence is shown below the sentence."""
        within = self.rankings[budget].within
        return within[0] if within else next(iter(self.entries), None)

    def evidence(self, budget: float = BUDGET) -> Markup:
        one = self.best(budget)
        return Markup(macros().evidence(one)) if one else Markup("")

    def rows(self, budget: float = BUDGET) -> list[Markup]:
        """Rows of the table: ranked, without clear effect, over the budget, and for comparison."""
        one, row, line = self.rankings[budget], macros().row, macros().line
        points = plain_words("cost", budget, one.unit, 0)
        found = [row(self, entry) for entry in one.within]
        for words, entries in (
            (f"Within {points}, but without a clear effect", one.ineffective),
            (
                f"Over the budget: every measured setting costs more than {points}, or nearly all gain",
                one.over,
            ),
        ):
            if entries:
                found += [line(words), *(row(self, entry) for entry in entries)]
        if one.baselines:
            found += [line("For comparison"), *(macros().baseline(self, b) for b in one.baselines)]
        return [Markup(each) for each in found]

    @property
    def unranked(self) -> Markup:
        """List of measured defenses without a rank, with the reasons; '' if there is none."""
        return Markup(macros().unranked((*self.ranking.uncertified, *self.ranking.unpriced)))

    def bar(self, one: Result, leakage: Interval) -> str:
        """Places on a bar as CSS variables: leakage with its interval, floor and guessing."""
        value, low, high = leakage.ends
        if isnan(low) or isnan(high):
            low = high = value
        at = {"value": value, "low": low, "high": high, "floor": 0.0, "guess": one.chance_leakage}
        width = 1 - self.left
        return ";".join(
            f"--{name}:{100 * (min(max(x, self.left), 1.0) - self.left) / width:.1f}%"
            for name, x in at.items()
        )


def names_of_best(within: Sequence[Entry]) -> str:
    """Names of the first setting, and of at most two that are equal to it."""
    first, *others = [one.setting for one in within]
    return names_of([first, *equal_settings(first, others)[:2]])


def names_of(settings: Sequence[Result]) -> str:
    """'SAP-CTI or SAP, η = 110': defenses with the parameter that trades utility for privacy."""

    def words(one: Result) -> str:
        knob, params = one.setting.knob, json.loads(one.setting.params)
        return f", {format_parameter(knob, params[knob])}" if knob in params else ""

    return " or ".join(
        " or ".join(display_name(one.defense) for one in same) + words
        for words, same in grouped(settings, words).items()
    )


@cache
def macros() -> Any:
    """Macros of the rows and sentences."""
    made = environment()
    made.globals |= {"names_of": names_of, "names_of_best": names_of_best, "half": HALF}
    return made.get_template("answer.html").module


def plain_words(macro: str, *about: object) -> str:
    """The sentences of a macro as text, which is not yet escaped."""
    return " ".join(getattr(macros(), macro)(*about).unescape().split())


def questions_of(table: ResultsTable) -> list[Question]:
    """All questions that the results answer, in the order of the page."""
    by_budget = (rankings(table, budget) for budget in BUDGETS)
    same = zip(*by_budget, strict=True)
    found = [Question(dict(zip(BUDGETS, each, strict=True))) for each in same]
    return sorted(found, key=lambda one: _place(one.word))


def _place(word: str) -> int:
    plain = word.partition(" (")[0]
    return ORDER.index(plain) if plain in ORDER else len(ORDER)


def first_of(questions: Sequence[Question]) -> Question | None:
    """Default question of the page."""
    matching = (q for q in questions if (q.ranking.goal, q.ranking.task) == FIRST)
    return next(matching, questions[0] if questions else None)


def words_to_hide(questions: Sequence[Question]) -> list[str]:
    """Things to hide that the page offers: those that were asked, and those of `ORDER` that were not."""
    asked = dict.fromkeys(question.word for question in questions)
    plain = {word.partition(" (")[0] for word in asked}
    return sorted([*asked, *(word for word in ORDER if word not in plain)], key=_place)


def front_data(questions: Sequence[Question]) -> dict[str, Any]:
    """All answers for the page's script, without repeated parts.

    Returns:
        `parts`: pieces of HTML. `questions`: by goal, task and model: the head of the table, the plot, the list of
        unranked defenses, and for each budget the sentence, its evidence and the rows, as indices of `parts`.
    """
    parts: dict[str, int] = {}

    def part(text: Markup) -> int:
        return parts.setdefault(str(text), len(parts))

    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in questions:
        found.setdefault(one.word, {}).setdefault(one.task, {})[one.model] = {
            "head": part(macros().head(one)),
            "plot": part(plot_of(one)),
            "unranked": part(one.unranked),
            "budgets": {
                f"{b:g}": [one.sentence(b), part(one.evidence(b)), [*map(part, one.rows(b))]]
                for b in BUDGETS
            },
        }
    return {"parts": list(parts), "questions": found}


def plot_of(question: Question, only: str = "", root: str = "") -> Markup:
    """Plot of leakage against cost of all settings with a comparable cost; '' if there is none.

    Args:
        only: defense to highlight; the others are drawn pale.
    """
    series = []
    for curve in question.curves:
        mine = style_of(curve.defense)
        colour = mine.colour if only in ("", curve.defense) else "#9a9a9a"
        for same in _varied(curve):
            line = [_point(one, root) for one in same]
            series.append(Series("", line, colour, marker="", line="solid"))
        points = [_point(one, root) for one in curve.priced]
        series.append(Series(curve.title, points, colour, mine.marker))
    if not series:
        return Markup("")
    unit = question.ranking.unit
    costs = [asinh(one.cost.value) for curve in question.curves for one in curve.priced]
    low, high = min(-0.4, *costs) - 0.3, max(asinh(2 * BUDGET), *costs) + 0.3
    x = Axis(f"{unit} of utility lost (logarithmic)", low=low, high=high, ticks=TICKS)
    y = Axis("still readable", low=0.0, high=1.05, percent=True)
    lines = [Reference("y", 1.0, "no defense"), Reference("x", asinh(BUDGET), f"{BUDGET:g} {unit}")]
    model = model_name(question.model)
    title = f"{question.word} of {task_name(question.task)} ({model}): share still readable against cost"
    caption = f"{question.word}, {task_name(question.task)}, {model}" if only else ""
    return svg_plot(Plot(title, [Panel("", x, y, series, lines)], caption))


def _varied(curve: Curve) -> list[list[Result]]:
    """Settings that differ in the knob of their defense alone, in its order: lines connect only these."""

    def alike(one: Result) -> tuple[object, ...]:
        *place, choice, cut, training = one.setting.offer
        return *place, other_params(str(choice), one.setting.knob), cut, training

    found = grouped(curve.priced, alike).values()
    return [sorted(same, key=lambda one: one.setting.knob_value) for same in found]


def _point(one: Result, root: str) -> Point:
    words = f"{one.name}: {format_percent_interval(one.leakage)} still readable, {format_interval(one.cost, 1)} {one.setting.unit} lost"
    return Point(
        Interval(*map(asinh, one.cost.ends)),
        one.leakage.clipped(0.0, 1.05),
        detail=words,
        url=address_of(one, root),
    )


def words_of(curve: Curve) -> str:
    """One or two sentences about a curve."""
    return plain_words("about_curve", curve, BUDGET)
