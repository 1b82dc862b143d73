"""Label privacy along the knob: utility against leakage for several attackers."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import Channel, Goal, LeakboardError
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import (
    curves_by_place,
    leakage_and_utility,
    lines,
    measured_words,
)
from leakboard.leaderboards.rendering import Axis, Panel, Plot
from leakboard.leaderboards.tables import BY_AUTHORS, LEAKAGE_WORDS, RecordSet, Result

ON_ACTIVATIONS = frozenset({Channel.ACTIVATIONS, Channel.RECOMPUTED})
"""Channels of activations: sent, or recomputed by a server from received texts."""


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """A row of panels for each task: the authors' attacks, any attack on activations, and any attack.

    Raises:
        LeakboardError: no label attack is certified.
    """
    views = {
        "attacks of P³EFT's authors": found.table.under(BY_AUTHORS),
        "any attack on activations": found.table.under(lambda c: c[2] in ON_ACTIVATIONS),
        "any attack": found.table,
    }
    grids = {name: curves_by_place(table, Goal.LABEL) for name, table in views.items()}
    panels, drawn = list[Panel](), list[Result]()
    for place in grids["any attack"]:
        for name, grid in grids.items():
            own = grid.get(place, [])
            series = [line for curve in own for line in lines(curve, leakage_and_utility)]
            drawn += [one for curve in own for one in curve.results if leakage_and_utility(one)]
            x = Axis("← leakage of labels", -0.03, 1.06, percent=True)
            remark = "" if series else "not certified"
            metric = own[0].results[0].setting.metric if own else "utility"
            y, title = Axis(f"{metric} →"), f"{place.title}\n{name}"
            panels.append(Panel(title, x, y, series, remark=remark, height=2.5, weight=0.72))
    if not drawn:
        raise LeakboardError("nothing to plot: no attack on labels is certified in these records")
    caption = f"{LEAKAGE_WORDS} P³EFT's authors use spectral, norm and k-means attacks on activations. {measured_words(drawn)}"
    title = "Utility and leakage of labels, by attacker"
    yield "sensitivity", Plot(title, panels, caption, columns=3)
