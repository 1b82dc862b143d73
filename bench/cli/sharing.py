"""Commands that compare, archive and share records."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import app, console
from leakboard.bench.cli.output import Quiet, check_format, print_json, waiting
from leakboard.bench.contracts import LeakboardError

SOURCE = (
    "a folder of records or of such folders, a suite that was run, a snapshot, or hf://OWNER/NAME"
)
Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SUITE|DIR]...",
        help="Suites that were run, or folders of records (default: the published ones).",
    ),
]


@app.command()
def diff(
    old: Annotated[str, typer.Argument(help=f"Records: {SOURCE}.")],
    new: Annotated[
        str | None,
        typer.Argument(
            help="The newer records, specified like OLD (default: the published records)."
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
    clear: Annotated[
        bool,
        typer.Option("--clear", help="Show only changes whose confidence interval excludes zero."),
    ] = False,
) -> None:
    """Show what changed between two sets of records, and why: setting by setting, with intervals.

    What can differ: version of the method, data, model, training, number of seeds, attack, or code.

    Examples: leakboard diff leakboard-v0.1.0-records.parquet results/published

    leakboard diff hf://somebody/records runs/mine --clear --format csv
    """
    import leakboard
    from leakboard.leaderboards.terminal import changes_tables, printable

    check_format(form, ("table", "csv", "json"))
    found = leakboard.diff(old, new)
    if clear:
        found = found.clearly()
    if form == "csv":
        print(found.frame().to_csv(index=False), end="")
    elif form == "json":
        print_json(found.frame().to_dict("records"))
    else:
        for part in printable(changes_tables(found)):
            console.print(part)


@app.command()
def snapshot(
    file: Annotated[Path, typer.Argument(help="The .parquet file to write.")],
    sources: Sources = None,
    enter: Annotated[
        bool,
        typer.Option(
            "--enter",
            help="In a checkout: also register the published records as the next data version.",
        ),
    ] = False,
) -> None:
    """Archive records in one file, byte for byte. `diff`, and `leakboard.load` in Python, read it.

    Every release has such a file of the published records.

    Example: leakboard snapshot before.parquet smoke
    """
    import leakboard
    from leakboard.leaderboards.results import enter as entered

    if enter and sources:
        raise LeakboardError(
            "--enter numbers the published records, and no others: leave out the sources"
        )
    if enter:
        console.print(str(entered(datetime.now(UTC).date())), highlight=False)
    written = leakboard.snapshot(file, *(sources or ()))
    found = leakboard.load(written)
    version = f", {found.version}" if found.version else ""
    console.print(f"{len(found)} records in {written}{version}", highlight=False)


@app.command()
def push(
    to: Annotated[
        str,
        typer.Argument(
            metavar="hf://OWNER/NAME", help="The repository, created if it does not exist."
        ),
    ],
    sources: Sources = None,
    quiet: Quiet = False,
) -> None:
    """Upload records to a dataset repository of the Hugging Face hub. Log in with `hf auth login` first.

    `show`, `export`, `plot`, `board`, `findings`, `report` and `diff` also read records from hf://OWNER/NAME.

    Example: leakboard push hf://me/leakboard-records smoke
    """
    import leakboard

    with waiting("pushing", quiet=quiet):
        place = leakboard.push(to, *(sources or ()))
    console.print(f"pushed to {place}", highlight=False)
