"""Label privacy along the knob: utility against leakage, as several attackers see it."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import Channel, Goal, LeakboardError
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.figures.series import curves_by_place, lines, measured_words
from leakboard.leaderboards.rendering import Axis, Panel, Plot
from leakboard.leaderboards.tables import Candidate, Interval, RecordSet, Result

THEIRS = ("spectral", "norm", "kmeans")
"""The attacks of P³EFT's authors, who let them loose on activations."""
ON_ACTIVATIONS = frozenset({Channel.ACTIVATIONS, Channel.RECOMPUTED})
"""Those that were sent, and those that a server computes of every text it has seen."""


def is_theirs(candidate: Candidate) -> bool:
    """Whether P³EFT's authors measure by this attack."""
    return candidate[0] in THEIRS and candidate[2] == Channel.ACTIVATIONS


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """A row of panels for each task: their attacks, any on activations, any at all.

    Raises:
        LeakboardError: no label attack is certified.
    """
    views = {
        "attacks of P³EFT's authors": found.table.under(is_theirs),
        "any attack on activations": found.table.under(lambda c: c[2] in ON_ACTIVATIONS),
        "any attack": found.table,
    }
    grids = {name: curves_by_place(table, Goal.LABEL) for name, table in views.items()}
    panels, drawn = list[Panel](), list[Result]()
    for place in grids["any attack"]:
        for name, grid in grids.items():
            own = grid.get(place, [])
            series = [line for curve in own for line in lines(curve, _point)]
            drawn += [one for curve in own for one in curve.results if _point(one)]
            x = Axis("← leakage of labels", -0.03, 1.06, percent=True)
            title = f"{place.title}\n{name}"
            empty = "" if series else "not certified"
            metric = own[0].results[0].setting.first.utility_metric if own else ""
            panels.append(
                Panel(
                    title,
                    x,
                    Axis(f"{metric or 'utility'} →"),
                    series,
                    remark=empty,
                    height=2.5,
                    weight=0.72,
                )
            )
    if not drawn:
        raise LeakboardError("nothing to plot: no attack on labels is certified in these records")
    caption = (
        "Leakage: of what the same attackers read without the defense, the share that they still read. P³EFT's authors "
        f"measure by spectral, norm and k-means attacks on activations. {measured_words(drawn)}"
    )
    yield (
        "sensitivity",
        Plot("Utility and leakage of labels, by attacker", panels, caption, columns=3),
    )


def _point(one: Result) -> tuple[Interval, Interval] | None:
    if not one.is_certified or one.setting.utility.is_missing:
        return None
    return one.leakage.clipped(), one.setting.utility
