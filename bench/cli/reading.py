"""Commands that read records: tables, exports, figures, leaderboards, findings and the site."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import PUBLISHED, AttackOption, Source, app, console, results_of
from leakboard.bench.contracts import LeakboardError, did_you_mean

FORMS = ("table", "json", "markdown")


@app.command()
def show(
    source: Source,
    attacks: Annotated[
        bool, typer.Option("--attacks", help="Show every attack, and why others did not run.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="With --attacks: show the baselines that read nothing, too."),
    ] = False,
    attack: Annotated[str | None, AttackOption] = None,
) -> None:
    """Show the records of a suite: the utility of each setting, and the strongest attack for each goal.

    Examples: leakboard show smoke

    leakboard show smoke --attacks
    """
    from leakboard.leaderboards.tables import deciding
    from leakboard.leaderboards.terminal import best_tables, summary_tables

    rows = results_of(source).frame()
    if attack is not None:
        rows = rows[rows.index.isin(deciding(rows, attack).index) | (rows["status"] != "ok")]
    long = attacks or everything or attack is not None
    for part in summary_tables(rows, everything) if long else best_tables(rows):
        console.print(part)


@app.command()
def export(
    source: Source,
    file: Annotated[Path, typer.Argument(help="Ends in .csv, .parquet or .json.")],
) -> None:
    """Write the records of a suite as one table, with one row per cell and attack.

    `results/README.md` explains the columns. Example: leakboard export smoke smoke.csv
    """
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
    goal: Annotated[
        str, typer.Option(help="inversion, label, attribute, memorisation or membership.")
    ] = "inversion",
    attack: Annotated[str, AttackOption] = "strongest",
    against: Annotated[
        str | None,
        typer.Option(
            help="Draw EP and utility against the cut, or against a parameter that was swept."
        ),
    ] = None,
) -> None:
    """Draw utility against empirical privacy, or another figure, as PNG, SVG and PDF.

    Of many defenses: goals (the matrix of `board`: what each protects, and what that costs).

    Of released models: memory (exposure of canaries under every defense).

    Of label privacy: training (leak over the steps), sensitivity (utility against leak along the
    knob), bars (both beside the paper's), pca (what was sent, coloured by label; one seed).

    Examples: leakboard plot smoke --goal label

    leakboard plot sap-figure4 --against cut

    leakboard plot training p3eft-figure4
    """
    from leakboard.bench.contracts import Goal
    from leakboard.leaderboards.figures import PLOTS

    kind, source = what if len(what) == 2 else (PLOTS[0], what[0])
    if len(what) > 2 or kind not in PLOTS:
        raise LeakboardError(f"KIND: unknown '{kind}'. {did_you_mean(kind, PLOTS)}")
    if goal not in list(Goal):  # before records are looked for, which may not be there
        raise LeakboardError(f"--goal: unknown '{goal}'. {did_you_mean(goal, Goal)}")
    for path in results_of(source).plot(kind, out, goal, attack, against):
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
            help="best-privacy, matched, front, hypervolume, cost or papers, instead of the matrix."
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(help="Points of utility that a defense may lose in the matrix.")
    ] = 3.0,
    attack: Annotated[str, AttackOption] = "strongest",
) -> None:
    """Show what each defense protects, what it does not and what it costs; or one leaderboard.

    Examples: leakboard board results/published/*/

    leakboard board sap-figure2 --question best-privacy
    """
    from leakboard.leaderboards.tables import PAPERS, QUESTIONS, boards, matrices
    from leakboard.leaderboards.terminal import board_tables, matrix_tables, paper_tables

    names = [*[name for name, *_ in QUESTIONS], PAPERS]
    if question is not None and question not in names:
        raise LeakboardError(f"--question: unknown '{question}'. {did_you_mean(question, names)}")
    if question is None:
        compared = matrices(results_of(*sources).compared, budget)
        parts = [part for one in compared for part in matrix_tables(one)]
    elif question == PAPERS:
        parts = [
            part
            for one in map(results_of, sources)
            if one.suite and one.suite.paper
            for part in paper_tables(one)
        ]
        if not parts:
            raise LeakboardError("none of these suites mirrors a paper")
    else:
        found = boards(results_of(*sources).compared, attack)
        parts = [part for one in found if one.name == question for part in board_tables(one)]
    if not parts:
        raise LeakboardError(
            "nothing to compare: a board needs two defenses on one task, model and setup, and among "
            "them one cell without protection, such as `none`"
        )
    for part in parts:
        console.print(part)


@app.command()
def findings(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE|DIR]...",
            help="Suites that were run, or folders of records (default: the published ones).",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="Only the claims of this rule, as in elsewhere; it stands behind each question."
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table, json or markdown.")] = "table",
    into: Annotated[
        Path | None,
        typer.Option(
            help="Write them into the blocks '<!-- findings: RULE -->' of this file, and papers' tables beside "
            "ours into those '<!-- papers: PAPER \"TABLE\" -->'."
        ),
    ] = None,
) -> None:
    """Show what records show: claims, each from a rule, with its numbers and the records behind it.

    Examples: leakboard findings

    leakboard findings --rule elsewhere --format json

    leakboard findings --into README.md
    """
    from leakboard.bench.records import replacing
    from leakboard.leaderboards.findings import document, listing, papers, quoted
    from leakboard.leaderboards.terminal import findings_text

    if form not in FORMS:
        raise LeakboardError(f"--format: unknown '{form}'. {did_you_mean(form, FORMS)}")
    text = "" if into is None else document(into)  # before the records are looked through
    results = results_of(*(sources or ()))
    found = results.findings(rule)
    if into is not None:
        text = quoted(text, found, partial(papers, found=results))
        with replacing(into) as file:
            file.write_text(text, "utf-8")
        console.print(str(into), highlight=False)
    elif form == "json":
        print(json.dumps([one.plain() for one in found], indent=1, ensure_ascii=False))
    elif form == "markdown":
        print(listing(found), end="")
    else:
        for part in findings_text(found):
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
    to: Annotated[Path, typer.Option("--to", "--out", help="Folder of the site.")] = Path("site"),
    docs: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the documentation as it was built: the site holds it, and each leads to the other."
        ),
    ] = None,
) -> None:
    """Build the leaderboard as a static site, which opens from disk: no server, no network.

    Examples: leakboard publish

    leakboard publish smoke --to /tmp/site

    leakboard publish --docs build/docs
    """
    from leakboard.leaderboards.results import folder_of
    from leakboard.leaderboards.site import publish as build

    folders = [folder_of(source) for source in sources or []]
    if not folders:
        folders = sorted(path for path in PUBLISHED.glob("*") if any(path.glob("*.json")))
    with console.status("building"):
        pages, built = build(folders, to, docs)
    console.print(
        f"{pages} pages, {built} of them built; open {to / 'index.html'}", highlight=False
    )
