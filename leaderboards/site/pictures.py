"""Figures for papers beside the tables: matrices, leak over training, and what a model remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.contracts import Leak, Record
from bench.suites import load_suite, suite_names
from leaderboards.figures import ATTACKS, CHANNEL, goals, memory, training
from leaderboards.site.reading import Collection
from leaderboards.tables import Matrix, exposures

CROWDED = 6
"""Settings beyond which the lines of a figure over training cannot be followed."""
MANY = 6
"""Defenses from which on a matrix is drawn."""


@dataclass(frozen=True)
class Picture:
    """A figure; `draw` writes it as PNG, SVG and PDF beside the path that it is given."""

    name: str
    question: str
    title: str
    draw: Callable[[Path], list[Path]]


def of_matrices(matrices: Sequence[Matrix]) -> list[Picture]:
    """The figures of the large ones; `matrices` are in the order of their tables, and so are their names."""
    found = []
    for n, matrix in enumerate(matrices):
        if len(matrix.lines) >= MANY:
            about = f"{matrix.comparison.task}, {matrix.comparison.model}"
            draw = partial(
                goals, [matrix], title=f"{about}: what each defense protects, and what it costs"
            )
            question = "What does each defense protect, and what does that cost?"
            found.append(Picture(f"matrix-{n}.goals", question, about, draw))
    return found


def of_suites(collection: Collection, slug: Callable[[str], str]) -> list[Picture]:
    """The figures of single folders; `slug` makes of any text a name that is fit for a file."""
    found = []
    for name, own in collection.by_folder.items():
        if any(leak.metric == "exposure" and leak.success for r in own for leak in r.leaks):
            suite = load_suite(name) if name in suite_names() else None
            paper = suite.paper if suite else None
            printed = exposures(paper.paper, paper.artefact, paper.model) if paper else None
            draw = partial(memory, own, title=f"{name}: what the model remembers", printed=printed)
            question = "What does a released model remember, and what does a formal ε buy?"
            found.append(Picture(f"{slug(name)}.memory", question, name, draw))
        curves = [record for record in own if any(map(_over_training, record.leaks))]
        if 1 < _settings(curves) <= CROWDED:
            draw = partial(training, curves, title=f"{name}: label leak over training")
            question = "How does the leak of labels move while the model trains?"
            found.append(Picture(f"{slug(name)}.training", question, name, draw))
    return found


def _over_training(leak: Leak) -> bool:
    return leak.attack.name in ATTACKS and leak.channel == CHANNEL and len(leak.curve) > 1


def _settings(records: Sequence[Record]) -> int:
    return len({(r.cell.task, r.cell.cut, r.cell.defense.model_dump_json()) for r in records})
