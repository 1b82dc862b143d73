"""The application, what its commands share, and how it ends.

Heavy modules are imported inside the commands, so that --help is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from bench import __version__
from bench.contracts import LeakboardError

if TYPE_CHECKING:
    from leakboard import Results

PUBLISHED = Path("results/published")
INTERRUPTED = 130
"""The exit code that typer makes of Ctrl-C."""
console = Console()
complaints = Console(stderr=True)
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Measure what private fine-tuning leaks, and what its privacy costs.\n\n"
    "A suite pairs defenses with attacks on real models and texts. Start with\n\n"
    "[bold]leakboard run smoke[/] and then [bold]leakboard plot smoke[/].",
)

SuiteName = Annotated[
    str,
    typer.Argument(metavar="SUITE", help="A built-in suite (see `leakboard list`) or a YAML file."),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SUITE|DIR", help="A suite that was run, or a folder that holds records."
    ),
]
Tasks = Annotated[
    list[str] | None, typer.Option("--task", help="Run these tasks instead of the suite's.")
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", help="An embedded model, a folder, or a hub id, instead of the suite's."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="LEAKBOARD_DATA",
        help="Folder of datasets, one folder each with train.tsv, dev.tsv, test.tsv.",
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …, or auto.")]
SeedList = Annotated[
    str | None, typer.Option("--seeds", help="Seeds instead of the suite's, as in 0,1,2.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", help="At most so many examples of each split.")
]
Deciding = typer.Option(
    "--attack",
    metavar="paper|strongest|NAME",
    help="The attack that decides: of the defense's authors, the strongest, or one by name.",
)
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of the records (default: results/local/SUITE)."),
]


def main() -> None:
    """Runs the command line; an error that the user can mend ends it with code 2."""
    try:
        code = app(standalone_mode=False) or 0
        if code == INTERRUPTED:
            complaints.print(
                "\nStopped. Every finished cell is kept; the same command goes on from there."
            )
        sys.exit(code)
    except LeakboardError as error:
        complaints.print(f"[bold red]Error[/]: {escaped(str(error))}", soft_wrap=True)
        sys.exit(2)
    except Exception as error:
        if hasattr(error, "show"):  # a usage error, with its own wording and exit code
            error.show()
            sys.exit(getattr(error, "exit_code", 2))
        raise


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"leakboard {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


def results_of(*sources: str) -> Results:
    """The records of suites that were run, or of folders; what is damaged is complained about."""
    import leakboard

    found = leakboard.load(*sources)
    for problem in found.problems:
        complaints.print(f"[yellow]left out[/] {escaped(problem)}", soft_wrap=True)
    return found


def escaped(text: Any) -> str:
    from rich.markup import escape

    return escape(str(text))
