"""What a run shows: nothing, or bars in a terminal, one for all cells and one for each worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench.contracts import LeakboardError, Record
from bench.running.plan import Planned


class Reporter:
    """Shows nothing. A front end overrides what it wants to hear of; lanes count the workers from 0,
    or the cells of a stack."""

    def started(self, planned: Planned, lane: int = 0) -> None:
        """A worker has begun with a cell."""

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        """A worker has done so much of one part of its cell."""

    def finished(self, record: Record, reused: bool) -> None:
        """A cell has its record; `reused` where it had it before."""

    def warned(self, message: str) -> None:
        """Something that the user should know, and that does not end the run."""

    def track(self, what: str, items: Iterable[Any], total: int, lane: int = 0) -> Iterator[Any]:
        """The items, each told as done when the next one is asked for."""
        self.moved(what, 0, total, lane)
        for done, item in enumerate(items, start=1):
            yield item
            self.moved(what, done, total, lane)


class Live(Reporter):
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
        self.lanes: dict[int, TaskID] = {}
        self.methods: dict[int, str] = {}
        """What each worker is at."""
        self.names: dict[str, str] = {}
        """Of cells, by their keys."""

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def started(self, planned: Planned, lane: int = 0) -> None:
        cell = planned.cell
        self.names[cell.key] = f"{cell.task} seed {cell.seed} {planned.named}"
        self.methods[lane] = str(planned.defense)

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        if lane not in self.lanes:
            self.lanes[lane] = self.bars.add_task("", total=None)
        bar, method = self.lanes[lane], self.methods.get(lane, "")
        if done == 0:
            self.bars.reset(bar)
        self.bars.update(
            bar,
            description=escape(f"  {method}: {what}"),
            completed=done,
            total=total,
            visible=done < total,
        )

    def finished(self, record: Record, reused: bool) -> None:
        self.bars.advance(self.cells)
        name = self.names.get(record.key, record.key)
        self.console.print(_line(escape(name), record, reused), highlight=False, markup=True)

    def warned(self, message: str) -> None:
        self.console.print(message, style="yellow", markup=False)


def console_of(progress: bool | Console) -> Console | None:
    """Where progress is shown, if anywhere: on a terminal where it is wanted, on a given console anyway.

    Raises:
        LeakboardError: neither a truth value nor a console.
    """
    if not isinstance(progress, bool | Console):
        raise LeakboardError(
            "progress: expected true, false or a console of rich, got "
            f"{type(progress).__name__} {progress!r:.60}"
        )
    if not isinstance(progress, bool):
        return progress
    console = Console()
    return console if progress and (console.is_terminal or console.is_jupyter) else None


def shown_on(console: Console | None, cells: int) -> AbstractContextManager[Reporter]:
    """A reporter of so many cells on a console, or one that shows nothing."""
    return Live(console, cells) if console else nullcontext(Reporter())


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
