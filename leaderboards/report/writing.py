"""Writes a report: one HTML file with its figures inside."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from leakboard.bench import __version__
from leakboard.bench.contracts import Goal, LeakboardError
from leakboard.bench.records import replacing
from leakboard.leaderboards.figures import tradeoff
from leakboard.leaderboards.report.asked import Asked
from leakboard.leaderboards.report.protection import Protection, protection
from leakboard.leaderboards.report.readings import SUBJECTS, Reading, of_transcript, unprotected
from leakboard.leaderboards.report.sureness import sureness
from leakboard.leaderboards.results import Attacked, Results
from leakboard.leaderboards.site import environment
from leakboard.leaderboards.tables import NOT_SHOWN, Comparison, counted, points

FIGURES = 2
"""Most of them: with more, a report would have more than four pages."""
TITLE = "What your provider can read"


@dataclass(frozen=True)
class Drawn:
    """A figure inside the page; `data` is a URI that holds all of it."""

    words: str
    data: str


def write(found: Results | Attacked, asked: Asked, to: Path, shipped: Results | None) -> Path:
    """Writes the report of some records, or of what attacks made of a transcript, and returns its file.

    Args:
        shipped: the published records, which say what protects where a transcript cannot; None for records,
            which say it themselves.

    Raises:
        LeakboardError: nothing is there to report, or the file cannot be written.
    """
    text = (
        _of_records(found, asked)
        if isinstance(found, Results)
        else _attacked(found, asked, shipped)
    )
    try:
        with replacing(to) as file:
            file.write_text(text, "utf-8")
    except OSError as error:
        raise LeakboardError(f"{to}: cannot be written ({error.strerror or error})") from error
    return to


def _of_records(found: Results, asked: Asked) -> str:
    compared = asked.among(found.compared)
    if not compared:
        raise LeakboardError(
            f"nothing to report of {found.name}: it takes a cell without protection, such as `none`, with which "
            "the others are compared"
        )
    readings = unprotected(compared)
    if not readings:
        raise LeakboardError(
            f"nothing to report of {found.name}: no attack that reads something ran where nothing is protected"
        )
    guards = protection(compared, asked, [one.goal for one in readings])
    records = [record for one in compared for record in one.records]
    rows = pd.concat([one.rows for one in compared])
    others = sorted({one.task for one in found.compared} - {compared[0].task})
    about = [
        ("Records", f"{counted(len(records), 'cell')} of {found.name}"),
        ("Task", compared[0].task),
        ("Models", ", ".join(dict.fromkeys(one.model for one in compared))),
        ("Compared", "; ".join(one.words for one in compared[:3])),
        ("Made", _made(record.provenance.created for record in records)),
    ]
    if found.version:
        about.append(("Published as", str(found.version)))
    if others:
        about.append(("Not in this report", f"{', '.join(others)}: choose one by --task"))
    return _page(
        readings=readings,
        protection=guards,
        figures=_figures(compared[0], readings),
        sure=sureness(readings, guards, rows),
        about=about,
        lead="Where nothing protects it, whoever computes the rest of the model reads:",
        cut_short="",
    )


def _attacked(found: Attacked, asked: Asked, shipped: Results | None) -> str:
    frame = found.frame()
    readings = of_transcript(frame)
    if not readings:
        raise LeakboardError(
            "nothing to report: no guess was scored. Give the truth (a table with the columns text, label), by which "
            "attacks are scored"
        )
    compared = asked.among(shipped.compared) if shipped else []
    guards = protection(compared, asked, [one.goal for one in readings]) if compared else None
    about = [
        ("Transcript", "recorded from your own system, and attacked here"),
        ("Attacks", f"{counted(frame['attack'].nunique(), 'attack')} tried"),
    ]
    if shipped and shipped.version:
        about.append(("What protects", f"from published records, {shipped.version}"))
    return _page(
        readings=readings,
        protection=guards,
        figures=_figures(compared[0], readings) if compared else [],
        sure=sureness(readings, guards, frame),
        about=about,
        lead="In what your system sent, whoever receives it reads:",
        cut_short=found.cut_short,
    )


def _figures(compared: Comparison, readings: Sequence[Reading]) -> list[Drawn]:
    """Utility against privacy for the goals that are read, where there are points to draw."""
    found: list[Drawn] = []
    for goal in dict.fromkeys(one.goal for one in readings if one.standing != NOT_SHOWN):
        if len(found) < FIGURES and goal in (Goal.INVERSION, Goal.LABEL, Goal.ATTRIBUTE):
            drawn = points(compared.rows, goal)
            both = drawn.dropna(subset=["utility", "ep"])
            if both["defense"].nunique() > 1:
                found.append(_drawn(compared, drawn, goal))
    return found


def _drawn(compared: Comparison, drawn: pd.DataFrame, goal: Goal) -> Drawn:
    words = f"{SUBJECTS[goal]}: utility that is left against privacy that is left"
    with tempfile.TemporaryDirectory() as folder:
        about = f"{compared.model}, {compared.words}"
        made = tradeoff(drawn, Path(folder) / "figure", words, about=about)
        (svg,) = (path.read_bytes() for path in made if path.suffix == ".svg")
    return Drawn(words, "data:image/svg+xml;base64," + base64.b64encode(svg).decode())


def _made(created: object) -> str:
    days = sorted({str(one)[:10] for one in created})  # type: ignore[attr-defined]
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _page(
    readings: Sequence[Reading],
    protection: Protection | None,
    figures: Sequence[Drawn],
    sure: Sequence[str],
    about: Sequence[tuple[str, str]],
    lead: str,
    cut_short: str,
) -> str:
    style = (files("leakboard.leaderboards.site") / "assets" / "style.css").read_text("utf-8")
    return (
        environment("leakboard.leaderboards.report")
        .get_template("report.html")
        .render(
            title=TITLE,
            style=style,
            lead=lead,
            cut_short=cut_short,
            readings=readings,
            protection=protection,
            figures=figures,
            sure=sure,
            about=[*about, ("Leakboard", __version__)],
        )
    )
