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
    from leaderboards.site.content import Content
    from leaderboards.tables import Look

MOST = 4
"""Processes."""
Task = tuple[Callable[..., list[Path]], tuple[object, ...]]
"""What is to be called, and with what."""


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
        self._executor = start()
        self._running: list[Future[list[Path]]] = []

    def begin(self, content: Content, folder: Path) -> None:
        """Begins to draw all figures."""
        from leaderboards.tables import declared

        # All methods are loaded here: to load them in each process would take longer than to draw.
        looks = declared()
        with _told_when_ended():
            for draw, told in _tasks(content, folder):
                self._running.append(self._executor.submit(_draw, looks, draw, *told))

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


def _tasks(content: Content, folder: Path) -> Iterator[Task]:
    """Every figure: first those that are drawn while what the next ones show is still computed."""
    from leaderboards.site import pictures

    for picture in content.suite_pictures:
        yield picture.draw, (folder / picture.name,)
    for panel in content.panels:
        yield pictures.of_panel, (panel, folder / panel.name)
    for picture in content.matrix_pictures:
        yield picture.draw, (folder / picture.name,)


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


def _draw(looks: Mapping[str, Look], draw: Callable[..., list[Path]], *told: object) -> list[Path]:
    from leaderboards.tables import given

    with given(looks):
        return draw(*told)
