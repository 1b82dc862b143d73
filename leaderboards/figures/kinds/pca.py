"""Principal components of the messages to one server at moments of training, by label."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import LeakboardError, Projection, Record
from leakboard.leaderboards.figures.drawing import Request
from leakboard.leaderboards.rendering import CLASSES, Axis, Panel, Plot, Point, Series, exact
from leakboard.leaderboards.tables import RecordSet


def plots(found: RecordSet, request: Request) -> Iterator[tuple[str, Plot]]:
    """A figure for each setting, of its first seed.

    Raises:
        LeakboardError: no record holds projections.
    """
    some = False
    for group in found.table.groups:
        for setting in group.settings:
            if setting.first.projections:
                some = True
                words = setting.label.replace(",", "").replace(" = ", "=").split()
                words = [] if setting.label == setting.defense else words
                stem = "-".join(["pca", setting.task, setting.defense, *words])
                yield stem, _components(setting.first, f"{setting.task}: {setting.name}")
    if not some:
        raise LeakboardError(
            "nothing to plot: nothing was sent at moments of training, or the records are older "
            "than these pictures"
        )


def _components(record: Record, title: str) -> Plot:
    """A row of panels for each channel, part and recipient, with a panel for each moment."""
    found: dict[tuple[str, int, str], list[Projection]] = {}
    for one in record.projections:
        found.setdefault((one.channel.value, one.part, one.recipient), []).append(one)
    columns = max(map(len, found.values()))
    panels = []
    for (channel, part, recipient), moments in found.items():
        parts = len({p for c, p, _ in found if c == channel}) > 1
        several = len({r for *_, r in found}) > 1
        words = [channel + (f" {part + 1}" if parts else ""), recipient if several else ""]
        for n, one in enumerate(moments):
            points = [Point(exact(x), exact(y)) for x, y, *_ in ([*at, 0.0] for at in one.points)]
            series = [
                Series(
                    f"label {label}",
                    [p for p, truth in zip(points, one.truth, strict=True) if truth == label],
                    CLASSES[label % len(CLASSES)],
                    size=2.2,
                )
                for label in sorted(set(one.truth))
            ]
            axis = Axis(ticks=())
            y = Axis("\n".join(filter(None, words)) if n == 0 else "", ticks=())
            panels.append(
                Panel(f"step {one.step}", axis, y, series, height=1.9, weight=2.2 / columns)
            )
        panels += [
            Panel("", Axis(ticks=()), Axis(ticks=()), (), height=1.9, weight=2.2 / columns)
        ] * (columns - len(moments))
    caption = "First two principal components of the messages to one server, for one seed."
    return Plot(title, panels, caption, columns=columns)
