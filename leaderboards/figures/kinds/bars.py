"""Label privacy of every setting, with a paper's numbers: utility, and the success of attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from leakboard.bench.contracts import Goal, LeakboardError, grouped
from leakboard.bench.records import Row
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import (
    Place,
    measured_words,
    printed_rows,
    row_axis,
    row_points,
)
from leakboard.leaderboards.rendering import GREY, Axis, Panel, Plot, Point, Series
from leakboard.leaderboards.tables import BY_AUTHORS, Interval, RecordSet, Result

MARKERS = ("o", "s", "D", "^")
"""Markers of the models of printed points."""
INK = "#222222"


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """A row of two panels for each task and model.

    Raises:
        LeakboardError: no attack on labels read anything.
    """
    results = found.table.select(goal=Goal.LABEL)
    if not results:
        raise LeakboardError("nothing to plot: no attack on labels read anything in these records")
    authors = found.table.under(BY_AUTHORS).select(goal=Goal.LABEL)
    theirs = {one.setting.keys: one.success for one in authors}
    printed = printed_rows(found, Goal.LABEL)
    models = list(dict.fromkeys(str(row["model"]) for row in printed))
    panels = [
        panel
        for place, own in grouped(results, Place.of).items()
        for panel in _panels(
            place, own, theirs, [row for row in printed if row["task"] == place.task], models
        )
    ]
    caption = (
        "Success of the strongest attack (filled), of the attacks of P³EFT's authors (line: spectral, norm and k-means on "
        f"activations), and of guessing (tick). {measured_words(results)}"
    )
    if models:
        caption += " Hollow: as printed, for the paper's models and data."
    yield "bars", Plot("Utility and leak of labels", panels, caption, columns=2)


def _panels(
    place: Place,
    own: Sequence[Result],
    theirs: Mapping[tuple[str, ...], Interval],
    printed: Sequence[Row],
    models: Sequence[str],
) -> Iterator[Panel]:
    names = list[str]()
    for one in own:
        names.append(f"{one.name} (cut {one.setting.cut})" if one.name in names else one.name)
    y_axis = row_axis(names)
    for first in (True, False):
        values = [(one.setting.utility if first else one.success).clipped() for one in own]
        series = [*row_points(own, values)]
        for n, one in enumerate(own):
            if not first:
                y = float(n)
                weaker = theirs.get(one.setting.keys)
                series.append(Series("guessing", [Point.of(one.baseline, y)], GREY, "|"))
                if weaker is not None:
                    point = Point.of(weaker.clipped(), y)
                    series.append(Series("attacks of P³EFT's authors", [point], INK, "|", size=8))
            for m, row in enumerate(printed):
                number = row["utility"] if first else 1 - row["ep"]
                if row["defense"] == one.defense and number == number:
                    marker = MARKERS[models.index(str(row["model"])) % len(MARKERS)]
                    name = f"{row['model']}, as printed"
                    up = n + 0.12 * (m % 3 - 1)  # equal numbers of models are all seen
                    point = Point.of(float(number), up)
                    series.append(Series(name, [point], INK, marker, hollow=True, size=4))
        x = Axis(f"{own[0].setting.metric} →" if first else "← success of attacks on labels")
        title = place.title if first else ""
        yield Panel(title, x, y_axis, series, height=0.19 * len(own) + 0.75)
