"""What commands print: tables for people, or JSON for programs, and progress apart from both."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from leakboard.bench.cli.app import complaints, console
from leakboard.bench.contracts import LeakboardError

if TYPE_CHECKING:
    from leakboard.leaderboards.results import Attacked

FORMATS = ("table", "json")


def check_format(form: str, known: Iterable[str] = FORMATS) -> str:
    """Raise LeakboardError if a format is unknown, and return it."""
    if form not in known:
        raise LeakboardError(f"--format: expected {' or '.join(known)}, got '{form}'")
    return form


def _table_or_json(form: str) -> str:
    return check_format(form)


Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="table|json",
        callback=_table_or_json,
        help="json: nothing but JSON on standard output; progress goes to standard error.",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show the result only, and no progress.")
]


def progress_console(form: str, quiet: bool) -> Console | None:
    """The console that shows progress, or None."""
    return None if quiet else lines_console(form)


def lines_console(form: str) -> Console:
    """The console of lines that are no result, such as the path of a file that was written."""
    return complaints if form == "json" else console


def show_attacked(
    result: Attacked, form: str, out: Path | None, everything: bool, budget: float, quiet: bool
) -> None:
    """Prints what attacks found, and the answer at the end; writes it to a file if one is named."""
    if out is not None:
        result.write(out)
        lines_console(form).print(f"written to {out}", highlight=False)
    if form == "json":
        print(result.to_json())
        return
    for part in result.tables(everything):
        console.print(part)
    with waiting("comparing defenses in the published records", form, quiet):
        lines = result.answer(budget)
    for line in lines:
        console.print(line, highlight=False, markup=False)


All = Annotated[bool, typer.Option("--all", help="Show all rows, not only a selection.")]


def waiting(what: str, form: str = "table", quiet: bool = False) -> AbstractContextManager[object]:
    """Shows that something takes time."""
    return nullcontext() if quiet else lines_console(form).status(what)


def print_json(content: Any) -> None:
    """Print a value as JSON on standard output; numbers that are not finite become null."""
    print(json.dumps(json_value(content), ensure_ascii=False, indent=1, allow_nan=False))


def json_value(value: Any) -> Any:
    """A value of the types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, str | Path):
        return str(value)
    if isinstance(value, Iterable):
        return [json_value(each) for each in value]
    if hasattr(value, "item"):  # a scalar of numpy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | None) else str(value)


def json_parts(parts: Iterable[RenderableType]) -> dict[str, Any]:
    """Tables as lists of rows, and the lines between them."""
    tables, lines = [], []
    for part in parts:
        if isinstance(part, Table):
            names = [str(column.header) or "value" for column in part.columns]
            cells = zip(*(map(str, column.cells) for column in part.columns), strict=True)
            rows = [dict(zip(names, row, strict=True)) for row in cells]
            tables.append({"title": str(part.title or ""), "rows": rows})
        elif text := str(part):
            lines.append(text)
    return {"tables": tables, "lines": lines}
