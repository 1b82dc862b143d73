"""Answers of the front page: a sentence, a table and a plot for each goal, task and budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import asinh
from typing import Any

from markupsafe import Markup

from leakboard.bench.contracts import Goal
from leakboard.bench.scoring import UNTUNED
from leakboard.leaderboards.rendering import (
    ATTACK_COLUMN,
    COST_COLUMN,
    LEAKAGE_COLUMN,
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
    in_unit,
    leakage_cell,
    svg_plot,
)
from leakboard.leaderboards.site.markup import page_of
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    Choice,
    Curve,
    Entry,
    Interval,
    Ranking,
    Result,
    ResultsTable,
    choose,
    count,
    display_name,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
    pareto,
    rankings,
    reason_without_cost,
    style_of,
)

BUDGETS = (1.0, BUDGET, 5.0, 10.0)
FIRST = (Goal.INVERSION, "sst2")
"""Default question of the page, if it was measured."""
TICKS = [(asinh(points), f"{points:g}") for points in (-10, -3, -1, 0, 1, 3, 10, 30, 100)]
"""Ticks of costs on a scale that is logarithmic for large values and includes 0."""


@dataclass(frozen=True)
class Answer:
    """The answer to a question within a budget.

    Attributes:
        unranked: list of measured defenses without a rank, as HTML.
    """

    choice: Choice
    table: Markup
    unranked: Markup


class Question:
    """A goal on one task and model, with its rankings for all `BUDGETS`."""

    def __init__(self, rankings: Mapping[float, Ranking], rows: Sequence[Result]) -> None:
        self.rankings, self.rows = rankings, rows
        self.ranking = rankings[BUDGET]

    @property
    def word(self) -> str:
        return self.ranking.words

    @property
    def place(self) -> str:
        return f"{self.ranking.task}, {self.ranking.model}"

    @property
    def curves(self) -> list[Curve]:
        """Curves of defenses that have a setting with a leakage and a comparable cost."""
        return [
            entry.curve
            for entry in (*self.ranking.within, *self.ranking.ineffective, *self.ranking.over)
        ]

    def answer(self, budget: float) -> Answer:
        one = self.rankings[budget]
        words = " and ".join(GOAL_WORDS[goal] for goal in (one.goal, *one.also))
        choice = choose(self.rows, one.task, words, budget, one.model)
        rows: list[Sequence[Cell | str] | str] = []
        points = f"{budget:g} {one.unit}".replace("1 points", "1 point")
        rows += [_row(entry, f"{entry.rank}. ") for entry in one.within]
        if one.ineffective:
            rows.append(f"Costs at most {points}, but does not clearly reduce leakage")
            rows += [_row(entry) for entry in one.ineffective]
        if one.over:
            rows.append(f"Costs more than {points} at every measured setting")
            rows += [_row(entry) for entry in one.over]
        if one.baselines:
            rows.append("For comparison")
            rows += [_baseline(each) for each in one.baselines]
        title = f"Defenses made to hide {self.word}, measured on {one.task} ({one.model})"
        unranked = [
            Markup('<li><a href="{}">{}</a> {}.</li>').format(
                page_of("defense", curve.defense), curve.title, why_unranked(curve)
            )
            for curve in (*one.unpriced, *one.uncertified)
        ]
        return Answer(
            choice,
            html_table(Table(title, in_unit(COLUMNS, one.unit), rows)),
            Markup("").join(unranked),
        )


def questions_of(table: ResultsTable) -> list[Question]:
    """All questions that the results answer, in the order of goals."""
    by_budget = {budget: rankings(table, budget) for budget in BUDGETS}
    return [
        Question(
            dict(zip(BUDGETS, same, strict=True)),
            table.select(task=same[0].task)
            if same[0].also
            else table.select(goal=same[0].goal, attribute=same[0].attribute, task=same[0].task),
        )
        for same in zip(*by_budget.values(), strict=True)
    ]


def first_of(questions: Sequence[Question]) -> Question | None:
    """Default question of the page."""
    matching = (q for q in questions if (q.ranking.goal, q.ranking.task) == FIRST)
    return next(matching, questions[0] if questions else None)


def _row(entry: Entry, rank: str = "") -> list[Cell | str]:
    one = entry.setting
    label = "" if one.setting.label == one.defense else one.setting.label
    words = "; ".join(filter(None, [label, one.setting.claim_note]))
    return [
        Cell(f"{rank}{entry.curve.title}", words, link=page_of("defense", one.defense)),
        leakage_cell(entry.leakage),
        Cell(format_number(one.cost.value, 1), _ends(one.cost), sort=one.cost.value),
        attack_cell(one),
        Cell(entry.gives_away_words or "–"),
        Cell("all recovered" if one.certification == "exact" else "yes"),
    ]


COLUMNS = (
    Column("defense"),
    LEAKAGE_COLUMN,
    COST_COLUMN,
    ATTACK_COLUMN,
    Column("also gives away", help="Leakage of other goals at the same setting"),
    Column("certified", help="Whether an attack is shown to work without the defense"),
)


def attack_cell(one: Result, root: str = "") -> Cell:
    """The strongest attack with its success, that on the undefended model, and guessing."""
    return Cell(
        one.attack,
        f"{one.metric} {format_number(one.success.value)}; undefended "
        f"{format_number(one.twin_success.value)}, guessing {format_number(one.baseline)}",
        link=page_of("attack", one.attack, root),
        help=f"{count(len(one.setting.seeds), 'seed')}, {count(one.n, 'unit')} each",
    )


def _ends(cost: Interval) -> str:
    return format_interval(cost, 1).partition(" ")[2]


def _baseline(one: Result) -> list[Cell | str]:
    about = f" ({one.attribute})" if one.attribute else ""
    is_untuned = one.defense == UNTUNED
    return [
        Cell(f"{display_name(one.defense)}{about}", tone="muted"),
        Cell(format_percent(one.leakage.value), tone="muted"),
        Cell("–" if is_untuned else "0.0", tone="muted"),
        replace(attack_cell(one), tone="muted"),
        Cell("–", tone="muted"),
        Cell("yes" if one.is_certified else "no", tone="muted"),
    ]


def why_unranked(curve: Curve) -> str:
    """Reason why a defense has no rank, as a clause."""
    if not curve.certified:
        return f"is not certified: {curve.results[0].reason}"
    leaks = [one.leakage.value for one in curve.certified]
    span = " to ".join(dict.fromkeys((format_percent(min(leaks)), format_percent(max(leaks)))))
    return f"leaks {span}, at a cost that cannot be compared: {reason_without_cost(curve)}"


def plot_of(question: Question, only: str = "", root: str = "") -> Markup:
    """Plot of leakage against cost of all settings with a comparable cost; '' if there is none.

    Args:
        only: defense to highlight; the others are drawn pale.
    """
    series = []
    for curve in question.curves:
        mine = style_of(curve.defense)
        colour = mine.colour if only in ("", curve.defense) else "#9a9a9a"
        front = [_point(one, root) for one in pareto(curve.priced)]
        series.append(Series("", front, colour, marker="", line="solid"))
        points = [_point(one, root) for one in curve.priced]
        series.append(Series(curve.title, points, colour, mine.marker))
    if not series:
        return Markup("")
    unit = question.ranking.unit
    costs = [asinh(one.cost.value) for curve in question.curves for one in curve.priced]
    low, high = min(-0.4, *costs) - 0.1, max(asinh(2 * BUDGET), *costs) + 0.2
    x = Axis(f"{unit} of utility lost (logarithmic)", low=low, high=high, ticks=TICKS)
    y = Axis(f"leakage of {question.word}", low=0.0, high=1.05, percent=True)
    lines = [Reference("y", 1.0, "undefended"), Reference("x", asinh(BUDGET), f"{BUDGET:g} {unit}")]
    panel = Panel("", x, y, series, lines)
    return svg_plot(Plot(f"Leakage of {question.word} against cost, {question.place}", [panel]))


def _point(one: Result, root: str) -> Point:
    x = exact(asinh(one.cost.value))
    words = f"{one.name}: leakage {format_percent_interval(one.leakage)}, {format_interval(one.cost, 1)} {one.setting.unit} lost"
    return Point(
        x,
        one.leakage.clipped(0.0, 1.05),
        detail=words,
        url=f"{root}records.html#{one.setting.keys[0]}",
    )


def front_data(questions: Sequence[Question]) -> dict[str, Any]:
    """All answers for the page's script, without repeated parts.

    Returns:
        `parts`: pieces of HTML. `questions`: for each goal and place, the plot, the list of unranked defenses, and for
        each budget the sentence and the table, as indices of `parts`.
    """
    parts: dict[str, int] = {}

    def part(text: Markup) -> int:
        return parts.setdefault(str(text), len(parts))

    found: dict[str, dict[str, Any]] = {}
    for question in questions:
        each = {f"{b:g}": question.answer(b) for b in BUDGETS}
        found.setdefault(question.word, {})[question.place] = {
            "plot": part(plot_of(question)),
            "unranked": part(next(iter(each.values())).unranked),
            "budgets": {b: [one.choice.why, part(one.table)] for b, one in each.items()},
        }
    return {"parts": list(parts), "questions": found}


def words_of(curve: Curve, budget: float = BUDGET) -> Iterator[str]:
    """One or two sentences about a curve."""
    word = f"{GOAL_WORDS[curve.goal]}{f' ({curve.attribute})' if curve.attribute else ''}"
    where = f"On {curve.task} ({curve.model})"
    if not curve.priced:
        yield f"{where}, {word}: it {why_unranked(curve)}."
        return
    within, halving = curve.leakage_within(budget), curve.cost_of_halving()
    unit = curve.results[0].setting.unit
    if within.setting is None:
        cheapest = min(curve.priced, key=lambda one: one.cost.value)
        yield (
            f"{where} no setting costs at most {budget:g} {unit}; the cheapest costs "
            f"{format_interval(cheapest.cost, 1)} and leaks {format_percent_interval(cheapest.leakage)} of the {word}."
        )
    else:
        yield (
            f"{where} it leaks {format_percent_interval(within.value)} of the {word} for at most {budget:g} {unit} "
            f"({within.setting.setting.label})."
        )
    if halving.setting is None:
        yield "No measured setting halves the leakage."
    else:
        yield f"Halving the leakage costs {format_interval(halving.value, 1)} {unit} ({halving.setting.setting.label})."
