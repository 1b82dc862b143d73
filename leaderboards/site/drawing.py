"""Draws the figures of the site in processes of their own, beside the one that writes its pages."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from joblib import Parallel, cpu_count, delayed

from leaderboards.looks import Look, declared, given
from leaderboards.site import charts

if TYPE_CHECKING:
    from leaderboards.site.pages import Pages

MOST = 4
"""Processes."""


class Drawing:
    """The processes: they begin to load when this is made, and draw when they are told what.

    As a context it leaves none at work, so that nothing is written after a build that failed.
    """

    def __init__(self) -> None:
        self._processes = Parallel(
            min(cpu_count(), MOST), batch_size=1, return_as="generator_unordered"
        )
        self._running = self._processes(
            delayed(_load)(os.getpid()) for _ in range(self._processes.n_jobs)
        )

    def begin(self, pages: Pages, folder: Path) -> None:
        """Begins to draw all figures."""
        figures: list[tuple[Callable[..., list[Path]], tuple[object, ...]]] = [
            (charts.files, (one.rows, folder / one.name, f"{one.task}: {one.what}", one.about))
            for one in pages.panels
        ]
        figures += [(picture.draw, (folder / picture.name,)) for picture in pages.pictures]
        # All methods are loaded here: to load them in each process would take longer than to draw.
        looks = declared()
        self.finish()
        self._running = self._processes(delayed(_draw)(looks, *told) for told in figures)

    def finish(self) -> None:
        """Waits until all is drawn.

        Raises:
            Exception: what went wrong with a figure, such as a full disk.
        """
        list(self._running)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # the first error is the one to tell
            self.finish()


def _load(maker: int) -> None:
    """The first task of a process, for which it imports this module and all that it imports.

    Args:
        maker: the process that asks, which draws itself where there is one CPU, and stays as it is.
    """
    if os.getpid() != maker:
        gc.freeze()  # these stay; to look through them again and again takes seconds
        gc.set_threshold(100_000, 20, 20)


def _draw(
    looks: Mapping[str, Look], draw: Callable[..., list[Path]], told: tuple[object, ...]
) -> list[Path]:
    with given(looks):
        return draw(*told)
