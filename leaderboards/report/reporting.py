"""Report for decision makers, from records or from attacks on a transcript or a model."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from leakboard.bench.contracts import (
    Channel,
    LeakboardError,
    did_you_mean,
    grouped,
    path_of,
    teaches,
)
from leakboard.bench.exchange import MANIFEST
from leakboard.bench.external import CHANNELS, MOSTLY
from leakboard.bench.records import replacing
from leakboard.leaderboards.rendering import html_table
from leakboard.leaderboards.report.advice import advice_on, table_of
from leakboard.leaderboards.report.exposures import (
    Exposure,
    exposures_of_leaks,
    exposures_of_results,
)
from leakboard.leaderboards.results import Attacked, Results, attack, load, published
from leakboard.leaderboards.site import environment
from leakboard.leaderboards.tables import (
    BUDGET,
    GOAL_WORDS,
    LEAKAGE_WORDS,
    ResultsTable,
    check_budget,
)

FIRST = "sst2"
"""The task of most published records."""


@teaches(out="to", budget="max_cost")
def report(
    source: Results | Attacked | str | Path,
    to: str | Path = "report.html",
    *,
    task: str | None = None,
    max_cost: float = BUDGET,
    **attacked: object,
) -> Path:
    """Writes a report of two pages: what the provider can read, which defenses help, and next steps.

    For a transcript or an audited model, leakage is that of your own system, and defenses come from the published
    records.

    Args:
        source: records, or a source for `load`; a transcript folder, which is attacked first; or a result of `attack`
            or `audit`, or its .json file.
        to: path of the self-contained .html file.
        task: task whose settings are compared; by default sst2, else the task with most defenses.
        max_cost: largest cost of protection in points of utility.
        attacked: for a transcript folder, `model`, `truth` and further arguments of `attack`.

    Raises:
        LeakboardError: an invalid argument, or nothing to report.

    Examples:
        >>> import leakboard as lb
        >>> file = lb.report("runs/mine", "report.html", max_cost=3)
        >>> file.name
        'report.html'
    """
    place = path_of("to", to)
    assert place is not None
    _check(place, max_cost)
    folder = None if isinstance(source, Results | Attacked) else path_of("source", source)
    if folder is not None and (folder / MANIFEST).is_file():
        if "model" not in attacked or attacked.get("truth") is None:
            raise LeakboardError(
                f"{folder} is a transcript: give its public model (model) and the true texts and labels (truth), against which guesses are scored"
            )
        given: dict[str, Any] = attacked
        found: Results | Attacked = attack(folder, **given)
    elif attacked:
        raise LeakboardError(
            f"{next(iter(attacked))}: is only allowed for a transcript folder, which {source!r:.60} is not"
        )
    elif isinstance(source, Results | Attacked):
        found = source
    else:
        file = Path(source)
        found = Attacked.read(file) if file.suffix == ".json" else load(source)
    if isinstance(found, Attacked):
        text = _of_transcript(found, published(), task, max_cost)
    else:
        text = _of_records(found, task, max_cost)
    try:
        with replacing(place) as written:
            written.write_text(text, "utf-8")
    except OSError as error:
        raise LeakboardError(f"{place}: cannot be written ({error.strerror or error})") from error
    return place


def _check(to: Path, max_cost: float) -> None:
    """Checks arguments before the source is read or attacked."""
    if to.suffix != ".html":
        raise LeakboardError(
            f"to: a report is one .html file, which a browser prints as PDF; got '{to}'"
        )
    if to.is_dir():
        raise LeakboardError(f"to: {to} is a folder")
    if not to.parent.is_dir():
        raise LeakboardError(f"to: there is no folder {to.parent}")
    check_budget(max_cost)


def _rows_of_task(table: ResultsTable, task: str | None) -> ResultsTable:
    """The results of one task: the given one, sst2, or that of most defenses."""
    tasks = grouped(table, lambda one: one.setting.task)
    if task is not None and task not in tasks:
        raise LeakboardError(f"task: no results of '{task}'. {did_you_mean(task, tasks)}")
    most = max(tasks, key=lambda name: len({one.defense for one in tasks[name]}), default="")
    return table.select(task=task or (FIRST if FIRST in tasks else most))


def _of_records(found: Results, task: str | None, budget: float) -> str:
    rows = _rows_of_task(found.table, task)
    exposures = exposures_of_results(rows)
    if not exposures:
        raise LeakboardError(
            f"nothing to report about {found.name}: a report needs a cell without protection, such as `none`, and an attack "
            "on it that reads something"
        )
    others = sorted({one.setting.task for one in found.table} - {rows[0].setting.task})
    words = {"kind": "records", "found": found, "others": others, "measured": _days(rows)}
    return _page(exposures, rows, budget, **words)


def _days(rows: ResultsTable) -> str:
    """'from 2026-11-20 to 2026-11-22 with Leakboard 0.1.0': days and versions of the records."""
    made = [record.provenance for row in rows for record in row.setting.records.values()]
    days = sorted({one.created[:10] for one in made})
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    return f"{when} with Leakboard {', '.join(sorted({one.leakboard for one in made}))}"


def _of_transcript(found: Attacked, shipped: Results, task: str | None, budget: float) -> str:
    exposures = exposures_of_leaks(found.leaks)
    rows = _rows_of_task(shipped.table, task)
    if not exposures:
        raise LeakboardError(
            "nothing to report: no guess was scored. Give the truth, a table with the columns "
            "text and label"
        )
    is_model = all(one.channel in (Channel.MODEL, None) for one in found.leaks)
    kind = "model" if is_model else "transcript"
    return _page(exposures, rows, budget, kind=kind, found=found, shipped=shipped.version)


def _page(exposures: Sequence[Exposure], rows: ResultsTable, budget: float, **words: object) -> str:
    """The page; `words` are variables of the template that differ between records and transcripts."""
    task = rows[0].setting.task if rows else ""
    advice = advice_on(rows, task, [one.goal for one in exposures], budget) if rows else []
    table = table_of(advice)
    style = files("leakboard.leaderboards.site") / "assets" / "style.css"
    template = report_templates().get_template("report.html")
    return template.render(
        words,
        style=style.read_text("utf-8"),
        leakage_words=LEAKAGE_WORDS,
        exposures=exposures,
        advice=advice,
        table=html_table(table) if table else "",
        budget=f"{budget:g}",
        task=task,
        models=", ".join(dict.fromkeys(one.setting.model for one in rows)),
    )


def report_templates() -> Environment:
    """The templates of reports."""
    made = environment("leakboard.leaderboards.report")
    made.globals |= {"channels": CHANNELS, "mostly": MOSTLY, "goal_words": GOAL_WORDS}
    return made
