"""Progress in the terminal: one bar for the cells, one for what the current cell does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench.contracts import Record
from bench.running.plan import Planned


class Live:
    """Bars on a terminal, and a line per finished cell everywhere."""

    def __init__(self, console: Console, cells: int) -> None:
        self.console = console
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            # Cells differ in length, so the estimate looks back over a long stretch.
            TimeRemainingColumn(),
            console=console,
            transient=True,
            speed_estimate_period=3600,
        )
        self.cells = self.bars.add_task("cells", total=cells)
        self.inner = self.bars.add_task("", total=None, visible=False)
        self.name = ""

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def started(self, planned: Planned) -> None:
        cell = planned.cell
        shadow = "" if cell.shadow is None else f", shadow model {cell.shadow + 1}"
        self.name = escape(f"{cell.task} seed {cell.seed} {planned.defense}{shadow}")
        self.bars.update(self.cells, description=escape(str(planned.defense)))

    def track(self, what: str, items: Iterable[Any], total: int) -> Iterator[Any]:
        self.bars.reset(self.inner, description=f"  {what}", total=total, visible=True)
        for item in items:
            yield item
            self.bars.advance(self.inner)
        self.bars.update(self.inner, visible=False)

    def finished(self, record: Record, reused: bool) -> None:
        self.bars.advance(self.cells)
        self.console.print(_line(self.name, record, reused), highlight=False)

    def warned(self, message: str) -> None:
        self.console.print(f"[yellow]{escape(message)}[/]")


def _line(name: str, record: Record, reused: bool) -> str:
    if record.status != "ok" or record.utility is None:
        return f"[yellow]{record.status}[/] {name}: {escape(record.reason)}"
    ep = [leak.ep for leak in record.leaks if leak.goal == "inversion" and leak.channel]
    worst = min((e.value for e in ep if e), default=None)
    told = f"{record.utility_metric} {record.utility.value:.3f}"
    if worst is not None:
        told += f", inversion EP {worst:.3f}"
    if record.cost and not reused:
        told += f", {record.cost.total_seconds:.0f} s"
    return f"[dim]{'kept' if reused else 'done'}[/] {name}: {told}"


class Reporter(Protocol):
    """What a front end shows while a plan runs."""

    def started(self, planned: Planned) -> None: ...
    def track(self, what: str, items: Iterable[Any], total: int) -> Iterable[Any]: ...
    def finished(self, record: Record, reused: bool) -> None: ...
    def warned(self, message: str) -> None: ...


class Silent:
    """Shows nothing."""

    def started(self, planned: Planned) -> None: ...
    def track(self, what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
        return items

    def finished(self, record: Record, reused: bool) -> None: ...
    def warned(self, message: str) -> None: ...
