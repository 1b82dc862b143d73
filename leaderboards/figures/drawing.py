"""Figures of a collection of records, by their kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.rendering import Plot, save
from leakboard.leaderboards.tables import STRONGEST, RecordSet

FOLDER = Path(__file__).with_name("kinds")
FIRST = "tradeoff"
KINDS = sorted(
    (path.stem for path in FOLDER.glob("[a-z]*.py")), key=lambda kind: (kind != FIRST, kind)
)
"""All kinds, by the files that describe them; the default first."""
LEAST, MOST = 2.0, 40.0
"""Inches of a figure."""


@dataclass(frozen=True)
class Request:
    """What a figure is to show; a kind takes what it knows.

    Attributes:
        goal: a goal by any of its names; None for the first that has something to show.
        attack: the one that decides: strongest, paper, or a name.
        against: a parameter that was swept, or cut.
        width: inches.
    """

    kind: str = FIRST
    goal: str | None = None
    attack: str = STRONGEST
    against: str | None = None
    width: float = 7.0


def plots(found: RecordSet, request: Request) -> dict[str, Plot]:
    """The figures of a kind by the names of their files.

    Raises:
        LeakboardError: an unknown word, or nothing to draw.
    """
    if request.kind not in KINDS:
        raise LeakboardError(
            f"kind: unknown '{request.kind}'. {did_you_mean(str(request.kind), KINDS)}"
        )
    kind = import_module(f"leakboard.leaderboards.figures.kinds.{request.kind}")
    described: Iterable[tuple[str, Plot]] = kind.plots(found, request)
    return {f"{found.name}-{name}": plot for name, plot in described}


def draw(found: RecordSet, out: Path, request: Request) -> list[Path]:
    """Draws the figures of a kind into the folder `out` and returns its files.

    Raises:
        LeakboardError: an unknown word, nothing to draw, or a width that no figure has.
    """
    if not LEAST <= request.width <= MOST:
        raise LeakboardError(
            f"width: expected inches from {LEAST:g} to {MOST:g}, got {request.width:g}"
        )
    return [
        file
        for name, plot in plots(found, request).items()
        for file in save(plot, out / name, request.width)
    ]
