"""The command `leakboard`. Heavy modules are imported inside the commands, so that --help is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from bench import __version__
from bench.errors import LeakboardError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from bench.plan import Plan
    from bench.record import Record
    from bench.store import Store
    from bench.suite import Suite

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
    typer.Option("--out", help="Folder of the records [default: results/local/SUITE]."),
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
        complaints.print(f"[bold red]Error[/]: {_escaped(str(error))}", soft_wrap=True)
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


@app.command("list")
def list_() -> None:
    """Show defenses, attacks, tasks, models and suites, with source and threat model.

    Example: leakboard list
    """
    from bench import listing

    for table in listing.tables():
        console.print(table)


@app.command()
def plan(
    suite: SuiteName,
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    seeds: SeedList = None,
    limit: Limit = None,
    out: Out = None,
) -> None:
    """Show the cells of a suite, the pairs that do not fit and why, and what is already done.

    Example: leakboard plan smoke
    """
    from bench import listing

    planned, store = _plan(suite, task, model, data, "cpu", seeds, limit, out)
    for part in listing.plan(planned, store):
        console.print(part)


@app.command()
def run(
    suite: Annotated[
        str | None,
        typer.Argument(
            metavar="SUITE", help="A built-in suite (see `leakboard list`) or a YAML file."
        ),
    ] = None,
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    device: Device = "auto",
    seeds: SeedList = None,
    limit: Limit = None,
    out: Out = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(help="Keep the transcript of each cell that is run here, for `attack`."),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Instead of a suite: exactly the cell of this record in results/, with its attacks.",
        ),
    ] = None,
) -> None:
    """Run what is missing of a suite. Interrupt it at will; the same command goes on.

    Examples: leakboard run smoke

    leakboard run sap-figure2 --data ~/datasets --task sst2 --limit 6000 --seeds 0,1,2

    leakboard run --record 03d21b1d59c3490c --data ~/datasets
    """
    from bench.progress import Live
    from bench.runner import Runner

    if (suite is None) == (record is None):
        raise LeakboardError("give a SUITE, or --record KEY, and not both")
    if record is not None:
        if task or seeds or limit is not None or len(model or []) > 1:
            raise LeakboardError(
                "--record runs one cell as it was: --task, --seeds and --limit do not go with it, "
                "and --model says only where its model lies"
            )
        before, planned, store = _plan_again(record, model[0] if model else None, data, device, out)
    else:
        before = None
        planned, store = _plan(str(suite), task, model, data, device, seeds, limit, out)
    name = planned.suite.name if suite is None else suite
    with Live(console, len(planned.cells)) as live:
        records = Runner(planned, store, live, transcripts).run()
    bad = [r for r in records if r.status not in ("ok", "skipped")]
    broken = [leak for r in records for leak in r.leaks if leak.status not in ("ok", "skipped")]
    console.print(
        f"{len(records)} cells in {store.folder}. "
        f"See them with [bold]leakboard show {name}[/] and [bold]leakboard plot {name}[/]."
        if out is None
        else f"{len(records)} cells in {store.folder}."
    )
    if before is not None:
        from bench.again import compared

        console.print(_escaped(compared(before, records[0])))
    if bad or broken:
        for failed in bad:
            console.print(
                f"[yellow]{failed.key} {failed.cell.defense.name}: {failed.status}[/] "
                f"{_escaped(failed.reason)}"
            )
        for leak in broken:
            console.print(f"[yellow]{leak.attack.name}: {leak.status}[/] {_escaped(leak.reason)}")
        raise typer.Exit(1)


@app.command()
def attack(
    folder: Annotated[
        Path, typer.Argument(help="A transcript; results/README.md says how to write one.")
    ],
    model: Annotated[
        str,
        typer.Option(help="The public model it came from: an embedded one, a folder, a hub id."),
    ],
    attacks: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            help="Only these, written as in a suite; without it, all but the costly ones.",
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="Score the guesses by this .csv, .tsv or .parquet: a line per example, in the order "
            "of the transcript's rows, with columns text, label, split."
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None, typer.Option(help="A column of the truth with a private attribute.")
    ] = None,
    auxiliary: Annotated[
        str | None, typer.Option(help="A task whose public text the attacks may know.")
    ] = None,
    defense: Annotated[
        str | None, typer.Option(help="The mechanism, for attacks that know it: 'sap: {eta: 75}'.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write scores or guesses here, as JSON.")] = None,
    data: Data = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Of the attacks.", min=0)] = 0,
) -> None:
    """Attack what a system of your own has sent, recorded as a folder, without that system.

    Example: leakboard attack sent/ --model minilm --truth train.csv --auxiliary sst2
    """
    from rich.progress import track

    from bench.audit import attack_folder
    from bench.backbones import load_backbone

    if truth is None and out is None:
        raise LeakboardError("give --truth FILE to score the guesses, or --out FILE to keep them")
    with console.status("loading the model"):
        backbone = load_backbone(model, _device(device))
    found = attack_folder(
        folder,
        backbone,
        attacks or [],
        lambda what, items, n: track(items, what, n, console=console, transient=True),
        truth=truth,
        attributes=attribute or [],
        auxiliary=auxiliary,
        defense=defense,
        data=data,
        seed=seed,
    )
    for part in found.tables():
        console.print(part)
    if out is not None:
        found.write(out)
        console.print(f"written to {out}", highlight=False)
    if any(leak.status not in ("ok", "skipped") for leak in found.leaks):
        raise typer.Exit(1)


@app.command()
def show(
    source: Source,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the baselines that read nothing.")
    ] = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--best", help="One row per setting and goal: the paper's attack and the strongest."
        ),
    ] = False,
    attack: Annotated[str | None, Deciding] = None,
) -> None:
    """Show the records of a suite as a table: utility, and what each attack found.

    Examples: leakboard show smoke

    leakboard show smoke --best
    """
    from leaderboards import tables
    from leaderboards.frame import frame
    from leaderboards.frontier import deciding

    rows = frame(_records(source))
    if attack is not None:
        rows = rows[rows.index.isin(deciding(rows, attack).index) | (rows["status"] != "ok")]
    for part in tables.best(rows) if compact else tables.summary(rows, everything):
        console.print(part)


@app.command()
def export(
    source: Source,
    file: Annotated[Path, typer.Argument(help="Ends in .csv, .parquet or .json.")],
) -> None:
    """Write the records of a suite as one table, a row per cell and attack.

    `results/README.md` explains the columns. Example: leakboard export smoke smoke.csv
    """
    from leaderboards.frame import export as write
    from leaderboards.frame import frame

    table = frame(_records(source))
    write(table, file)
    console.print(f"{len(table)} rows in {file}")


@app.command()
def publish(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE|DIR]...",
            help="Suites that were run, or folders of records [default: all of results/published].",
        ),
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("site"),
) -> None:
    """Build the leaderboard as a static site, which opens from disk: no server, no network.

    Examples: leakboard publish

    leakboard publish smoke --to /tmp/site
    """
    from leaderboards.site.build import publish as build

    folders = [_folder(source) for source in sources or []]
    if not folders:
        folders = sorted(path for path in PUBLISHED.glob("*") if any(path.glob("*.json")))
    with console.status("building"):
        pages = build(folders, to)
    console.print(f"{pages} pages; open {to / 'index.html'}", highlight=False)


@app.command()
def plot(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] SUITE",
            help="tradeoff (the default), memory, training, sensitivity, bars or pca; then a suite or "
            "a folder of records.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the pictures.")] = Path("plots"),
    goal: Annotated[
        str, typer.Option(help="inversion, label, attribute, memorisation or membership.")
    ] = "inversion",
    attack: Annotated[str, Deciding] = "strongest",
    against: Annotated[
        str | None,
        typer.Option(
            help="Draw EP and utility against this instead: cut, or any parameter that was swept."
        ),
    ] = None,
) -> None:
    """Draw utility against empirical privacy, or another figure, as PNG, SVG and PDF.

    Of released models: memory (exposure of canaries under every defense).

    Of label privacy: training (leak over the steps), sensitivity (utility against leak along the
    knob), bars (both beside the paper's), pca (what was sent, coloured by label; one seed).

    Examples: leakboard plot smoke --goal label

    leakboard plot sap-table4 --against cut

    leakboard plot training p3eft-figure4
    """
    from bench.types import Goal
    from leaderboards.frame import frame
    from leaderboards.frontier import PAPER, STRONGEST, points
    from leaderboards.label_leak import KINDS as LABEL_KINDS
    from leaderboards.label_leak import draw
    from leaderboards.memory_plot import memory
    from leaderboards.plots import tradeoff
    from leaderboards.published import exposures
    from leaderboards.sweep_plot import sweep
    from leaderboards.sweeps import swept

    kinds = ["tradeoff", "memory", *LABEL_KINDS]
    kind, source = what if len(what) == 2 else ("tradeoff", what[0])
    if len(what) > 2 or kind not in kinds:
        raise LeakboardError(f"KIND: unknown '{kind}'. {did_you_mean(kind, kinds)}")
    if goal not in list(Goal):
        raise LeakboardError(f"--goal: unknown '{goal}'. {did_you_mean(goal, Goal)}")
    records = _records(source)
    if kind == "memory":
        suite = _suite(source)
        paper = suite.paper if suite else None
        theirs = exposures(paper.paper, paper.artefact, paper.model) if paper else None
        title = f"{_name(source)}: what the model remembers"
        for path in memory(records, out / f"{_name(source)}-memory", title, theirs):
            console.print(str(path), highlight=False)
        return
    rows = frame(records)
    known, more = _printed(source)
    if kind != "tradeoff":
        for path in draw(kind, records, rows, known, out, _name(source)):
            console.print(str(path), highlight=False)
        return
    named = {STRONGEST: "the strongest attack", PAPER: "the paper's attack"}.get(attack, attack)
    by = f"against {named}"
    name = "-".join([_name(source), goal, *([] if attack == STRONGEST else [attack])])
    title = f"{_name(source)}: {goal} {by}"
    if against is None:
        paths = tradeoff(points(rows, goal, attack), out / name, title, known, more)
    else:
        means = swept(rows, goal, against, attack)
        paths = sweep(means, against, out / f"{name}-by-{against}", title, known, more)
    for path in paths:
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
            help="best-privacy, front, hypervolume, cost or papers, instead of the matrix."
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(help="Points of utility that a defense may lose in the matrix.")
    ] = 3.0,
    attack: Annotated[str, Deciding] = "strongest",
) -> None:
    """Show what each defense protects, what it does not and what it costs; or one leaderboard.

    Examples: leakboard board results/published/*/

    leakboard board sap-figure2 --question best-privacy
    """
    from leaderboards import board_tables
    from leaderboards.boards import PAPERS, QUESTIONS, boards
    from leaderboards.frame import frame
    from leaderboards.matrix import matrices

    names = [*[name for name, *_ in QUESTIONS], PAPERS]
    if question is not None and question not in names:
        raise LeakboardError(f"--question: unknown '{question}'. {did_you_mean(question, names)}")
    records = [record for source in sources for record in _records(source)]
    if question is None:
        parts = [part for one in matrices(records, budget) for part in board_tables.matrix(one)]
    elif question == PAPERS:
        parts = [
            part
            for source in sources
            if (printed := _printed(source))[0] is not None
            for part in board_tables.papers(_name(source), frame(_records(source)), *printed)
        ]
        if not parts:
            raise LeakboardError("none of these suites mirrors a paper")
    else:
        found = [one for one in boards(records, attack) if one.name == question]
        parts = [part for one in found for part in board_tables.board(one)]
    if not parts:
        raise LeakboardError(
            "nothing to compare: a board needs two defenses on one task, model and setup, and among "
            "them one cell without protection, such as `none`"
        )
    for part in parts:
        console.print(part)


@app.command()
def detect(
    texts: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="presidio_synth, wnut17, a task, or a .tsv, .csv or .parquet file with a column "
            "text and, where secrets are marked, spans.",
        ),
    ],
    detector: Annotated[
        str,
        typer.Option(
            help="exact, patterns, or by spaCy: low-entity, high-entity, low-contextual, "
            "high-contextual."
        ),
    ],
    spacy: Annotated[
        str, typer.Option(help="An installed spaCy pipeline, or the folder of one.")
    ] = "en_core_web_sm",
    split: Annotated[
        str | None, typer.Option(help="Of the data [default: dev; all of a file].")
    ] = None,
    limit: Limit = None,
    data: Data = None,
) -> None:
    """Measure a secret detector: what it finds of marked secrets, and how much it masks.

    `results/README.md` explains the measures. Example: leakboard detect presidio_synth --detector
    patterns --data ~/datasets
    """
    from bench.detecting import measure

    for part in measure(texts, detector, spacy, split, limit, data):
        console.print(part)


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A registered method, or path/to/file.py.")
    ],
) -> None:
    """Check that one defense or attack keeps the rules of the house, on a tiny model.

    Example: leakboard check sap
    """
    from bench.conformance import check_method

    report = check_method(name)
    console.print(report.table())
    if not report.passed:
        raise typer.Exit(1)


new = typer.Typer(no_args_is_help=True, help="Write a working skeleton of a method and its test.")
app.add_typer(new, name="new")
Name = Annotated[str, typer.Argument(help="Lower case, words joined by '-', as in my-method.")]
Where = Annotated[
    Path | None,
    typer.Option(
        "--to", help="Write both files here [default: defenses/ or attacks/, and tests/]."
    ),
]


@new.command("defense")
def new_defense(name: Name, to: Where = None) -> None:
    """Write defenses/NAME.py and tests/test_NAME.py. Example: leakboard new defense my-noise"""
    _new("defense", name, to)


@new.command("attack")
def new_attack(name: Name, to: Where = None) -> None:
    """Write attacks/NAME.py and tests/test_NAME.py. Example: leakboard new attack my-guess"""
    _new("attack", name, to)


def _new(kind: Literal["defense", "attack"], name: str, to: Path | None) -> None:
    from bench.scaffold import write

    for path in write(kind, name, to):
        console.print(f"wrote {path}", highlight=False)
    console.print(f"Next: [bold]leakboard check {path.parent / path.name if to else name}[/]")


def _plan(
    suite: str,
    task: list[str] | None,
    model: list[str] | None,
    data: Path | None,
    device: str,
    seeds: str | None,
    limit: int | None,
    out: Path | None,
) -> tuple[Plan, Store]:
    from bench.plan import make_plan
    from bench.store import Store
    from bench.suite import load_suite

    loaded = load_suite(suite).override(
        task=task or None, model=model or None, seeds=_numbers(seeds), limit=limit
    )
    folder = out or LOCAL / loaded.name
    with console.status("loading data and models"):
        planned = make_plan(loaded, data, _device(device))
    return planned, Store(folder)


def _plan_again(
    key: str, model: str | None, data: Path | None, device: str, out: Path | None
) -> tuple[Record, Plan, Store]:
    from bench.again import find, plan_again
    from bench.store import Store

    record = find(key, [PUBLISHED, LOCAL])
    with console.status("loading data and models"):
        planned = plan_again(record, data, _device(device), model)
    return record, planned, Store(out or LOCAL / planned.suite.name)


def _records(source: str) -> list[Record]:
    from bench.store import Store
    from leaderboards.frame import in_order

    folder = _folder(source)
    store = Store(folder)
    records = store.read_all()
    for problem in store.problems:
        complaints.print(f"[yellow]left out[/] {_escaped(problem)}", soft_wrap=True)
    if not records:
        raise LeakboardError(f"{folder} holds no records. Run the suite first")
    return in_order(records)


def _folder(source: str) -> Path:
    """The folder of records that is meant by its path or by the name of its suite."""
    folder = Path(source) if Path(source).is_dir() else LOCAL / _name(source)
    if not folder.is_dir():
        raise LeakboardError(f"no records in {folder}. Run the suite first: leakboard run {source}")
    return folder


def _name(source: str) -> str:
    """The name of a folder or suite, under which its records and pictures stand."""
    if Path(source).is_dir():
        return Path(source).resolve().name
    suite = _suite(source)
    return suite.name if suite else source


def _suite(source: str) -> Suite | None:
    """The suite that a name, the path of a file or the name of a folder of records means, if any."""
    from bench.suite import load_suite, suite_names

    folder = Path(source).is_dir()
    name = Path(source).resolve().name if folder else source
    is_file = not folder and Path(source).suffix in (".yaml", ".yml")
    return load_suite(name) if is_file or name in suite_names() else None


def _printed(source: str) -> tuple[pd.DataFrame | None, str]:
    """What the paper that a suite mirrors prints, and what differs; None where it mirrors none."""
    from leaderboards.published import mirrored

    suite = _suite(source)
    return (mirrored(suite.paper), suite.paper.note) if suite and suite.paper else (None, "")


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise LeakboardError(f"--seeds: expected whole numbers as in 0,1,2, got '{text}'") from None


def _device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = name.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise LeakboardError(f"--device: expected cpu, cuda, cuda:N or auto, got '{name}'")
    if kind == "cuda" and not torch.cuda.is_available():
        raise LeakboardError("--device: no CUDA device is available here; use --device cpu")
    return name


def _escaped(text: Any) -> str:
    from rich.markup import escape

    return escape(str(text))


# It adds its commands to `app`, and needs what stands above.
import bench.cli_submissions  # noqa: E402, F401
