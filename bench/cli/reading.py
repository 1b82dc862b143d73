"""Commands that read records: tables, leaderboards, findings and the site."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakboard.bench.cli.app import (
    PUBLISHED,
    AttackOption,
    Budget,
    Goals,
    Source,
    app,
    console,
    results_of,
)
from leakboard.bench.cli.output import All, Format, Quiet, print_json, waiting
from leakboard.bench.contracts import LeakboardError, did_you_mean

if TYPE_CHECKING:
    from leakboard.leaderboards.rendering import Table
    from leakboard.leaderboards.tables import Ranking

FORMS = ("table", "json", "markdown")


@app.command()
def show(
    source: Source,
    attacks: Annotated[
        bool,
        typer.Option("--attacks", help="Show every attack that ran, and why the others did not."),
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show all results instead of the ten that matter most; with --attacks, also attacks that read nothing.",
        ),
    ] = False,
    attack: Annotated[str, AttackOption] = "strongest",
    form: Format = "table",
) -> None:
    """Show the records of a suite: leakage by goal, costs, and the utilities of tuning trials.

    Examples: leakboard show smoke

    leakboard show smoke --attacks
    """
    from leakboard.leaderboards.tables import results_under
    from leakboard.leaderboards.terminal import attacks_tables, digest_parts, results_tables

    results = results_of(source)
    if form == "json" and attacks:
        frame = results.frame()
        read = everything | (frame["channel"] != "") | (frame["status"] != "ok")
        print_json(frame[read].to_dict("records"))
    elif form == "json":
        print_json(results_under(results.table, attack).frame().to_dict("records"))
    elif attacks:
        _print(attacks_tables(results.table, results.frame(), everything))
    else:
        parts = results_tables if everything else digest_parts
        _print(parts(results_under(results.table, attack), results.frame()))


@app.command()
def board(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SUITE|DIR...", help="Suites that were run, or folders of records."),
    ],
    goal: Annotated[str | None, Goals] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    budget: Budget = 3.0,
    attack: Annotated[str, AttackOption] = "strongest",
    papers: Annotated[
        bool,
        typer.Option(
            "--papers",
            help="Instead of the ranking, show the numbers printed in papers next to ours.",
        ),
    ] = False,
    everything: All = False,
    form: Format = "table",
) -> None:
    """For each goal, rank the defenses made for it by what they leak within a budget.

    Examples: leakboard board results/published/*/

    leakboard board sap-figure2 --goal inputs --budget 5
    """
    from leakboard.leaderboards.tables import check_budget, goal_of, rankings, results_under
    from leakboard.leaderboards.terminal import ABOUT, board_table, overview, papers_tables

    only = None if goal is None else goal_of(goal)
    check_budget(budget)
    if papers:
        found = [table for one in map(results_of, sources) for table in papers_tables(one)]
        if not found:
            raise LeakboardError("none of these suites repeats a paper's table, as sap-table3 does")
        if form == "json":
            print_json(_plain(found))
        else:
            _print(found)
        return
    table = results_under(results_of(*sources).table, attack)
    tasks = dict.fromkeys(one.setting.task for one in table)
    if task is not None and task not in tasks:
        raise LeakboardError(f"--task: no records of '{task}'. {did_you_mean(task, tasks)}")
    shown = [
        one
        for one in rankings(table, budget)
        if only in (None, one.goal) and task in (None, one.task)
    ]
    if not shown:
        raise LeakboardError(
            f"nothing to rank: no attack{f' on {goal}' if goal else ''} ran on a defense that is made for such a goal"
        )
    if form == "json":
        print_json([_ranking(one) for one in shown])
    elif len(shown) > 1 and not everything:
        _print(overview(shown))
    else:
        _print([*map(board_table, shown), ABOUT])


@app.command()
def choose(
    task: Annotated[str, typer.Argument(help="A task that was measured, such as sst2.")],
    hide: Annotated[
        str,
        typer.Argument(
            help="What to hide: inputs, identity, labels, attributes, secrets, members or model; or several, such as "
            "'texts and labels'."
        ),
    ] = "inputs",
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE|DIR]...",
            help="Suites that were run, or folders of records (default: the published ones).",
        ),
    ] = None,
    goal: Annotated[str | None, Goals] = None,
    budget: Budget = 3.0,
    model: Annotated[str | None, typer.Option("--model", help="Only this model.")] = None,
    form: Format = "table",
) -> None:
    """Choose the setting that leaks least within a budget, and show the evidence for it.

    Examples: leakboard choose sst2 inputs --budget 5

    leakboard choose sst2 "texts and labels"
    """
    from leakboard.leaderboards.tables import check_budget, goals_asked
    from leakboard.leaderboards.tables import choose as chosen

    if goal is not None and hide != "inputs":
        sources = [hide, *(sources or ())]  # HIDE is then the first of the records
    goals_asked(goal or hide)  # before the records are read
    check_budget(budget)
    found = chosen(results_of(*(sources or ())).table, task, goal or hide, budget, model)
    if form == "json":
        setting, nearest = (one and one.row() for one in (found.setting, found.nearest))
        print_json(
            {
                "task": found.task,
                "goal": found.goal,
                "budget": found.max_cost,
                "answer": found.why,
                "setting": setting,
                "nearest": nearest,
                "front": [one.row() for one in found.front],
            }
        )
    else:
        console.print(repr(found), highlight=False)


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
        str | None, typer.Option(help="Show only the sentences of this rule, such as headlines.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Show all sentences and their records, not only ten sentences."),
    ] = (False),
    form: Annotated[str, typer.Option("--format", help="table, json or markdown.")] = "table",
    into: Annotated[
        Path | None,
        typer.Option(
            help="Write the findings into the blocks '<!-- findings: RULE -->' of this file, papers' claims with our "
            "verdicts into '<!-- claims: PAPER -->', and papers' tables into '<!-- papers: PAPER \"TABLE\" -->'."
        ),
    ] = None,
) -> None:
    """Print what the records show, in sentences with numbers. With --all, also name the records behind each sentence.

    Examples: leakboard findings --all

    leakboard findings --rule elsewhere --format json

    leakboard findings --into README.md
    """
    from leakboard.bench.records import replacing
    from leakboard.leaderboards.findings import Writers, bullets, chosen, document, fill
    from leakboard.leaderboards.terminal import findings_text

    if form not in FORMS:
        raise LeakboardError(f"--format: unknown '{form}'. {did_you_mean(form, FORMS)}")
    # Before the records are read.
    chosen([], [] if rule is None else [rule])
    text = "" if into is None else document(into)
    results = results_of(*(sources or ()))
    found = results.findings(rule)
    if into is not None:
        text = fill(text, Writers(results))
        with replacing(into) as file:
            file.write_text(text, "utf-8")
        console.print(str(into), highlight=False)
    elif form == "json":
        print_json([one.plain() for one in found])
    elif form == "markdown":
        print(bullets(found), end="")
    else:
        for part in findings_text(found, everything or rule is not None):
            console.print(part)


@app.command()
def publish(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE|DIR]...",
            help="Suites that were run, or folders of records or of such folders (default: all of results/published).",
        ),
    ] = None,
    to: Annotated[Path, typer.Option("--to", "--out", help="Folder of the site.")] = Path("site"),
    docs: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the built documentation. The site includes it, and the two link to each other."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Build the leaderboard as a static site. It opens from disk, without a server or a network.

    Examples: leakboard publish

    leakboard publish smoke --to /tmp/site

    leakboard publish --docs build/docs
    """
    from leakboard.leaderboards.results import folders_of
    from leakboard.leaderboards.site import publish as build

    folders = [folder for source in sources or [] for folder in folders_of(source)]
    if not folders:
        folders = sorted(path for path in PUBLISHED.glob("*") if any(path.glob("*.json")))
    with waiting("building", quiet=quiet):
        pages = build(folders, to, docs)
    console.print(f"{pages} pages; open {to / 'index.html'}", highlight=False)


def _ranking(one: Ranking) -> dict[str, Any]:
    """A ranking with a row for each defense, and in which group it is."""
    groups = {"within": one.within, "ineffective": one.ineffective, "over": one.over}
    rows: list[dict[str, Any]] = [
        {
            **entry.setting.row(),
            "group": group,
            "rank": entry.rank or None,
            "halving_cost": entry.halving.value.value,
            "gives_away": dict(entry.gives_away),
        }
        for group, entries in groups.items()
        for entry in entries
    ]
    rows += [{**each.row(), "group": "baseline"} for each in one.baselines]
    for group, curves in (("no cost", one.unpriced), ("not certified", one.uncertified)):
        rows += [{**curve.results[0].row(), "group": group} for curve in curves]
    return {
        "goal": one.words,
        "task": one.task,
        "model": one.model,
        "budget": one.budget,
        "defenses": rows,
    }


def _plain(tables: Iterable[Table]) -> list[dict[str, Any]]:
    return [
        {
            "title": table.title,
            "rows": [
                dict(
                    zip(
                        (c.label for c in table.columns),
                        (c.text for c in table.cells(row)),
                        strict=True,
                    )
                )
                for row in table.rows
                if not isinstance(row, str)
            ],
            "notes": table.notes,
        }
        for table in tables
    ]


def _print(parts: Iterable[Table | str]) -> None:
    from leakboard.leaderboards.terminal import printable

    for part in printable(parts):
        console.print(part)
