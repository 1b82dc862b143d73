"""Tables of papers beside ours, as Markdown for a document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pandas as pd

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.tables import (
    Laid,
    RecordSet,
    artefacts,
    beside,
    by_depth,
    by_privacy,
    outcome,
    ranged,
    shapes,
    worded,
)

VERDICTS = "verdicts"
"""Asks for what all tables say, a line for each measure."""
WAYS = {"by-privacy": (by_privacy, "EP", "points lost"), "by-depth": (by_depth, "depth", "EP")}
"""What else may be asked of a table: how ours are laid beside it, by what, and what of them."""


def papers(words: str, found: RecordSet) -> str:
    """What a block asks for: `SAP "Table 3"`, `SAP "Table 3" by-privacy`, `SAP "Table 4" by-depth` or `verdicts`.

    Raises:
        LeakboardError: a paper, table or way that is not known.
    """
    asked = shlex.split(words)
    if asked == [VERDICTS]:
        return _verdicts(found)
    known = artefacts()
    if tuple(asked[:2]) not in known:
        names = [VERDICTS, *(f'{paper} "{artefact}"' for paper, artefact in known)]
        raise LeakboardError(f"papers: unknown '{words}'. {did_you_mean(words, names)}")
    way = " ".join(asked[2:])
    if way and way not in WAYS:
        raise LeakboardError(f"papers: unknown '{way}'. {did_you_mean(way, WAYS)}")
    tables = _laid(found, asked[0], asked[1])
    return "\n".join(_between(one, way) if way else _table(one) for one in tables)


def _laid(found: RecordSet, paper: str, artefact: str) -> list[Laid]:
    return beside(paper, artefact, found.frame(), found.records, found.by_folder)


def _table(laid: Laid) -> str:
    """Every printed setting, then a sentence for each task and measure."""
    notes = [*map(str, shapes(laid)), *laid.notes]
    return f"**{laid.title}**\n\n{_rows(worded(laid))}\n\n" + "".join(f"- {n}\n" for n in notes)


def _between(laid: Laid, way: str) -> str:
    """Printed settings beside what lies between two of ours, and a sentence for each task."""
    how, by, what = WAYS[way]
    parts = []
    for task, own in how(laid).groupby("task", sort=False):
        ends = zip(own["here"], own["here_low"], own["here_high"], strict=True)
        told = pd.DataFrame(
            {
                "setting": own["setting"],
                f"{by} printed" if by == "EP" else by: own["x"].map("{:.3f}".format),
                f"{what} printed": own["printed"].map("{:.3f}".format),
                f"{what} here": [ranged(*three) for three in ends],
                "between ours at": own["between"].replace("", "no two settings"),
            }
        )
        parts += [f"**{laid.title}, {task}**\n\n{_rows(told)}\n\n- {what}: {outcome(own)}.\n"]
    return "\n".join(parts)


def _verdicts(found: RecordSet) -> str:
    """What every table says, a line for each task and measure."""
    rows = [
        {
            "table": f"{one.paper}, {one.artefact}",
            "model": one.model,
            "task": shape.task,
            "measure": shape.measure,
            "settings": f"{shape.settings}",
            "verdict": shape.verdict,
        }
        for paper, artefact in artefacts()
        for one in _laid(found, paper, artefact)
        for shape in shapes(one)
    ]
    return _rows(pd.DataFrame(rows)) + "\n"


def _rows(table: pd.DataFrame) -> str:
    """A table in Markdown."""
    lines: list[Sequence[str]] = [list(map(str, table)), ["---"] * len(table.columns)]
    lines += [list(map(str, row)) for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
