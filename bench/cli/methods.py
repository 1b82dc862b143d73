"""Commands for authors of a new method: check it, or write a skeleton."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from leakboard.bench.cli.app import app, console
from leakboard.bench.cli.completion import complete_method
from leakboard.bench.cli.output import Format, print_json


@app.command()
def check(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="A registered method, or path/to/file.py.",
            autocompletion=complete_method,
        ),
    ],
    form: Format = "table",
) -> None:
    """Check on a tiny model that a defense or an attack follows the rules for methods.

    Example: leakboard check sap
    """
    import leakboard

    report = leakboard.check(name)
    if form == "json":
        rules = [
            {"rule": one.rule, "result": one.outcome, "detail": one.detail}
            for one in report.results
        ]
        print_json({"method": report.method, "passed": report.passed, "rules": rules})
    else:
        console.print(report.table())
    if not report.passed:
        raise typer.Exit(1)


new = typer.Typer(no_args_is_help=True, help="Write a working skeleton of a method and its test.")
app.add_typer(new, name="new")
Name = Annotated[str, typer.Argument(help="Lower case, words joined by '-', as in my-method.")]
Where = Annotated[
    Path | None,
    typer.Option(
        "--to",
        "--out",
        help="Write both files to this folder (default: the current folder; in a checkout of leakboard, the method "
        "goes to defenses/ or attacks/ and its test to tests/).",
    ),
]


@new.command("defense")
def new_defense(name: Name, to: Where = None) -> None:
    """Write a defense, NAME.py, and its test, test_NAME.py.

    Example: leakboard new defense my-noise
    """
    _new("defense", name, to)


@new.command("attack")
def new_attack(name: Name, to: Where = None) -> None:
    """Write an attack, NAME.py, and its test, test_NAME.py.

    Example: leakboard new attack my-guess
    """
    _new("attack", name, to)


def _new(kind: Literal["defense", "attack"], name: str, to: Path | None) -> None:
    from leakboard.bench.conformance import write_skeleton

    for path in write_skeleton(kind, name, to):
        console.print(f"wrote {path}", highlight=False)
    is_registered = path.parent.name == f"{kind}s" and to is None
    console.print(f"Next: leakboard check {name if is_registered else path}")
