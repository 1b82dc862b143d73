"""Figures of a collection of records, by their kind."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.tables import STRONGEST, RecordSet

KINDS = Path(__file__).with_name("kinds")
FIRST = "tradeoff"
PLOTS = sorted(
    (path.stem for path in KINDS.glob("[a-z]*.py")), key=lambda kind: (kind != FIRST, kind)
)
"""All kinds, by the files that draw them; the default first."""


@dataclass(frozen=True)
class Asked:
    """What a figure is to show, for those that can show several things.

    Attributes:
        goal: of the attacker.
        attack: the one that decides: strongest, paper, or a name.
        against: a parameter that was swept, or cut.
    """

    goal: str = "inversion"
    attack: str = STRONGEST
    against: str | None = None


def draw(found: RecordSet, out: Path, kind: str, asked: Asked) -> list[Path]:
    """Draws one kind of figure into the folder `out` and returns its files.

    Raises:
        LeakboardError: an unknown word, or nothing to draw.
    """
    if kind not in PLOTS:
        raise LeakboardError(f"kind: unknown '{kind}'. {did_you_mean(str(kind), PLOTS)}")
    files: list[Path] = import_module(f"leakboard.leaderboards.figures.kinds.{kind}").plot(
        found, out, asked
    )
    return files
