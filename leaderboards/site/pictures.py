"""Figures for papers: utility against privacy, matrices, leak over training, what a model remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

from leakboard.bench.contracts import Leak, Record
from leakboard.leaderboards.figures import ATTACKS, CHANNEL
from leakboard.leaderboards.site.links import slug
from leakboard.leaderboards.site.panels import Panel
from leakboard.leaderboards.tables import Matrix, mirrored, paper_of

CROWDED = 6
"""Settings beyond which the lines of a figure over training cannot be followed."""
MANY = 6
"""Defenses from which on a matrix is drawn, where it shows anything."""


@dataclass(frozen=True)
class Picture:
    """A figure; `draw` writes it as PNG, SVG and PDF beside the path that it is given.

    Attributes:
        words: what stands in it besides the title and what `records` say.
    """

    name: str
    question: str
    title: str
    words: str
    records: Sequence[Record]
    draw: Callable[[Path], list[Path]]


@dataclass(frozen=True)
class Drawn:
    """One of `leakboard.leaderboards.figures`, by its name, loaded where it draws: the process that writes the pages
    never does."""

    name: str

    def __call__(self, *drawn: Any, **told: Any) -> list[Path]:
        from leakboard.leaderboards.figures import goals, memory, tradeoff, training

        every: dict[str, Callable[..., list[Path]]] = {
            "goals": goals,
            "memory": memory,
            "tradeoff": tradeoff,
            "training": training,
        }
        return every[self.name](*drawn, **told)


tradeoff, goals, memory, training = map(Drawn, ("tradeoff", "goals", "memory", "training"))


def of_panel(panel: Panel, out: Path) -> list[Path]:
    """Draws utility against privacy; texts that would push it off the page are cut."""
    names = ["task", "attribute", "metric", "utility_metric"]
    cut = {name: panel.rows[name].map(lambda text: _short(text, 40)) for name in names}
    title, about = _short(f"{panel.task}: {panel.what}", 60), _short(panel.about, 200)
    return tradeoff(panel.rows.assign(**cut), out, title, about=about)


def of_matrices(matrices: Sequence[Matrix]) -> list[Picture]:
    """The figures of the large ones; `matrices` are in the order of their tables, and so are their names."""
    found = []
    for n, matrix in enumerate(matrices):
        shown = any(s.kept is not None for line in matrix.lines for s in line.shields.values())
        if shown and len(matrix.lines) >= MANY:
            one = matrix.comparison
            about = f"{one.task}, {one.model}"
            draw = partial(goals, [matrix], title="What each defense protects, and what it costs")
            question = "What does each defense protect, and what does that cost?"
            found.append(
                Picture(f"matrix-{n}.goals", question, about, one.words, one.records, draw)
            )
    return found


def of_suites(by_folder: Mapping[str, Sequence[Record]]) -> list[Picture]:
    """The figures of single folders."""
    found = []
    for name, own in by_folder.items():
        if any(leak.metric == "exposure" and leak.success for r in own for leak in r.leaks):
            paper = paper_of(name)
            printed = mirrored(paper) if paper else None
            draw = partial(memory, own, title=f"{name}: what the model remembers", printed=printed)
            question = "What does a released model remember, and what does a formal ε buy?"
            found.append(Picture(f"{slug(name)}.memory", question, name, "", own, draw))
        curves = [record for record in own if any(map(_over_training, record.leaks))]
        if 1 < _settings(curves) <= CROWDED:
            draw = partial(training, curves, title=f"{name}: label leak over training")
            question = "How does the leak of labels move while the model trains?"
            found.append(Picture(f"{slug(name)}.training", question, name, "", curves, draw))
    return found


def _over_training(leak: Leak) -> bool:
    return leak.attack.name in ATTACKS and leak.channel == CHANNEL and len(leak.curve) > 1


def _settings(records: Sequence[Record]) -> int:
    return len({(r.cell.task, r.cell.cut, r.cell.defense.model_dump_json()) for r in records})


def _short(text: str, most: int) -> str:
    return shorten(text, most, placeholder=" …")
