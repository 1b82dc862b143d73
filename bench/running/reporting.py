"""Reporters of a run: silent, to another process, or progress bars in a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from multiprocessing.connection import Connection
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
)

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.running.plan import PlannedCell

PARTS = {"fine-tuning": (0.0, 0.6), "attacking": (0.75, 1.0)}
"""Share of a cell's time at which its long parts begin and end, estimated from the published records; the other
parts, such as measuring utility, report no steps."""
MESSAGE_SECONDS = 0.1
"""Shortest time between two messages about one progress bar."""


class Reporter:
    """Shows nothing. A front end overrides the events that it shows; `lane` counts the workers from 0."""

    def started(self, planned: PlannedCell, lane: int = 0) -> None:
        """Called when a worker begins a cell."""

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        """Called when a worker has done `done` of `total` steps of a part of its cell."""

    def finished(self, record: Record, reused: bool) -> None:
        """Called when a cell has its record; `reused` if it had one before."""

    def warned(self, message: str) -> None:
        """Called with a message for the user that does not stop the run."""

    def track(self, what: str, items: Iterable[Any], total: int, lane: int = 0) -> Iterator[Any]:
        """Yields the items and reports each as done when the next one is requested; attacks are named."""
        self.moved(what, 0, total, lane)
        for done, item in enumerate(items, start=1):
            if isinstance(item, Pairing):
                self.moved(f"{what}: {item.attack.name}", done - 1, total, lane)
            yield item
            self.moved(what, done, total, lane)


class PipeReporter(Reporter):
    """Sends each event to another process, which passes it on by `forward_event`.

    If that process is gone, the worker ends as by Ctrl-C; any other exception would become the record of its cell.
    """

    def __init__(self, events: Connection) -> None:
        self.events = events
        self.last, self.what = 0.0, ""

    def started(self, planned: PlannedCell, lane: int = 0) -> None:
        self._send("started", planned.cell.key)

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        now = time.monotonic()
        if done in (0, total) or what != self.what or now - self.last > MESSAGE_SECONDS:
            self.last, self.what = now, what
            self._send("moved", what, done, total)

    def finished(self, record: Record, reused: bool) -> None:
        self._send("finished", record.key, reused)

    def warned(self, message: str) -> None:
        self._send("warned", message)

    def _send(self, *event: Any) -> None:
        try:
            self.events.send(event)
        except OSError:
            raise KeyboardInterrupt from None


def forward_event(reporter: Reporter, event: str, *details: Any, lane: int = 0) -> None:
    """Passes progress or a warning of a `PipeReporter` on to the reporter of this process."""
    if event == "moved":
        what, done, total = details
        reporter.moved(what, done, total, lane)
    elif event == "warned":
        reporter.warned(*details)
    else:
        raise ValueError(f"unexpected event '{event}'")


class Live(Reporter):
    """Progress bars on a terminal, and a line for each finished cell on any console."""

    def __init__(self, console: Console, cells: int) -> None:
        self.console = console
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self.cells = self.bars.add_task("cells", total=cells, left="")
        self.began: float | None = None
        """Start of the first cell without a record."""
        self.run_cells, self.reused_cells = 0, 0
        self.parts: dict[int, float] = {}
        """Share of its cell that each worker has done, estimated."""
        self.cell_lanes: dict[str, int] = {}
        """Lane of the worker of each cell, by the cell's key."""
        self.lanes: dict[int, TaskID] = {}
        self.methods: dict[int, str] = {}
        """Defense that each worker is running, by lane."""
        self.names: dict[str, str] = {}
        """Names of cells by key."""

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def started(self, planned: PlannedCell, lane: int = 0) -> None:
        cell = planned.cell
        where = f"{cell.task}, cut {cell.cut}," if cell.cut else cell.task
        self.names[cell.key] = f"{where} seed {cell.seed} {planned.named}"
        self.methods[lane] = str(planned.defense)
        self.parts[lane], self.cell_lanes[cell.key] = 0.0, lane
        self.began = self.began or time.monotonic()

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        if lane not in self.lanes:
            self.lanes[lane] = self.bars.add_task("", total=None, left="")
        bar, method = self.lanes[lane], self.methods.get(lane, "")
        part, _, running = what.partition(": ")
        if done == 0 and not running:
            self.bars.reset(bar)
        if part in PARTS:
            first, last = PARTS[part]
            self.parts[lane] = first + (last - first) * done / max(1, total)
            self.bars.update(self.cells, left=self.left())
        self.bars.update(
            bar,
            description=escape(f"  {method}: {what}"),
            completed=done,
            total=total,
            visible=done < total,
        )

    def left(self) -> str:
        """Estimate of the remaining time, from the speed since the first cell began."""
        done = self.run_cells + sum(self.parts.values())
        total = self.bars.tasks[self.cells].total
        if self.began is None or not done or total is None:
            return ""
        seconds = (time.monotonic() - self.began) * (total - self.reused_cells - done) / done
        return f"left {timedelta(seconds=round(max(0.0, seconds)))}"

    def finished(self, record: Record, reused: bool) -> None:
        self.run_cells, self.reused_cells = (
            self.run_cells + (not reused),
            self.reused_cells + reused,
        )
        self.parts.pop(self.cell_lanes.pop(record.key, -1), None)
        name = self.names.get(record.key, record.key)
        self.bars.update(self.cells, advance=1, left=self.left())
        self.console.print(_line(escape(name), record, reused), highlight=False, markup=True)

    def warned(self, message: str) -> None:
        self.console.print(message, style="yellow", markup=False)


def progress_console(progress: bool | Console) -> Console | None:
    """The console that shows progress, or None; `True` shows it only on a terminal or in a notebook.

    Raises:
        LeakboardError: `progress` is neither a truth value nor a console.
    """
    if not isinstance(progress, bool | Console):
        raise LeakboardError(
            "progress: expected true, false or a rich console, got "
            f"{type(progress).__name__} {progress!r:.60}"
        )
    if not isinstance(progress, bool):
        return progress
    console = Console()
    return console if progress and (console.is_terminal or console.is_jupyter) else None


def reporter_on(console: Console | None, cells: int) -> AbstractContextManager[Reporter]:
    """A reporter of so many cells on a console, or a silent one."""
    return Live(console, cells) if console else nullcontext(Reporter())


def _line(name: str, record: Record, reused: bool) -> str:
    if record.status != "ok" or record.utility is None:
        return f"[yellow]{record.status}[/] {name}: {escape(record.reason)}"
    ep = [leak.ep for leak in record.leaks if leak.goal == "inversion" and leak.channel]
    worst = min((e.value for e in ep if e), default=None)
    text = f"{record.utility_metric} {record.utility.value:.3f}"
    if worst is not None:
        text += f", inversion EP {worst:.3f}"
    if record.cost and not reused:
        text += f", {record.cost.total_seconds:.0f} s, {record.cost.peak_megabytes / 1000:.1f} GB"
    return f"[dim]{'already done' if reused else 'done'}[/] {name}: {text}"
