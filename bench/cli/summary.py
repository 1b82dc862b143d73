"""What a run prints at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from leakboard.bench.cli.app import console, escaped, styled
from leakboard.bench.cli.output import print_json

if TYPE_CHECKING:
    from leakboard.bench.contracts import Leak, Record


def print_summary(
    records: Sequence[Record], folder: Path, name: str, shown: Iterable[str], form: str
) -> None:
    """Print the summary of a run. Exits with code 1 if a cell or an attack failed.

    Args:
        name: suite under which other commands find the folder; '' if they do not.
        shown: lines of the summary.
    """
    from leakboard.leaderboards.tables import count

    bad = [r for r in records if r.status not in ("ok", "skipped")]
    broken = [leak for r in records for leak in r.leaks if leak.status not in ("ok", "skipped")]
    if form == "json":
        _print_content(records, folder, shown, bad, broken)
        if bad or broken:
            raise typer.Exit(1)
        return
    seeds = len({record.cell.seed for record in records})
    methods = len({record.cell.defense.name for record in records})
    console.print(
        f"{count(len(records), 'cell')} of {count(methods, 'defense')} and {count(seeds, 'seed')} "
        f"in {folder}",
        highlight=False,
    )
    where = name or folder
    console.print(
        f"table: leakboard show {where}   picture: leakboard plot {where}", highlight=False
    )
    for failed in bad:
        head = f"{failed.key} {failed.cell.defense.name}: {failed.status}"
        console.print(styled(f"[yellow]{escaped(head)}[/] {escaped(failed.reason)}"))
    for leak in broken:
        head = f"{leak.attack.name}: {leak.status}"
        console.print(styled(f"[yellow]{escaped(head)}[/] {escaped(leak.reason)}"))
    for line in shown:
        console.print(line, highlight=False, markup=False)
    if bad or broken:
        raise typer.Exit(1)


def _print_content(
    records: Sequence[Record],
    folder: Path,
    shown: Iterable[str],
    bad: Sequence[Record],
    broken: Sequence[Leak],
) -> None:
    cells = [
        {
            "key": record.key,
            "task": record.cell.task,
            "model": record.cell.model,
            "defense": record.cell.defense.name,
            "parameters": record.cell.defense.params,
            "seed": record.cell.seed,
            "status": record.status,
            "utility": record.utility and record.utility.value,
        }
        for record in records
    ]
    failed = [{"cell": r.key, "status": r.status, "reason": r.reason} for r in bad]
    failed += [
        {"attack": leak.attack.name, "status": leak.status, "reason": leak.reason}
        for leak in broken
    ]
    print_json({"folder": folder, "summary": shown, "cells": cells, "failed": failed})
