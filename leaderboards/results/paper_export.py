"""Results as tables for papers: LaTeX and Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import Goal, LeakboardError, grouped
from leakboard.leaderboards.figures import Place, measured_words
from leakboard.leaderboards.rendering import (
    Cell,
    Table,
    columns,
    latex_document,
    latex_table,
    leakage_cell,
    markdown_table,
)
from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    LEAKAGE_WORDS,
    Result,
    ResultsTable,
    display_name,
    format_interval,
    format_number,
)


def paper_text(table: ResultsTable, form: str, goal: Goal | None = None) -> str:
    """All tables of the results in `latex` or `markdown`.

    Raises:
        LeakboardError: no attack on the goal read anything.
    """
    made = [*paper_tables(table, goal)]
    if not made:
        what = GOAL_WORDS[goal] if goal else "anything"
        raise LeakboardError(f"nothing to export: no attack read {what} in these records")
    if form == "markdown":
        return "\n".join(map(markdown_table, made))
    texts = [latex_table(each, f"tab:leakage-{n}") for n, each in enumerate(made, start=1)]
    return latex_document(texts)


def paper_tables(table: ResultsTable, goal: Goal | None = None) -> Iterator[Table]:
    """A table for each goal, task, model and attribute, with a row for each setting, no protection first."""
    rows = table if goal is None else table.select(goal=goal)
    places = grouped(rows, lambda one: (one.goal, Place.of(one)))
    order = [*GOAL_WORDS]
    for (of, place), own in sorted(places.items(), key=lambda each: order.index(each[0][0])):
        own.sort(key=lambda one: (not one.is_baseline, one.defense))
        utility, unit = own[0].setting.metric, own[0].setting.unit
        numbers = (">leakage", f">{unit} lost", f">{utility}", ">success", ">baseline")
        head = columns("defense", "setting", *numbers, "attack")
        title = f"Leakage of {GOAL_WORDS[of]} on {place.title}"
        yield Table(title, head, [_row(one) for one in own], [LEAKAGE_WORDS, measured_words(own)])


def _row(one: Result) -> list[Cell | str]:
    setting = one.setting
    return [
        display_name(one.defense),
        "" if setting.label == one.defense else setting.label,
        leakage_cell(one.leakage),
        format_interval(one.cost, 1) if one.has_cost else "–",
        format_interval(setting.utility),
        format_interval(one.success),
        format_number(one.baseline),
        f"{one.attack_title} ({one.metric})",
    ]
