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
    from bench.contracts import Record
    from bench.suites import Suite

LOCAL, PUBLISHED = Path("results/local"), Path("results/published")
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


def records_of(source: str) -> list[Record]:
    from bench.records import Store
    from leaderboards.tables import in_order

    folder = folder_of(source)
    store = Store(folder)
    records = store.read_all()
    for problem in store.problems:
        complaints.print(f"[yellow]left out[/] {escaped(problem)}", soft_wrap=True)
    if not records:
        raise LeakboardError(f"{folder} holds no records. Run the suite first")
    return in_order(records)


def folder_of(source: str) -> Path:
    """The folder of records that is meant by its path or by the name of its suite."""
    folder = Path(source) if Path(source).is_dir() else LOCAL / name_of(source)
    if not folder.is_dir():
        raise LeakboardError(f"no records in {folder}. Run the suite first: leakboard run {source}")
    return folder


def name_of(source: str) -> str:
    """The name of a folder or suite, under which its records and pictures stand."""
    if Path(source).is_dir():
        return Path(source).resolve().name
    suite = suite_of(source)
    return suite.name if suite else source


def suite_of(source: str) -> Suite | None:
    """The suite that a name, the path of a file or the name of a folder of records means, if any."""
    from bench.suites import load_suite, suite_names

    folder = Path(source).is_dir()
    name = Path(source).resolve().name if folder else source
    is_file = not folder and Path(source).suffix in (".yaml", ".yml")
    return load_suite(name) if is_file or name in suite_names() else None


def device_of(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = name.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise LeakboardError(f"--device: expected cpu, cuda, cuda:N or auto, got '{name}'")
    if kind == "cuda" and not torch.cuda.is_available():
        raise LeakboardError("--device: no CUDA device is available here; use --device cpu")
    return name


def escaped(text: Any) -> str:
    from rich.markup import escape

    return escape(str(text))
