"""Principal components of the messages to one server at moments of training, by label."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import LeakboardError, Record, grouped
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.rendering import CLASSES, Axis, Panel, Plot, Point, Series
from leakboard.leaderboards.tables import RecordSet


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """A figure for each setting, of its first seed.

    Raises:
        LeakboardError: no record holds projections.
    """
    settings = [one for one in found.table.settings if one.first.projections]
    if not settings:
        raise LeakboardError(
            "nothing to plot: nothing was sent at moments of training, or the records are older "
            "than this figure"
        )
    for one in settings:
        words = one.label.replace(",", "").replace(" = ", "=").split()
        words = [] if one.label == one.defense else words
        stem = "-".join(["pca", one.task, one.defense, *words])
        yield stem, _components(one.first, f"{one.task}: {one.name}")


def _components(record: Record, title: str) -> Plot:
    """A row of panels for each channel, part and recipient, with a panel for each moment."""
    found = grouped(record.projections, lambda one: (one.channel.value, one.part, one.recipient))
    columns = max(map(len, found.values()))
    blank, weight = Axis(ticks=()), 2.2 / columns
    panels = []
    for (channel, part, recipient), moments in found.items():
        parts = len({p for c, p, _ in found if c == channel}) > 1
        several = len({r for *_, r in found}) > 1
        words = [channel + (f" {part + 1}" if parts else ""), recipient if several else ""]
        for n, one in enumerate(moments):
            points = [Point.of(x, y) for x, y, *_ in ([*at, 0.0] for at in one.points)]
            by_label = grouped(zip(points, one.truth, strict=True), lambda pair: pair[1])
            series = [
                Series(
                    f"label {label}",
                    [point for point, _ in by_label[label]],
                    CLASSES[label % len(CLASSES)],
                    size=2.2,
                )
                for label in sorted(by_label)
            ]
            y = Axis("\n".join(filter(None, words)) if n == 0 else "", ticks=())
            panels.append(Panel(f"step {one.step}", blank, y, series, height=1.9, weight=weight))
        missing = columns - len(moments)
        panels += [Panel("", blank, blank, (), height=1.9, weight=weight)] * missing
    caption = "First two principal components of the messages to one server, for one seed."
    return Plot(title, panels, caption, columns=columns)
