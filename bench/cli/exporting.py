"""Commands that write records as tables and figures into files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import AttackOption, Goals, Source, app, console, results_of
from leakboard.bench.contracts import LeakboardError, did_you_mean


@app.command()
def export(
    source: Source,
    file: Annotated[
        Path | None, typer.Argument(help="Ends in .csv, .parquet or .json; or use --out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "--to", help="The same file.")] = None,
) -> None:
    """Write the records of a suite as one table, with one row per cell and attack.

    `results/README.md` explains the columns. Example: leakboard export smoke smoke.csv
    """
    if (file := file or out) is None:
        raise LeakboardError("name a file that ends in .csv, .parquet or .json")
    results = results_of(source)
    results.export(file)
    console.print(f"{len(results.frame())} rows in {file}")


@app.command()
def plot(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] SUITE",
            help="A kind of figure (default: tradeoff), then a suite or a folder of records.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "--to", help="Folder of the figures.")] = Path(
        "plots"
    ),
    goal: Annotated[str | None, Goals] = None,
    attack: Annotated[str, AttackOption] = "strongest",
    against: Annotated[
        str | None,
        typer.Option(
            help="Draw leakage and utility against this: cut, or any parameter that was swept."
        ),
    ] = None,
    width: Annotated[
        str,
        typer.Option(
            help="Inches, or column (3.3) or text (7) of a paper; letters keep their size."
        ),
    ] = "text",
    title: Annotated[str, typer.Option(help="Title above the figure (default: none).")] = "",
    form: Annotated[
        list[str] | None,
        typer.Option("--format", help="png, svg or pdf; several with commas (default: all)."),
    ] = None,
    style: Annotated[
        str | None, typer.Option(help="Style of matplotlib: a name that it knows, or a file.")
    ] = None,
) -> None:
    """Draw leakage against cost, or another figure, as PNG, SVG and PDF; the caption is in a .txt file beside them.

    Of many defenses: goals (what each leaks of everything, and what it costs).

    Of a suite that mirrors a paper: printed (empirical privacy and utility, with the paper's own points).

    Of texts that are sent several times: sends (success against messages, beside the guarantee of all).

    Of released models: memory (exposure of canaries under every defense).

    Of label privacy: training (leak over the steps), sensitivity (utility against leak along the
    knob), bars (both for every setting), pca (what was sent, coloured by label; one seed).

    Examples: leakboard plot smoke --goal labels

    leakboard plot sap-figure4 --against cut

    leakboard plot training p3eft-figure4

    leakboard plot smoke --width column --format pdf
    """
    from leakboard.leaderboards.figures import KINDS, Request, draw
    from leakboard.leaderboards.tables import goal_of

    kind, source = what if len(what) == 2 else (KINDS[0], what[0])
    if len(what) > 2 or kind not in KINDS:
        raise LeakboardError(f"KIND: unknown '{kind}'. {did_you_mean(kind, KINDS)}")
    if goal is not None:
        goal_of(goal, "--goal")  # before records are looked for, which may not be there
    request = Request(kind, goal, attack, against, width, title, form or (), style)
    for path in draw(results_of(source), out, request):
        console.print(str(path), highlight=False)
