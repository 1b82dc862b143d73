"""What a run shows: nothing, or bars in a terminal, one for all cells and one for each worker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
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
from leakboard.bench.running.plan import Planned

PARTS = {"fine-tuning": (0.0, 0.6), "attacking": (0.75, 1.0)}
"""Where in a cell its long parts begin and end, about, as in the published records; what is before and
between them, such as measuring utility, is not told step by step."""


class Reporter:
    """Shows nothing. A front end overrides the events that it shows; `lane` counts the workers from 0."""

    def started(self, planned: Planned, lane: int = 0) -> None:
        """A worker has begun with a cell."""

    def moved(self, what: str, done: int, total: int, lane: int = 0) -> None:
        """A worker has done so much of one part of its cell."""

    def finished(self, record: Record, reused: bool) -> None:
        """A cell has its record; `reused` where it had it before."""

    def warned(self, message: str) -> None:
        """Something that the user should know, and that does not end the run."""

    def track(self, what: str, items: Iterable[Any], total: int, lane: int = 0) -> Iterator[Any]:
        """The items, each told as done when the next one is asked for; attacks by name while they run."""
        self.moved(what, 0, total, lane)
        for done, item in enumerate(items, start=1):
            if isinstance(item, Pairing):
                self.moved(f"{what}: {item.attack.name}", done - 1, total, lane)
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
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self.cells = self.bars.add_task("cells", total=cells, left="")
        self.began: float | None = None
        """When the first cell was begun that had no record."""
        self.worked, self.kept = 0, 0
        """Cells that were run here, and those whose record was there."""
        self.parts: dict[int, float] = {}
        """How much of its cell each worker has done, about."""
        self.at: dict[str, int] = {}
        """Of cells, by their keys, the worker."""
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
        where = f"{cell.task}, cut {cell.cut}," if cell.cut else cell.task
        self.names[cell.key] = f"{where} seed {cell.seed} {planned.named}"
        self.methods[lane] = str(planned.defense)
        self.parts[lane], self.at[cell.key] = 0.0, lane
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
        """How long the rest takes if it goes on as before, from the first parts of the first cell on."""
        done = self.worked + sum(self.parts.values())
        total = self.bars.tasks[self.cells].total
        if self.began is None or not done or total is None:
            return ""
        seconds = (time.monotonic() - self.began) * (total - self.kept - done) / done
        return f"left {timedelta(seconds=round(max(0.0, seconds)))}"

    def finished(self, record: Record, reused: bool) -> None:
        self.worked, self.kept = self.worked + (not reused), self.kept + reused
        self.parts.pop(self.at.pop(record.key, -1), None)
        name = self.names.get(record.key, record.key)
        self.bars.update(self.cells, advance=1, left=self.left())
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
        told += f", {record.cost.total_seconds:.0f} s, {record.cost.peak_megabytes / 1000:.1f} GB"
    return f"[dim]{'kept' if reused else 'done'}[/] {name}: {told}"
