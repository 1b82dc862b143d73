"""Draws the figures of the site in processes of their own, beside the one that writes its pages."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from multiprocessing import forkserver, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Self

import cloudpickle
from loky import cpu_count

from leakboard.bench.contracts import LeakboardError

MOST = 4
"""Processes."""
DRAW = [
    "leakboard.leaderboards.site.pictures",
    *(
        f"leakboard.leaderboards.figures.kinds.{kind}"
        for kind in ("goals", "memory", "tradeoff", "training")
    ),
]
"""What they load."""


def start() -> None:
    """Has a process load what those that draw need; they are copies of it, which take no time to begin."""
    get_context("forkserver").set_forkserver_preload(DRAW)
    forkserver.ensure_running()


@cache
def _processes() -> ProcessPoolExecutor:
    """Those that draw, also for later sites."""
    start()
    return ProcessPoolExecutor(min(cpu_count(), MOST), get_context("forkserver"), _load)


class Drawing:
    """Figures that are being drawn.

    As a context it leaves no process at work, so that nothing is written after a build that failed.
    """

    def __init__(self) -> None:
        from leakboard.leaderboards.tables import declared

        # All methods are loaded here: to load them in each process would take longer than to draw.
        self._looks = declared()
        self._running: list[Future[list[Path]]] = []

    def begin(self, draw: Callable[[Path], list[Path]], out: Path) -> None:
        """Begins to draw a figure, to which `draw` gives the files beside a path."""
        with _told_when_ended():
            # The process may have begun while another folder was the current one.
            packed = cloudpickle.dumps((self._looks, draw, out.absolute()))
            self._running.append(_processes().submit(_draw, packed))

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
        _processes.cache_clear()
        raise LeakboardError(
            "a process that drew figures was ended from outside, perhaps since memory ran out. Nothing was "
            "replaced; publish again, where memory is short with LOKY_MAX_CPU_COUNT=1"
        ) from error


def _load() -> None:
    """Gets a process ready; it ends with its maker, who may be killed and cannot say so then."""
    Thread(target=_end_with_maker, daemon=True).start()
    for name in DRAW:  # in vain, where the first one was another kind of process
        import_module(name)
    gc.freeze()  # these stay; to look through them again and again takes seconds
    gc.set_threshold(100_000, 20, 20)


def _end_with_maker() -> None:
    maker = parent_process()
    assert maker is not None
    maker.join()
    os._exit(1)


def _draw(packed: bytes) -> list[Path]:
    from leakboard.leaderboards.tables import given

    looks, draw, out = cloudpickle.loads(packed)
    with given(looks):
        drawn: list[Path] = draw(out)
        return drawn
