"""Commands that read records: tables, exports, figures, boards and the site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.app import (
    PUBLISHED,
    Deciding,
    Source,
    app,
    console,
    folder_of,
    name_of,
    records_of,
    suite_of,
)
from bench.contracts import LeakboardError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd


@app.command()
def show(
    source: Source,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the baselines that read nothing.")
    ] = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--best", help="One row per setting and goal: the paper's attack and the strongest."
        ),
    ] = False,
    attack: Annotated[str | None, Deciding] = None,
) -> None:
    """Show the records of a suite as a table: utility, and what each attack found.

    Examples: leakboard show smoke

    leakboard show smoke --best
    """
    from leaderboards.tables import deciding, frame
    from leaderboards.tables import summaries as tables

    rows = frame(records_of(source))
    if attack is not None:
        rows = rows[rows.index.isin(deciding(rows, attack).index) | (rows["status"] != "ok")]
    for part in tables.best(rows) if compact else tables.summary(rows, everything):
        console.print(part)


@app.command()
def export(
    source: Source,
    file: Annotated[Path, typer.Argument(help="Ends in .csv, .parquet or .json.")],
) -> None:
    """Write the records of a suite as one table, a row per cell and attack.

    `results/README.md` explains the columns. Example: leakboard export smoke smoke.csv
    """
    from leaderboards.tables import export as write
    from leaderboards.tables import frame

    table = frame(records_of(source))
    write(table, file)
    console.print(f"{len(table)} rows in {file}")


@app.command()
def plot(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] SUITE",
            help="tradeoff (the default), goals, memory, training, sensitivity, bars or pca; then a "
            "suite or a folder of records.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the pictures.")] = Path("plots"),
    goal: Annotated[
        str, typer.Option(help="inversion, label, attribute, memorisation or membership.")
    ] = "inversion",
    attack: Annotated[str, Deciding] = "strongest",
    against: Annotated[
        str | None,
        typer.Option(
            help="Draw EP and utility against this instead: cut, or any parameter that was swept."
        ),
    ] = None,
) -> None:
    """Draw utility against empirical privacy, or another figure, as PNG, SVG and PDF.

    Of many defenses: goals (the matrix of `board`: what each protects, and what that costs).

    Of released models: memory (exposure of canaries under every defense).

    Of label privacy: training (leak over the steps), sensitivity (utility against leak along the
    knob), bars (both beside the paper's), pca (what was sent, coloured by label; one seed).

    Examples: leakboard plot smoke --goal label

    leakboard plot sap-table4 --against cut

    leakboard plot training p3eft-figure4
    """
    from bench.contracts import Goal
    from leaderboards.figures import KINDS as LABEL_KINDS
    from leaderboards.figures import draw, goals, memory, sweep, tradeoff
    from leaderboards.tables import (
        PAPER,
        STRONGEST,
        comparisons,
        exposures,
        frame,
        matrices,
        points,
        swept,
    )

    kinds = ["tradeoff", "goals", "memory", *LABEL_KINDS]
    kind, source = what if len(what) == 2 else ("tradeoff", what[0])
    if len(what) > 2 or kind not in kinds:
        raise LeakboardError(f"KIND: unknown '{kind}'. {did_you_mean(kind, kinds)}")
    if goal not in list(Goal):
        raise LeakboardError(f"--goal: unknown '{goal}'. {did_you_mean(goal, Goal)}")
    records = records_of(source)
    if kind == "goals":
        title = f"{name_of(source)}: what each defense protects, and what it costs"
        paths = goals(matrices(comparisons(records)), out / f"{name_of(source)}-goals", title)
    elif kind == "memory":
        suite = suite_of(source)
        paper = suite.paper if suite else None
        theirs = exposures(paper.paper, paper.artefact, paper.model) if paper else None
        title = f"{name_of(source)}: what the model remembers"
        paths = memory(records, out / f"{name_of(source)}-memory", title, theirs)
    elif kind != "tradeoff":
        paths = draw(kind, records, frame(records), printed_by(source)[0], out, name_of(source))
    else:
        rows, (known, more) = frame(records), printed_by(source)
        named = {STRONGEST: "the strongest attack", PAPER: "the paper's attack"}.get(attack, attack)
        name = "-".join([name_of(source), goal, *([] if attack == STRONGEST else [attack])])
        title = f"{name_of(source)}: {goal} against {named}"
        if against is None:
            paths = tradeoff(points(rows, goal, attack), out / name, title, known, more)
        else:
            means = swept(rows, goal, against, attack)
            paths = sweep(means, against, out / f"{name}-by-{against}", title, known, more)
    for path in paths:
        console.print(str(path), highlight=False)


@app.command()
def board(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SUITE|DIR...", help="Suites that were run, or folders of records."),
    ],
    question: Annotated[
        str | None,
        typer.Option(
            help="best-privacy, front, hypervolume, cost or papers, instead of the matrix."
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(help="Points of utility that a defense may lose in the matrix.")
    ] = 3.0,
    attack: Annotated[str, Deciding] = "strongest",
) -> None:
    """Show what each defense protects, what it does not and what it costs; or one leaderboard.

    Examples: leakboard board results/published/*/

    leakboard board sap-figure2 --question best-privacy
    """
    from leaderboards.tables import (
        PAPERS,
        QUESTIONS,
        board_tables,
        boards,
        comparisons,
        frame,
        matrices,
    )

    names = [*[name for name, *_ in QUESTIONS], PAPERS]
    if question is not None and question not in names:
        raise LeakboardError(f"--question: unknown '{question}'. {did_you_mean(question, names)}")
    records = [record for source in sources for record in records_of(source)]
    if question is None:
        compared = matrices(comparisons(records), budget)
        parts = [part for one in compared for part in board_tables.matrix(one)]
    elif question == PAPERS:
        parts = [
            part
            for source in sources
            if (printed := printed_by(source))[0] is not None
            for part in board_tables.papers(name_of(source), frame(records_of(source)), *printed)
        ]
        if not parts:
            raise LeakboardError("none of these suites mirrors a paper")
    else:
        found = [one for one in boards(comparisons(records), attack) if one.name == question]
        parts = [part for one in found for part in board_tables.board(one)]
    if not parts:
        raise LeakboardError(
            "nothing to compare: a board needs two defenses on one task, model and setup, and among "
            "them one cell without protection, such as `none`"
        )
    for part in parts:
        console.print(part)


@app.command()
def publish(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE|DIR]...",
            help="Suites that were run, or folders of records (default: all of results/published).",
        ),
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("site"),
) -> None:
    """Build the leaderboard as a static site, which opens from disk: no server, no network.

    Examples: leakboard publish

    leakboard publish smoke --to /tmp/site
    """
    from leaderboards.site import start

    folders = [folder_of(source) for source in sources or []]
    if not folders:
        folders = sorted(path for path in PUBLISHED.glob("*") if any(path.glob("*.json")))
    start()  # processes that draw, which load while this one does
    from leaderboards.site import publish as build

    with console.status("building"):
        pages = build(folders, to)
    console.print(f"{pages} pages; open {to / 'index.html'}", highlight=False)


def printed_by(source: str) -> tuple[pd.DataFrame | None, str]:
    """What the paper that a suite mirrors prints, and what differs; None where it mirrors none."""
    from leaderboards.tables import mirrored

    suite = suite_of(source)
    return (mirrored(suite.paper), suite.paper.note) if suite and suite.paper else (None, "")
