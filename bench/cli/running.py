"""Commands that run suites: what there is, what would run, and running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakboard.bench.cli.app import (
    PUBLISHED,
    Data,
    Device,
    Evaluate,
    Limit,
    Models,
    Out,
    SeedList,
    SuiteName,
    Tasks,
    app,
    console,
    escaped,
    numbers,
    styled,
)
from leakboard.bench.contracts import LeakboardError

if TYPE_CHECKING:
    from leakboard.bench.contracts import Record


@app.command("list")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="defenses, attacks, tasks, models or suites."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="Part of a name, or of what is said of it."),
    ] = None,
) -> None:
    """Show defenses, attacks, tasks, models and suites; of those that hold a text all there is to say.

    Examples: leakboard list

    leakboard list defenses

    leakboard list attacks label
    """
    from leakboard.bench.cli import listing

    for part in listing.names() if kind is None else [listing.of_kind(kind, text)]:
        console.print(part)


@app.command()
def plan(
    suite: SuiteName,
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    seeds: SeedList = None,
    limit: Limit = None,
    evaluate: Evaluate = None,
    out: Out = None,
) -> None:
    """Show the cells of a suite, the pairs that do not fit and why, what is already done, and how long it takes.

    Example: leakboard plan smoke
    """
    from leakboard.bench.cli import listing
    from leakboard.bench.records import Store
    from leakboard.bench.running import make_plan
    from leakboard.bench.suites import load_suite
    from leakboard.leaderboards.results import LOCAL

    loaded = load_suite(suite).override(
        task=task or None,
        model=model or None,
        seeds=numbers(seeds),
        limit=limit,
        evaluate=evaluate,
    )
    with console.status("loading data and models"):
        planned = make_plan(loaded, data)
    published = PUBLISHED / loaded.name
    like = Store(published).read_all() if published.is_dir() else []
    for part in listing.plan(planned, Store(out or LOCAL / loaded.name), like):
        console.print(part)


@app.command()
def run(
    suite: Annotated[
        str | None,
        typer.Argument(
            metavar="SUITE", help="A built-in suite (see `leakboard list suites`) or a YAML file."
        ),
    ] = None,
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    device: Device = "auto",
    seeds: SeedList = None,
    limit: Limit = None,
    evaluate: Evaluate = None,
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
    workers: Annotated[
        int,
        typer.Option(min=1, help="Processes that run cells at once; they share the processors."),
    ] = 1,
    ray: Annotated[
        str | None,
        typer.Option(metavar="auto|HOST:PORT", help="Run the cells as tasks of a Ray cluster."),
    ] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(
            metavar="GIB", help="With --ray: what a cell takes of a GPU, which it shares."
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Only part I of N of the cells, as for a job array."),
    ] = None,
    attempts: Annotated[
        int, typer.Option(min=1, help="Tries for a cell at which its process dies.")
    ] = 2,
    stack: Annotated[
        int,
        typer.Option(
            min=1, metavar="K", help="Up to K cells over one model at once, in joint passes."
        ),
    ] = 1,
    log_to: Annotated[
        str | None,
        typer.Option(
            metavar="mlflow[:ADDRESS]",
            help="Log settings, curves and artefacts of each cell there (or by MLFLOW_TRACKING_URI).",
        ),
    ] = None,
) -> None:
    """Run what is missing of a suite. Interrupt it at will; the same command goes on.

    Examples: leakboard run smoke

    leakboard run sap-figure2 --data ~/datasets --task sst2 --limit 6000 --seeds 0,1,2

    leakboard run matrix --data ~/datasets --workers 4

    leakboard run smoke --log-to mlflow:sqlite:///runs.db

    leakboard run --record 8fbd72273d8adfc8 --data ~/datasets
    """
    import leakboard
    from leakboard.bench.running import Engine
    from leakboard.leaderboards.terminal import ending

    engine = Engine(workers, ray, gpu_memory, _shard(shard), attempts, stack)

    if (suite is None) == (record is None):
        raise LeakboardError("give a SUITE, or --record KEY, and not both")
    if record is not None:
        if task or seeds or limit is not None or evaluate or log_to or len(model or []) > 1:
            raise LeakboardError(
                "--record runs one cell as it was: --task, --seeds, --limit, --evaluate and --log-to do not go with it, "
                "and --model says only where its model lies"
            )
        _again(record, model[0] if model else None, data, device, out, transcripts)
        return
    results = leakboard.run(
        str(suite),
        out,
        data=data,
        device=device,
        task=task or None,
        model=model or None,
        seeds=numbers(seeds),
        limit=limit,
        evaluate=evaluate,
        transcripts=transcripts,
        workers=engine,
        progress=console,
        log_to=log_to,
    )
    _ended(results.records, results.folders[0], "" if out else str(suite), ending(results.table))


def _again(
    key: str,
    model: str | None,
    data: Path | None,
    device: str,
    out: Path | None,
    transcripts: Path | None,
) -> None:
    """Runs the cell of a record once more, and tells whether the two agree."""
    from leakboard.bench.backbones import device_of
    from leakboard.bench.records import Store, compared, find
    from leakboard.bench.running import Live, Runner, plan_again
    from leakboard.leaderboards.results import LOCAL

    before = find(key, [PUBLISHED, LOCAL])
    with console.status("loading data and models"):
        planned = plan_again(before, data, device_of(device), model)
    store = Store(out or LOCAL / planned.suite.name)
    with Live(console, len(planned.cells)) as live:
        records = Runner(planned, store, live, transcripts).run()
    told = compared(before, records[0])[1]
    _ended(records, store.folder, "" if out else planned.suite.name, [told])


def _ended(records: Sequence[Record], folder: Path, name: str, shown: Sequence[str]) -> None:
    """What stands below a run; it ends with code 1 where something broke.

    Args:
        name: by which the commands that read find the folder; '' where they do not.
        shown: what came out.
    """
    from leakboard.leaderboards.tables import count

    seeds = len({record.cell.seed for record in records})
    methods = len({record.cell.defense.name for record in records})
    console.print(
        f"{count(len(records), 'cell')} of {count(methods, 'defense')} and {count(seeds, 'seed')} "
        f"in {folder}",
        highlight=False,
    )
    for line in shown:
        console.print(line, highlight=False, markup=False)
    where = name or folder
    console.print(
        f"table: leakboard show {where}   picture: leakboard plot {where}", highlight=False
    )
    bad = [r for r in records if r.status not in ("ok", "skipped")]
    broken = [leak for r in records for leak in r.leaks if leak.status not in ("ok", "skipped")]
    for failed in bad:
        head = f"{failed.key} {failed.cell.defense.name}: {failed.status}"
        console.print(styled(f"[yellow]{escaped(head)}[/] {escaped(failed.reason)}"))
    for leak in broken:
        head = f"{leak.attack.name}: {leak.status}"
        console.print(styled(f"[yellow]{escaped(head)}[/] {escaped(leak.reason)}"))
    if bad or broken:
        raise typer.Exit(1)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal()):
        raise LeakboardError(f"--shard: expected I/N as in 2/8, got '{text}'")
    return int(number), int(parts)
