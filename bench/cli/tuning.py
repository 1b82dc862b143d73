"""The command `tune`, which chooses training settings for each row of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakboard.bench.cli.app import (
    Data,
    Device,
    Evaluate,
    Limit,
    Models,
    Precisions,
    SeedList,
    SuiteName,
    Tasks,
    app,
    complaints,
    console,
    numbers,
)
from leakboard.bench.cli.output import Format, Quiet, lines_console, print_json, progress_console

if TYPE_CHECKING:
    from rich.table import Table

    from leakboard.bench.tuning import Tuning


@app.command()
def tune(
    suite: SuiteName,
    to: Annotated[
        Path,
        typer.Option(
            "-o", "--to", help="The .yaml file to write: the suite with the chosen settings."
        ),
    ],
    task: Tasks = None,
    model: Models = None,
    data: Data = None,
    device: Device = "auto",
    seeds: SeedList = None,
    limit: Limit = None,
    evaluate: Evaluate = None,
    precision: Precisions = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for the records of the trials (default: results/local/NAME-trials).",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of processes that run trials in parallel.")
    ] = 1,
    form: Format = "table",
    quiet: Quiet = False,
    on: Annotated[
        str,
        typer.Option(
            help="Texts for the trials: public, private, or auto (public for rows with a formal guarantee, else private)."
        ),
    ] = "auto",
    one_strength: Annotated[
        bool,
        typer.Option(
            "--one-strength",
            help="Tune the middle strength of each defense, and train its other strengths with the same settings.",
        ),
    ] = False,
) -> None:
    """Choose the training settings of each row of a suite, so that every defense is compared at its best.

    Settings that work without noise often fail with it.
    So this command chooses the learning rate, batch size, epochs, and LoRA or the head alone for each row.
    It tries eight settings with two seeds each; the suite does not use these seeds.
    It compares settings on a held-out fifth of the training split, never on the split that the suite reports.
    A formal guarantee covers one training run, but not trials on private examples.
    So rows with a guarantee are tuned on public labelled texts of the task.
    What a row fixes itself is kept: with `train: {tune: lora}`, the row trains LoRA.

    Tuning takes 16 training runs for each row; with --one-strength, 16 for all strengths of a defense.
    You can interrupt it; the same command continues it.
    Then run the suite that it wrote; the records name the trials.

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
        progress=progress_console(form, quiet) or False,
        task=task or None,
        model=model or None,
        seeds=numbers(seeds),
        limit=limit,
        evaluate=evaluate,
        precision=precision,
        on=on,  # type: ignore[arg-type]
        one_strength=one_strength,
    )
    if form == "json":
        print_json({"suite": to, "settings": _rows(found), "notes": found.notes})
    else:
        console.print(_table(found))
    for note in found.notes:
        complaints.print(note, style="yellow")
    lines_console(form).print(
        f"Wrote the suite with these settings to {to}. Run it with: leakboard run {to}"
    )


def _table(found: Tuning) -> Table:
    from rich.table import Table

    table = Table(
        "row",
        "trained by",
        "utility",
        "trials",
        "on",
        title="Settings chosen on held-out training examples",
        title_justify="left",
    )
    for row in _rows(found):
        seeds, best = row["seeds"], "as the tuned strength"
        if row["utility"] is not None:
            best = f"{row['utility']:.3f} of {seeds} seed{'s' * (seeds > 1)}"
        table.add_row(row["row"], row["trained by"], best, str(row["trials"]), row["on"])
    return table


def _rows(found: Tuning) -> list[dict[str, Any]]:
    """The chosen settings of each row of the suite, and how many trials they were chosen from."""
    return [
        {
            "row": str(choice.chosen.row),
            "trained by": choice.tuned.trained or "the suite's settings",
            "utility": None if choice.alike else choice.chosen.utility,
            "seeds": len(choice.chosen.records),
            "trials": len(choice.trials),
            "on": choice.tuned_on,
        }
        for choice in found.choices
    ]
