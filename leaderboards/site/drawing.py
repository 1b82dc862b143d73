"""Draws the figures of the site in processes of their own, beside the one that writes its pages."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Self

from loky import cpu_count, get_reusable_executor

from bench.contracts import LeakboardError

if TYPE_CHECKING:
    from leaderboards.tables import Look

MOST = 4
"""Processes."""


def start() -> Executor:
    """The processes, which from now on load what they need; later calls return the same ones."""
    processes = min(cpu_count(), MOST)
    executor: Executor = get_reusable_executor(
        processes, initializer=_load, initargs=(os.getpid(),)
    )
    executor.submit(os.getpid)  # with the first task they come to life
    return executor


class Drawing:
    """Figures that are being drawn.

    As a context it leaves no process at work, so that nothing is written after a build that failed.
    """

    def __init__(self) -> None:
        from leaderboards.tables import declared

        self._executor = start()
        # All methods are loaded here: to load them in each process would take longer than to draw.
        self._looks = declared()
        self._running: list[Future[list[Path]]] = []

    def begin(self, draw: Callable[[Path], list[Path]], out: Path) -> None:
        """Begins to draw a figure, to which `draw` gives the files beside a path."""
        with _told_when_ended():
            self._running.append(self._executor.submit(_draw, self._looks, draw, out))

    def finish(self) -> None:
        """Waits until all is drawn.

        Raises:
            LeakboardError: a process was ended from outside.
            Exception: what went wrong with a figure, such as a full disk.
        """
        with _told_when_ended():
            for one in self._running:
                one.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._running:
            one.cancel()
        wait(self._running)


@contextmanager
def _told_when_ended() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise LeakboardError(
            "a process that drew figures was ended from outside, perhaps since memory ran out. Nothing was "
            "replaced; publish again, where memory is short with LOKY_MAX_CPU_COUNT=1"
        ) from error


def _load(maker: int) -> None:
    """Gets a process ready; it ends with its maker, who may be killed and cannot say so then."""
    Thread(target=_end_with, args=(maker,), daemon=True).start()
    import_module("leaderboards.site.pictures")
    gc.freeze()  # these stay; to look through them again and again takes seconds
    gc.set_threshold(100_000, 20, 20)


def _end_with(maker: int) -> None:
    while os.getppid() == maker:
        sleep(1)
    os._exit(1)


def _draw(looks: Mapping[str, Look], draw: Callable[[Path], list[Path]], out: Path) -> list[Path]:
    from leaderboards.tables import given

    with given(looks):
        return draw(out)
