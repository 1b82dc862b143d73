"""Label privacy of every setting, with a paper's numbers: utility, and the success of attacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.bench.records import Row, rows_of
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.kinds.sensitivity import is_theirs
from leakboard.leaderboards.figures.series import Place, measured_words, place_of, setting_names
from leakboard.leaderboards.rendering import GREY, Axis, Panel, Plot, Point, Series, exact
from leakboard.leaderboards.tables import Interval, RecordSet, Result, style_of

MARKERS = ("o", "s", "D", "^")
"""Markers of the models of printed points."""
INK = "#222222"


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """A row of two panels for each task and model.

    Raises:
        LeakboardError: no attack on labels read anything.
    """
    rows: dict[tuple[str, str], list[Result]] = {}
    for one in found.table.select(goal=Goal.LABEL):
        rows.setdefault((one.setting.task, one.setting.model), []).append(one)
    if not rows:
        raise LeakboardError("nothing to plot: no attack on labels read anything in these records")
    theirs = {
        place_of(one): one.success for one in found.table.under(is_theirs).select(goal=Goal.LABEL)
    }
    printed = [] if found.printed is None else rows_of(found.printed)
    models = list(dict.fromkeys(str(row["model"]) for row in printed if row["goal"] == Goal.LABEL))
    panels = [
        panel
        for (task, model), own in rows.items()
        for panel in _panels(
            Place(task, model).title,
            own,
            theirs,
            [row for row in printed if (row["task"], row["goal"]) == (task, Goal.LABEL)],
            models,
        )
    ]
    caption = (
        "Success of the strongest attack (filled), of the attacks of P³EFT's authors (line: spectral, norm and k-means on "
        "activations), and of guessing (tick). "
        f"{measured_words([one for own in rows.values() for one in own])}"
    )
    if models:
        caption += " Hollow: as printed, for the paper's models and data."
    yield "bars", Plot("Utility and leak of labels", panels, caption, columns=2)


def _panels(
    title: str,
    own: Sequence[Result],
    theirs: dict[tuple[object, ...], Interval],
    printed: Sequence[Row],
    models: Sequence[str],
) -> Iterator[Panel]:
    names = setting_names(own)
    height = 0.19 * len(own) + 0.75
    for first in (True, False):
        series = []
        for n, one in enumerate(own):
            how, y = style_of(one.defense), exact(float(n))
            at = (one.setting.utility if first else one.success).clipped()
            if not at.is_missing:
                series.append(Series("", [Point(at, y, detail=one.name)], how.colour, how.marker))
            if not first:
                weaker = theirs.get(place_of(one))
                series.append(Series("guessing", [Point(exact(one.baseline), y)], GREY, "|"))
                if weaker is not None:
                    point = Point(weaker.clipped(), y)
                    series.append(Series("attacks of P³EFT's authors", [point], INK, "|", size=8))
            for m, row in enumerate(printed):
                number = row["utility"] if first else 1 - row["ep"]
                if row["defense"] == one.defense and number == number:
                    marker = MARKERS[models.index(str(row["model"])) % len(MARKERS)]
                    name = f"{row['model']}, as printed"
                    at = exact(float(number))
                    up = exact(n + 0.12 * (m % 3 - 1))  # equal numbers of models are all seen
                    series.append(Series(name, [Point(at, up)], INK, marker, hollow=True, size=4))
        metric = own[0].setting.first.utility_metric or "utility"
        ticks = [(float(n), names[place_of(one)]) for n, one in enumerate(own)]
        y_axis = Axis("", -0.6, len(own) - 0.4, ticks, rises=False, shared=True)
        x = Axis(f"{metric} →" if first else "← success of attacks on labels")
        yield Panel(title if first else "", x, y_axis, series, height=height)
