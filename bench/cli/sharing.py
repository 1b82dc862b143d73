"""Commands that keep records, compare them with later ones, and share them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import app, console
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
        str | None, typer.Argument(help="The same (default: the published records).")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
    clear: Annotated[
        bool,
        typer.Option(
            "--clear", help="Of changed numbers only those whose interval excludes no change."
        ),
    ] = False,
) -> None:
    """Show what changed from some records to others, and why: setting by setting, with intervals.

    Why: another version of the method, other data, model or training, more seeds, another attacker, other code.

    Examples: leakboard diff leakboard-v0.1.0-records.parquet results/published

    leakboard diff hf://somebody/records runs/mine --clear --format csv
    """
    import leakboard
    from leakboard.leaderboards.terminal import changes_tables, printable

    if form not in ("table", "csv", "json"):
        raise LeakboardError(f"--format: expected table, csv or json, got '{form}'")
    found = leakboard.diff(old, new)
    if clear:
        found = found.clearly()
    if form == "csv":
        print(found.frame().to_csv(index=False), end="")
    elif form == "json":
        print(found.frame().to_json(orient="records", indent=1, force_ascii=False))
    else:
        for part in printable(changes_tables(found)):
            console.print(part)


@app.command()
def snapshot(
    file: Annotated[Path, typer.Argument(help="Ends in .parquet.")],
    sources: Sources = None,
    enter: Annotated[
        bool,
        typer.Option(
            "--enter", help="In a checkout: also give the published records the next data version."
        ),
    ] = False,
) -> None:
    """Write records into one file, byte for byte, to keep and to compare with: `load` and `diff` read it.

    A release has one of the published records. Example: leakboard snapshot before.parquet smoke
    """
    import leakboard
    from leakboard.leaderboards.results import enter as entered

    if enter and sources:
        raise LeakboardError("--enter numbers the published records: leave out the sources")
    if enter:
        console.print(str(entered(datetime.now(UTC).date())), highlight=False)
    written = leakboard.snapshot(file, *(sources or ()))
    found = leakboard.load(written)
    version = f", {found.version}" if found.version else ""
    console.print(f"{len(found)} records in {written}{version}", highlight=False)


@app.command()
def push(
    to: Annotated[str, typer.Argument(metavar="hf://OWNER/NAME", help="Made where there is none.")],
    sources: Sources = None,
) -> None:
    """Put records into a dataset repository of the Hugging Face hub; log in by `hf auth login` before.

    `show`, `export`, `plot`, `board`, `findings`, `report` and `diff` take hf://OWNER/NAME, too. Example: leakboard push
    hf://me/leakboard-records smoke
    """
    import leakboard

    with console.status("pushing"):
        place = leakboard.push(to, *(sources or ()))
    console.print(f"pushed to {place}", highlight=False)
