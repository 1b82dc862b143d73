"""Commands that list, plan and run suites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import (
    PUBLISHED,
    Budget,
    Data,
    Device,
    Evaluate,
    Limit,
    Models,
    Out,
    Precisions,
    SeedList,
    SuiteName,
    Tasks,
    app,
    console,
    numbers,
)
from leakboard.bench.cli.completion import complete_kind, complete_suite
from leakboard.bench.cli.output import (
    All,
    Format,
    Quiet,
    print_json,
    progress_console,
    waiting,
)
from leakboard.bench.cli.summary import print_summary
from leakboard.bench.contracts import LeakboardError


@app.command("list")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="defenses, attacks, tasks, models or suites.",
            autocompletion=complete_kind,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="A goal such as label, or part of a name or description."
        ),
    ] = None,
    form: Format = "table",
) -> None:
    """List defenses, attacks, tasks, models and suites. With TEXT: those for a goal, or details of matching entries.

    Examples: leakboard list

    leakboard list defenses

    leakboard list attacks label
    """
    from leakboard.bench.cli import listing

    if form == "json":
        print_json(listing.catalogue() if kind is None else listing.entries(kind, text))
        return
    for part in listing.names() if kind is None else listing.kind_parts(kind, text):
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
    precision: Precisions = None,
    out: Out = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Estimate time and memory on other hardware: h200, h100, a100, l40s, l4 or epyc-core.",
        ),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME|DIR",
            help="With --on: a model instead of the suite's, such as roberta-large; only its config.json is needed.",
        ),
    ] = None,
    efficiency: Annotated[
        float,
        typer.Option(
            min=0.001, max=1, help="With --on: share of the hardware's peak rate that is reached."
        ),
    ] = 0.3,
    price: Annotated[
        float | None, typer.Option(min=0, help="With --on: price of an hour on one accelerator.")
    ] = None,
    power: Annotated[
        bool,
        typer.Option(
            help="Show which differences the suite's seeds can detect, from the spread of earlier records."
        ),
    ] = False,
    pilot: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Folders of earlier records, in addition to the suite's own records (default: the published ones).",
        ),
    ] = None,
    everything: All = False,
    why: Annotated[
        bool, typer.Option("--why", help="Show why pairs of a defense and an attack are skipped.")
    ] = False,
    form: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Show the cells of a suite, which of them are done, and how long the others will take.

    A cell is one model, fine-tuned once under one defense with one seed, and then attacked.

    Examples: leakboard plan smoke

    leakboard plan p3eft-matched --power

    leakboard plan sap-table3 --limit 67349 --seeds 0,1,2,3,4 --on h100 --as roberta-large --price 3
    """
    from leakboard.bench.backbones import architecture
    from leakboard.bench.cli import listing, powering
    from leakboard.bench.records import Store
    from leakboard.bench.running import accelerator, architecture_of, budget, make_plan
    from leakboard.bench.suites import load_suite
    from leakboard.leaderboards.results import LOCAL, earlier_records, folder_of

    loaded = load_suite(suite).override(
        task=task or None,
        model=model or None,
        seeds=numbers(seeds),
        limit=limit,
        evaluate=evaluate,
        precision=precision,
    )
    hardware = accelerator(on) if on else None
    if hardware is None and (as_ is not None or price is not None):
        raise LeakboardError(
            "--as and --price need --on, which names the hardware, such as --on h100"
        )
    with waiting("loading data and models", form, quiet):
        planned = make_plan(loaded, data)
    if hardware is not None:
        from leakboard.bench.cli.budgeting import budget_content, budget_tables

        with waiting("counting passes on a narrow model", form, quiet):
            shape = architecture(as_) if as_ else architecture_of(planned)
            budgets = budget(planned, shape, hardware, efficiency)
        if form == "json":
            print_json(budget_content(budgets))
            return
        for part in budget_tables(budgets, shape, hardware, efficiency, price):
            console.print(part)
        return
    store = Store(out or LOCAL / loaded.name)
    if pilot:
        earlier = [record for folder in pilot for record in Store(folder_of(folder)).read_all()]
    else:
        earlier = earlier_records(loaded.name)
    if power:
        with waiting("comparing earlier records", form, quiet):
            content = powering.power_content(planned, [*store.read_all(), *earlier])
        if form == "json":
            print_json(content)
            return
        for part in powering.power_tables(content):
            console.print(part)
        return
    if form == "json":
        print_json(listing.plan_content(planned, store, earlier))
        return
    for part in listing.plan(planned, store, earlier, everything, why):
        console.print(part)


