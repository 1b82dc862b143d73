"""The typer application, the options that several commands share, and error handling.

Heavy modules are imported inside the commands, so that --help stays quick.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from leakboard.bench import __version__
from leakboard.bench.cli.completion import (
    complete_attack,
    complete_records,
    complete_suite,
    complete_task,
)
from leakboard.bench.contracts import LeakboardError, plain

if TYPE_CHECKING:
    from rich.text import Text

    from leakboard import Results

PUBLISHED = Path("results/published")
LONGEST = 4096
"""The most characters of a command-line argument; no path is longer."""
INTERRUPTED = 130
"""The exit code that typer makes of Ctrl-C."""
TERMINATED = 128 + signal.SIGTERM
"""The exit code after SIGTERM, as sent by schedulers and by `kill`."""
console = Console(markup=False, emoji=False)
"""Prints text as it is, without markup, since names may come from users; see `styled` for markup."""
complaints = Console(stderr=True, markup=False, emoji=False)
app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Measure what private fine-tuning leaks, and what its privacy costs.\n\n"
    "A suite pairs defenses with attacks on real models and texts. Start with\n\n"
    "[bold]leakboard run smoke[/] and then [bold]leakboard plot smoke[/].",
)

SuiteName = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="A built-in suite (see `leakboard list suites`) or a YAML file.",
        autocompletion=complete_suite,
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SUITE|DIR",
        help="A suite that was run, or a folder of records.",
        autocompletion=complete_records,
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task", help="Run these tasks instead of the suite's.", autocompletion=complete_task
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="Use this model instead of the suite's: a name from `leakboard model list`, a folder, or a hub id.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="LEAKBOARD_DATA",
        help="Folder with one subfolder per dataset, which holds train.tsv, dev.tsv and test.tsv.",
    ),
]
Device = Annotated[
    str,
    typer.Option(help="cpu, cuda, cuda:1, …, mps, or auto."),
]
SeedList = Annotated[
    str | None, typer.Option("--seeds", help="Seeds instead of the suite's, as in 0,1,2.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", help="Use at most this many examples of each split.")
]
Evaluate = Annotated[
    str | None,
    typer.Option(help="Report utility on this split instead of the suite's."),
]
Precisions = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="float32|bf16",
        help="Train in this number format instead of the suite's. bf16 takes about half the time on "
        "processors that support it. Results in the two formats are stored as separate cells.",
    ),
]
AttackOption = typer.Option(
    "--attack",
    metavar="paper|strongest|NAME",
    help="The attack to report: `strongest`, `paper` (the attacks that the defense's authors used), or a name.",
    autocompletion=complete_attack,
)
Goals = typer.Option(
    "--goal",
    help="What an attacker wants: inputs, identity, labels, attributes, secrets, members or model; or a synonym "
    "such as texts.",
)
Budget = Annotated[
    float,
    typer.Option(
        "--budget", help="Largest cost of a defense, in points of utility (one point is 0.01)."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "--to", help="Folder of the records (default: results/local/SUITE)."),
]


RESUMABLE = (["run"], ["tune"])
"""Commands that continue if they are given again."""


def main() -> None:
    """Run the command line. An error that the user can fix ends it with exit code 2.

    SIGTERM stops it as Ctrl-C does.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        for word in sys.argv[1:]:
            _check_word(word)
        code = app(standalone_mode=False) or 0
        if code == INTERRUPTED:
            saved = " All finished cells are saved; run the same command again to continue."
            complaints.print(f"\nStopped.{saved if sys.argv[1:2] in RESUMABLE else ''}")
        sys.exit(TERMINATED if code == INTERRUPTED and received else code)
    except LeakboardError as error:
        message = _with_options(str(error), sys.argv[1:])
        complaints.print(styled(f"[bold red]Error[/]: {escaped(message)}"), soft_wrap=True)
        sys.exit(2)
    except OSError as error:  # a disk that is full, a folder that may not be read, a name too long
        message = f"{plain(error.filename or 'a file')}: {error.strerror or error}"
        complaints.print(styled(f"[bold red]Error[/]: {escaped(message)}"), soft_wrap=True)
        sys.exit(2)
    except Exception as error:
        if received:  # an import that SIGTERM interrupted may raise anything
            sys.exit(TERMINATED)
        if hasattr(error, "show"):  # a usage error, with its own wording and exit code
            error.show()
            sys.exit(getattr(error, "exit_code", 2))
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _with_options(message: str, words: Sequence[str]) -> str:
    """The message with `--limit:` for `limit:` at the start of a line, for each option among the words."""
    given = {word.partition("=")[0] for word in words}

    def option(name: re.Match[str]) -> str:
        dashed = "--" + name[0].replace("_", "-")
        return dashed if dashed in given else name[0]

    return re.sub(r"^[a-z_]+(?=:)", option, message, flags=re.MULTILINE)


def _check_word(word: str) -> None:
    """Raise LeakboardError for an argument that is not text, or longer than any path."""
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise LeakboardError(f"'{plain(word, 80)}' is not UTF-8 text; rename it") from error
    if len(word) > LONGEST or "\0" in word:
        raise LeakboardError(
            f"'{plain(word, 80)}' is not a valid argument: it has more than {LONGEST} characters, or contains a NUL"
        )


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
    """Records of suites that were run, of folders, or the published ones. Damaged files are reported on stderr."""
    import leakboard

    with complaints.status("reading records"):
        found = leakboard.load(*sources) if sources else leakboard.published()
    for problem in found.problems:
        complaints.print(styled(f"[yellow]left out[/] {escaped(problem)}"), soft_wrap=True)
    return found


def styled(markup: str) -> Text:
    """Text with markup. Text from outside the program must be `escaped` before it is inserted."""
    from rich.text import Text

    return Text.from_markup(markup, emoji=False)


def escaped(text: Any) -> str:
    """Text from outside the program for use in `styled`, without markup and terminal control codes."""
    from rich.markup import escape

    shown = "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in str(text))
    return escape(shown)


def numbers(text: str | None) -> list[int] | None:
    """Parse the whole numbers of --seeds.

    Raises:
        LeakboardError: the text is not a list of whole numbers.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise LeakboardError(f"--seeds: expected whole numbers as in 0,1,2, got '{text}'") from None
