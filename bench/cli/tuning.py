"""The command that chooses how each row of a suite is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakboard.bench.cli.app import (
    Data,
    Device,
    Evaluate,
    Limit,
    Models,
    SeedList,
    SuiteName,
    Tasks,
    app,
    complaints,
    console,
    numbers,
)

if TYPE_CHECKING:
    from rich.table import Table

    from leakboard.bench.tuning import Tuning


@app.command()
def tune(
    suite: SuiteName,
    to: Annotated[
        Path,
        typer.Option("-o", "--to", help="The .yaml file of the suite with what was chosen."),
    ],
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    device: Device = "auto",
    seeds: SeedList = None,
    limit: Limit = None,
    evaluate: Evaluate = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder of the records of the trials (default: results/local/NAME-trials).",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that run trials at once.")] = 1,
) -> None:
    """Choose how each row of a suite is trained, so that every defense is compared at its best.

    What works without noise does not work with it: learning rate, batch and epochs, and whether LoRA or a
    head alone is trained, are chosen for each row by the same budget. A fifth of the training split is held out
    for that; what the suite reports on is not looked at. The better half of the trials goes on to one
    more seed, until one is left. What a row sets itself stays: `train: {tune: lora}` keeps it at LoRA.

    All of it costs at most four times what training costs in the suite. Interrupt it at will; the same
    command goes on. Then run the suite that it wrote; its records name the trials.

    Examples: leakboard tune matrix -o tuned.yaml --data ~/datasets --task sst2

    leakboard run tuned.yaml --data ~/datasets

    leakboard show matrix-trials
    """
    import leakboard

    found = leakboard.tune(
        suite,
        to,
        out,
        data=data,
        device=device,
        workers=workers,
        progress=console,
        task=task or None,
        model=model or None,
        seeds=numbers(seeds),
        limit=limit,
        evaluate=evaluate,
    )
    console.print(_table(found))
    for note in found.notes:
        complaints.print(note, style="yellow")
    console.print(f"The suite with these choices: {to}. Run it with leakboard run {to}")


def _table(found: Tuning) -> Table:
    from rich.table import Table

    table = Table(
        "row",
        "trained by",
        "utility",
        "trials",
        title="chosen on held-out training examples",
        title_justify="left",
    )
    for choice in found.choices:
        chosen = choice.chosen
        told = choice.tuned.trained or "the suite's settings"
        best = (
            f"{chosen.utility:.3f} of {len(chosen.records)} seed{'s' * (len(chosen.records) > 1)}"
        )
        table.add_row(str(choice.row), told, best, str(len(choice.trials)))
    return table
