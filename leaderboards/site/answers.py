"""The front page's answers: for each goal, task and budget a sentence, a table and a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import asinh
from typing import Any

from markupsafe import Markup

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.rendering import (
    Axis,
    Cell,
    Column,
    Panel,
    Plot,
    Point,
    Reference,
    Series,
    Table,
    exact,
    html_table,
    leakage_cell,
    svg_plot,
)
from leakboard.leaderboards.site.markup import page_of
from leakboard.leaderboards.tables import look
from leakboard.leaderboards.tables.curves import BUDGET, Choice, Curve, choose, curves, pareto
from leakboard.leaderboards.tables.goals import GOAL_WORDS
from leakboard.leaderboards.tables.intervals import (
    Interval,
    count,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
)
from leakboard.leaderboards.tables.results import Result, ResultsTable, display_name

BUDGETS = (1.0, BUDGET, 5.0, 10.0)
FIRST = (Goal.INVERSION, "sst2")
"""The question that the page opens with, where it was measured."""
TICKS = [(asinh(points), f"{points:g}") for points in (-10, -3, -1, 0, 1, 3, 10, 30, 100)]
"""Costs stand as in a logarithm, with a zero."""


@dataclass(frozen=True)
class Question:
    """What is to be hidden, on which task and model.

    Attributes:
        curves: of the defenses that are made for the goal.
        rows: all results of the goal there.
    """

    goal: Goal
    task: str
    model: str
    curves: Sequence[Curve]
    rows: Sequence[Result]

    @property
    def word(self) -> str:
        return GOAL_WORDS[self.goal]

    @property
    def place(self) -> str:
        return f"{self.task}, {self.model}"

    @property
    def baselines(self) -> list[Result]:
        """No protection and the untuned model, each where most seeds were run."""
        found: dict[tuple[str, str], Result] = {}
        for one in self.rows:
            if one.is_baseline and one.defense in ("none", "untuned"):
                where = one.defense, one.attribute
                if where not in found or len(one.setting.seeds) > len(found[where].setting.seeds):
                    found[where] = one
        return list(found.values())


@dataclass(frozen=True)
class Answer:
    """The answer to a question within a budget."""

    choice: Choice
    table: Markup
    unranked: Markup


class Answers:
    """All questions that the records answer."""

    def __init__(self, table: ResultsTable) -> None:
        self.curves = curves(table)
        self._others: dict[tuple[object, ...], list[Result]] = {}
        for curve in self.curves:
            for one in curve.results:
                self._others.setdefault(_choice_of(one), []).append(one)
        found: dict[tuple[Goal, str, str], list[Curve]] = {}
        for curve in self.curves:
            if curve.results[0].is_made_for_goal:
                found.setdefault((curve.goal, curve.task, curve.model), []).append(curve)
        order = list(GOAL_WORDS)
        self.questions = [
            Question(
                goal,
                task,
                model,
                own,
                [
                    r
                    for r in table
                    if (r.goal, r.setting.task, r.setting.model) == (goal, task, model)
                ],
            )
            for (goal, task, model), own in sorted(
                found.items(), key=lambda item: order.index(item[0][0])
            )
        ]

    @property
    def first(self) -> Question | None:
        """The question that the page opens with."""
        asked = (q for q in self.questions if (q.goal, q.task) == FIRST)
        return next(asked, self.questions[0] if self.questions else None)

    def answer(self, question: Question, budget: float) -> Answer:
        choice = choose(question.rows, question.task, question.word, budget, question.model)
        ranked = sorted(
            (
                (summary.value, summary.setting, curve)
                for curve in question.curves
                if (summary := curve.leakage_within(budget)).setting is not None
            ),
            key=lambda item: item[0].value,
        )
        within = [id(curve) for _, _, curve in ranked]
        dearer = sorted(
            (
                (min(curve.priced, key=lambda one: one.cost.value), curve)
                for curve in question.curves
                if curve.priced and id(curve) not in within
            ),
            key=lambda item: item[0].leakage.value,
        )
        rows: list[Sequence[Cell | str] | str] = []
        points = "1 point" if budget == 1 else f"{budget:g} points"
        helping = [item for item in ranked if item[1].leakage.high < 1]
        for rank, (leakage, setting, _) in enumerate(helping, start=1):
            rows.append(self._row(setting, leakage, f"{rank}. "))
        if len(helping) < len(ranked):
            rows.append(f"Costs at most {points}, but does not clearly reduce leakage")
            rows += [self._row(one, leakage) for leakage, one, _ in ranked if one.leakage.high >= 1]
        if dearer:
            rows.append(f"Costs more than {points} at every measured setting")
            rows += [self._row(setting, setting.leakage) for setting, _ in dearer]
        if question.baselines:
            rows.append("For comparison")
            rows += [_baseline(one) for one in question.baselines]
        title = (
            f"Defenses made to hide {question.word}, measured on {question.task} ({question.model})"
        )
        table = Table(title, COLUMNS, rows)
        return Answer(choice, html_table(table), _unranked(question))

    def _row(self, one: Result, leakage: Interval, rank: str = "") -> list[Cell | str]:
        setting = one.setting
        about = f" ({one.attribute})" if one.attribute else ""
        label = "" if setting.label == setting.defense else setting.label
        return [
            Cell(
                f"{rank}{display_name(one.defense)}{about}",
                label,
                link=page_of("defense", one.defense),
            ),
            leakage_cell(leakage),
            Cell(format_number(one.cost.value, 1), _ends(one.cost), sort=one.cost.value),
            Cell(
                one.attack,
                f"{one.metric} {format_number(one.success.value)}; undefended "
                f"{format_number(one.twin_success.value)}, guessing {format_number(one.baseline)}",
                link=page_of("attack", one.attack),
                help=f"{count(len(setting.seeds), 'seed')}, {count(one.n, 'unit')} each",
            ),
            Cell(self._gives_away(one) or "–"),
            Cell("all recovered" if one.certification == "exact" else "yes"),
        ]

    def _gives_away(self, one: Result) -> str:
        """The other goals on which this setting leaks, with how much."""
        others = [
            other
            for other in self._others[_choice_of(one)]
            if other.goal != one.goal and other.is_certified and other.leakage.low > 0
        ]
        most: dict[Goal, float] = {}
        for other in others:
            most[other.goal] = max(most.get(other.goal, 0.0), other.leakage.value)
        return ", ".join(
            f"{GOAL_WORDS[goal]} {format_percent(most[goal])}"
            for goal in GOAL_WORDS
            if goal in most
        )


COLUMNS = (
    Column("defense"),
    Column("leakage", help="Share of what attacks read without the defense that they still read"),
    Column("points lost", align="right", help="Points of utility lost against no protection"),
    Column(
        "strongest attack", help="Its success, beside that on the undefended model and guessing"
    ),
    Column("also gives away", help="Leakage of other goals at the same setting"),
    Column("certified", help="Whether an attack is shown to work without the defense"),
)


def _choice_of(one: Result) -> tuple[object, ...]:
    setting = one.setting
    return setting.task, setting.model, setting.defense, setting.choice, setting.cut


def _ends(cost: Interval) -> str:
    return format_interval(cost, 1).partition(" ")[2]


def _baseline(one: Result) -> list[Cell | str]:
    about = f" ({one.attribute})" if one.attribute else ""
    what = "No protection" if one.defense == "none" else "Untuned model"
    plain = [
        Cell(f"{what}{about}", tone="muted"),
        Cell(format_percent(one.leakage.value) if one.is_certified else "–", tone="muted"),
        Cell("0.0" if one.defense == "none" else "–", tone="muted"),
        Cell(
            one.attack,
            f"{one.metric} {format_number(one.success.value)}; guessing {format_number(one.baseline)}",
            tone="muted",
        ),
        Cell("–", tone="muted"),
        Cell("yes" if one.is_certified else "no", tone="muted"),
    ]
    return list(plain)


def _unranked(question: Question) -> Markup:
    """A list of defenses without a rank, each with the reason."""
    items = [
        Markup('<li><a href="{}">{}</a>: {}.</li>').format(
            page_of("defense", curve.defense), curve.title, why_unranked(curve)
        )
        for curve in question.curves
        if not curve.priced
    ]
    return Markup("").join(items)


def why_unranked(curve: Curve) -> str:
    """Why a curve has no setting with a certified leakage and a comparable cost; '' where it has one."""
    about = f" ({curve.attribute})" if curve.attribute else ""
    if curve.priced:
        return ""
    if not curve.certified:
        return f"not certified{about}; {curve.results[0].reason}"
    reasons = dict.fromkeys(
        one.cost_reason or "it was not tuned like no protection" for one in curve.certified
    )
    leaks = [one.leakage.value for one in curve.certified]
    span = " to ".join(dict.fromkeys((format_percent(min(leaks)), format_percent(max(leaks)))))
    word = f"{GOAL_WORDS[curve.goal]}{about}"
    return f"leaks {span} of the {word}, at a cost that cannot be compared: {'; '.join(reasons)}"


def plot_of(question: Question, only: str = "", root: str = "") -> Markup:
    """Leakage against cost of every priced setting; '' where there is none.

    Args:
        only: a defense; the others are drawn pale.
    """
    series = []
    for curve in question.curves:
        if curve.priced:
            mine = look(curve.defense)
            colour = mine.colour if only in ("", curve.defense) else "#9a9a9a"
            title = f"{curve.title} ({curve.attribute})" if curve.attribute else curve.title
            front = [_point(one, root) for one in pareto(curve.priced)]
            series.append(Series("", front, colour, marker="", line="solid"))
            series.append(
                Series(title, [_point(one, root) for one in curve.priced], colour, mine.marker)
            )
    if not series:
        return Markup("")
    costs = [asinh(one.cost.value) for curve in question.curves for one in curve.priced]
    low, high = min(-0.4, *costs) - 0.1, max(asinh(2 * BUDGET), *costs) + 0.2
    x = Axis("points of utility lost (logarithmic)", low=low, high=high, ticks=TICKS)
    y = Axis(f"leakage of {question.word}", low=0.0, high=1.05, percent=True)
    lines = [Reference("y", 1.0, "undefended"), Reference("x", asinh(BUDGET), f"{BUDGET:g} points")]
    panel = Panel("", x, y, series, lines)
    return svg_plot(Plot(f"Leakage of {question.word} against cost, {question.place}", [panel]))


def _point(one: Result, root: str) -> Point:
    x = exact(asinh(one.cost.value))
    words = f"{one.name}: leakage {format_percent_interval(one.leakage)}, {format_interval(one.cost, 1)} points lost"
    return Point(
        x,
        one.leakage.clipped(0.0, 1.05),
        detail=words,
        url=f"{root}records.html#{one.setting.keys[0]}",
    )


def front_data(answers: Answers) -> dict[str, Any]:
    """All answers for the page's script; what several budgets share stands once.

    Returns:
        `parts`: HTML; `questions`: for each goal and place the plot, the list without a rank, and for each budget
        the sentence and the table, HTML as indices of `parts`.
    """
    parts: dict[str, int] = {}

    def part(text: Markup) -> int:
        return parts.setdefault(str(text), len(parts))

    questions: dict[str, dict[str, Any]] = {}
    for question in answers.questions:
        each = {f"{b:g}": answers.answer(question, b) for b in BUDGETS}
        questions.setdefault(question.word, {})[question.place] = {
            "plot": part(plot_of(question)),
            "unranked": part(next(iter(each.values())).unranked),
            "budgets": {b: [one.choice.why, part(one.table)] for b, one in each.items()},
        }
    return {"parts": list(parts), "questions": questions}


def words_of(curve: Curve, budget: float = BUDGET) -> Iterator[str]:
    """What a curve shows, in a sentence or two."""
    word = f"{GOAL_WORDS[curve.goal]}{f' ({curve.attribute})' if curve.attribute else ''}"
    where = f"On {curve.task} ({curve.model})"
    if not curve.certified:
        yield f"{where} its leakage of {word} is not certified: {curve.results[0].reason}."
        return
    if not curve.priced:
        yield f"{where} it {why_unranked(curve)}."
        return
    within, halving = curve.leakage_within(budget), curve.cost_of_halving()
    if within.setting is None:
        cheapest = min(curve.priced, key=lambda one: one.cost.value)
        yield (
            f"{where} no setting costs at most {budget:g} points; the cheapest costs "
            f"{format_interval(cheapest.cost, 1)} and leaks {format_percent_interval(cheapest.leakage)} of the {word}."
        )
    else:
        yield (
            f"{where} it leaks {format_percent_interval(within.value)} of the {word} for at most {budget:g} points "
            f"({within.setting.setting.label})."
        )
    if halving.setting is None:
        yield "No measured setting halves the leakage."
    else:
        yield f"Halving the leakage costs {format_interval(halving.value, 1)} points ({halving.setting.setting.label})."
