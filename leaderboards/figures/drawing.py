"""Figures of a collection of records, by kind."""

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
"""All kinds, from the names of their files; the default first."""
LEAST, MOST = 2.0, 40.0
"""Smallest and largest width of a figure in inches."""


@dataclass(frozen=True)
class Request:
    """Options of a figure; each kind uses some of them.

    Attributes:
        goal: a goal by any of its names; None for the first one with results.
        attack: strongest, paper, or the name of an attack.
        against: swept parameter, or cut.
        width: width in inches.
    """

    kind: str = FIRST
    goal: str | None = None
    attack: str = STRONGEST
    against: str | None = None
    width: float = 7.0


def plots(found: RecordSet, request: Request) -> dict[str, Plot]:
    """Figures of a kind by file name.

    Raises:
        LeakboardError: an unknown option, or nothing to draw.
    """
    if request.kind not in KINDS:
        raise LeakboardError(
            f"kind: unknown '{request.kind}'. {did_you_mean(str(request.kind), KINDS)}"
        )
    kind = import_module(f"leakboard.leaderboards.figures.kinds.{request.kind}")
    described: Iterable[tuple[str, Plot]] = kind.plots(found, request)
    return {f"{found.name}-{name}": plot for name, plot in described}


def draw(found: RecordSet, out: Path, request: Request) -> list[Path]:
    """Draws the figures of a kind into the folder `out` and returns the files.

    Raises:
        LeakboardError: an unknown option, nothing to draw, or an invalid width.
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
