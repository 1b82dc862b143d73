"""Commands that write records as tables and figures into files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import AttackOption, Goals, Source, app, console, results_of
from leakboard.bench.contracts import LeakboardError, did_you_mean

PAPER_FORMS = ("latex", "markdown")


@app.command()
def export(
    source: Source,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The file to write, ending in .csv, .parquet, .json, .tex or .md (or use --out)."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "--to", help="The file to write, instead of FILE.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="latex or markdown: print tables for papers."),
    ] = None,
    goal: Annotated[str | None, Goals] = None,
) -> None:
    """Write the records of a suite as one table, with one row per cell and attack; or as tables for papers.

    `results/README.md` explains the columns. Tables for papers have one row per setting.

    Examples: leakboard export smoke smoke.csv

    leakboard export smoke --format latex --goal inputs

    leakboard export smoke tables.md
    """
    from leakboard.leaderboards.tables import goal_of

    if file is not None and out is not None:
        raise LeakboardError(f"give the file once: {file}, or --out {out}")
    file = file or out
    if goal is not None:
        goal_of(goal)
    if form not in (None, *PAPER_FORMS):
        raise LeakboardError(f"--format: unknown '{form}'. {did_you_mean(form, PAPER_FORMS)}")
    if file is None and form is None:
        raise LeakboardError(
            "name a file that ends in .csv, .parquet, .json, .tex or .md, or print with --format latex or markdown"
        )
    results = results_of(source)
    if file is None and form is not None:
        print(results.paper_tables(form, goal), end="")  # type: ignore[arg-type]
        return
    assert file is not None
    results.export(file, form, goal)  # type: ignore[arg-type]
    is_frame = form is None and file.suffix not in (".tex", ".md")
    console.print(
        f"{len(results.frame())} rows in {file}" if is_frame else str(file), highlight=False
    )


@app.command()
def plot(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] SUITE",
            help="A kind of figure (default: tradeoff), then a suite or a folder of records.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "--to", help="Folder for the figures.")] = Path(
        "plots"
    ),
    goal: Annotated[str | None, Goals] = None,
    attack: Annotated[str, AttackOption] = "strongest",
    against: Annotated[
        str | None,
        typer.Option(
            help="Draw leakage and utility against `cut`, or against any parameter that was swept."
        ),
    ] = None,
    width: Annotated[
        str,
        typer.Option(
            help="Width in inches, or `column` (3.3) or `text` (7), as in a paper; the font size stays the same."
        ),
    ] = "text",
    title: Annotated[str, typer.Option(help="Title above the figure (default: none).")] = "",
    form: Annotated[
        list[str] | None,
        typer.Option(
            "--format", help="png, svg or pdf; separate several with commas (default: all)."
        ),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(help="Matplotlib style: the name of an available style, or a file."),
    ] = None,
) -> None:
    """Draw leakage against cost, or another figure, as PNG, SVG and PDF; the caption is in a .txt file next to them.

    KIND is tradeoff (the default), or one of these:

    goals: the cost of each defense, and its leakage for every goal.

    printed: empirical privacy and utility of a suite that mirrors a paper, next to the values printed in the paper.

    sends: attack success against the number of messages about a text, with the privacy guarantee for all of them.

    memory: exposure of canaries in released models under every defense.

    training: for labels, leakage over the training steps.

    sensitivity: for labels, utility against leakage at each strength of a defense.

    bars: for labels, utility and leakage of every setting.

    pca: for labels, principal components of what was sent, coloured by label (one seed).

    Examples: leakboard plot smoke --goal labels

    leakboard plot sap-figure4 --against cut

    leakboard plot training p3eft-figure4

    leakboard plot smoke --width column --format pdf
    """
    from leakboard.leaderboards.figures import KINDS, Request, draw

    kind, source = what if len(what) == 2 else (KINDS[0], what[0])
    if len(what) > 2 or (kind not in KINDS and Path(kind).exists()):
        raise LeakboardError("plot draws one suite or folder; a kind of figure may precede it")
    request = Request(kind, goal, attack, against, width, title, form or (), style)
    for path in draw(results_of(source), out, request):
        console.print(str(path), highlight=False)