@app.command()
def run(
    suite: Annotated[
        str | None,
        typer.Argument(
            metavar="SUITE",
            help="A built-in suite (see `leakboard list suites`) or a YAML file.",
            autocompletion=complete_suite,
        ),
    ] = None,
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    device: Device = "auto",
    seeds: SeedList = None,
    limit: Limit = None,
    evaluate: Evaluate = None,
    precision: Precisions = None,
    out: Out = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(help="Write the transcript of each cell to this folder, for `attack`."),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Instead of a suite: run the cell of this record in results/ again, with all its attacks.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Number of processes that run cells in parallel; they share the CPU cores."
        ),
    ] = 1,
    ray: Annotated[
        str | None,
        typer.Option(metavar="auto|HOST:PORT", help="Run the cells as tasks on a Ray cluster."),
    ] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(
            metavar="GIB", help="With --ray: GPU memory of one cell, so that cells share a GPU."
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Run only part I of N of the cells, as in a job array."),
    ] = None,
    attempts: Annotated[
        int, typer.Option(min=1, help="Number of times that a cell is tried if its process dies.")
    ] = 2,
    log_to: Annotated[
        str | None,
        typer.Option(
            metavar="mlflow[:ADDRESS]",
            help="Log the settings, curves and artefacts of each cell to MLflow (or set MLFLOW_TRACKING_URI).",
        ),
    ] = None,
    budget: Budget = 3.0,
    form: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Run the missing cells of a suite. You can interrupt the run; the same command continues it.

    Examples: leakboard run smoke

    leakboard run sap-figure2 --data ~/datasets --task sst2 --limit 6000 --seeds 0,1,2

    leakboard run matrix --data ~/datasets --workers 4

    leakboard run smoke --log-to mlflow:sqlite:///runs.db

    leakboard run --record 8fbd72273d8adfc8 --data ~/datasets
    """
    import leakboard
    from leakboard.bench.running import Engine
    from leakboard.leaderboards.terminal import ending

    engine = Engine(workers, ray, gpu_memory, _shard(shard), attempts)

    if suite is None and record is None:
        raise LeakboardError(
            "give a suite, as in `leakboard run smoke` (`leakboard list suites` names them), or --record KEY"
        )
    if suite is not None and record is not None:
        raise LeakboardError(f"--record runs one cell: leave out the suite '{suite}'")
    if record is not None:
        if (
            task
            or seeds
            or limit is not None
            or evaluate
            or precision
            or log_to
            or len(model or []) > 1
        ):
            raise LeakboardError(
                "--record runs one cell as it was: it cannot be combined with --task, --seeds, --limit, --evaluate, --precision and "
                "--log-to, and --model only names the folder of its model"
            )
        place = model[0] if model else None
        _rerun(record, place, data, device, out, transcripts, form, quiet)
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
        precision=precision,
        transcripts=transcripts,
        workers=engine,
        progress=progress_console(form, quiet) or False,
        log_to=log_to,
    )
    print_summary(
        results.records,
        results.folders[0],
        "" if out else str(suite),
        ending(results.table, budget),
        form,
    )


def _rerun(
    key: str,
    model: str | None,
    data: Path | None,
    device: str,
    out: Path | None,
    transcripts: Path | None,
    form: str,
    quiet: bool,
) -> None:
    """Run the cell of a record once more, and print whether the two records agree."""
    from leakboard.bench.backbones import device_of
    from leakboard.bench.records import Store, compare_runs, find
    from leakboard.bench.running import Runner, plan_reproduction, reporter_on
    from leakboard.leaderboards.results import LOCAL

    before = find(key, [PUBLISHED, LOCAL])
    with waiting("loading data and models", form, quiet):
        planned = plan_reproduction(before, data, device_of(device), model)
    store = Store(out or LOCAL / planned.suite.name)
    with reporter_on(progress_console(form, quiet), len(planned.cells)) as live:
        records = Runner(planned, store, live, transcripts).run()
    verdict = compare_runs(before, records[0])[1]
    print_summary(records, store.folder, "" if out else planned.suite.name, [verdict], form)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal()):
        raise LeakboardError(f"--shard: expected I/N as in 2/8, got '{text}'")
    return int(number), int(parts)
