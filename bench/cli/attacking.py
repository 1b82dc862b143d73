"""Commands that work without a suite: attack a recorded transcript, report on it, measure secret detectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leakboard.bench.cli.app import Budget, Data, Device, Limit, app, console
from leakboard.bench.cli.completion import complete_attack, complete_defense
from leakboard.bench.cli.output import (
    All,
    Format,
    Quiet,
    json_parts,
    print_json,
    progress_console,
    show_attacked,
)
from leakboard.bench.contracts import LeakboardError

Attribute = Annotated[
    list[str] | None, typer.Option(help="A column of --truth with a private attribute.")
]
AuxiliaryText = Annotated[
    str | None, typer.Option(help="A task whose public texts the attacks may use.")
]


@app.command()
def attack(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a transcript; results/README.md describes the format.")
    ],
    model: Annotated[
        str,
        typer.Option(
            help="The public model that was fine-tuned: a name from `leakboard model list`, a folder, or a hub id."
        ),
    ],
    attacks: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            help="Run only this attack, written as in a suite (default: all except the costly ones).",
            autocompletion=complete_attack,
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="Score the guesses against this .csv, .tsv, .jsonl or .parquet file: one line per example, in the order "
            "of the transcript's rows, with the columns text, label and split."
        ),
    ] = None,
    attribute: Attribute = None,
    auxiliary: AuxiliaryText = None,
    defense: Annotated[
        str | None,
        typer.Option(
            help="The defense that was used, such as 'sap: {eta: 75}', for attacks that know its mechanism.",
            autocompletion=complete_defense,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--to", help="Write scores or guesses to this JSON file."),
    ] = None,
    data: Data = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the attacks.", min=0)] = 0,
    budget: Budget = 3.0,
    everything: All = False,
    form: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Attack a transcript that was recorded from your own system. The system itself is not needed.

    Example: leakboard attack sent/ --model minilm --truth train.csv --auxiliary sst2
    """
    import leakboard

    if truth is None and out is None and form == "table":
        raise LeakboardError("give --truth FILE to score the guesses, or --out FILE to keep them")
    if attribute and truth is None:
        raise LeakboardError(
            "--attribute names a column of the --truth file; give --truth FILE as well"
        )
    found = leakboard.attack(
        folder,
        model,
        truth=truth,
        attacks=attacks or (),
        attributes=attribute or (),
        auxiliary=auxiliary,
        defense=defense,
        data=data,
        device=device,
        seed=seed,
        progress=progress_console(form, quiet) or False,
    )
    show_attacked(found, form, out, everything, budget, quiet)
    if any(leak.status not in ("ok", "skipped") for leak in found.leaks):
        raise typer.Exit(1)


@app.command()
def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR|TRANSCRIPT|JSON",
            help="Records, the folder of a transcript (with --model and --truth), or a file written by "
            "`attack --out` or `audit --out`.",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", "--out", help="The .html file to write.")] = Path(
        "report.html"
    ),
    task: Annotated[
        str | None,
        typer.Option(
            help="Compare defenses on this task (default: the one with the most records)."
        ),
    ] = None,
    budget: Budget = 3.0,
    model: Annotated[
        str | None, typer.Option(help="For a transcript: the public model that was fine-tuned.")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="For a transcript: the true texts and labels, as in `attack`."),
    ] = None,
    attribute: Attribute = None,
    auxiliary: AuxiliaryText = None,
    data: Data = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write a two-page report for decision makers, as one self-contained HTML file.

    It says what the provider can read, what helps within the budget, and what to do next.
    To get a PDF, print it from a browser.
    For a transcript, the report shows the leakage of your own system, and defenses from the published records.

    Examples: leakboard report results/published/matrix --task sst2

    leakboard report sent/ --model minilm --truth train.csv --to ours.html
    """
    import leakboard

    given: dict[str, Any] = {
        "model": model,
        "truth": truth,
        "attributes": attribute,
        "auxiliary": auxiliary,
        "data": data,
        "device": None if device == "auto" else device,
    }
    attacked = {name: value for name, value in given.items() if value}
    if (Path(source) / "manifest.json").is_file():
        attacked["progress"] = progress_console("table", quiet) or False
    elif "data" in attacked:  # it may come from the environment
        del attacked["data"]
    written = leakboard.report(source, to, task=task, max_cost=budget, **attacked)
    console.print(f"written to {written}; to get a PDF, print it from a browser", highlight=False)


@app.command()
def detect(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="presidio_synth, wnut17, a task, or a .tsv, .csv or .parquet file with a column `text` "
            "and, if secrets are marked, a column `spans`.",
        ),
    ],
    detector: Annotated[
        str | None,
        typer.Option(
            help="exact, patterns, presidio, or a level of spaCy annotations: low-entity, high-entity, "
            "low-contextual, high-contextual (default: compare all)."
        ),
    ] = None,
    spacy: Annotated[
        str, typer.Option(help="An installed spaCy pipeline, or the folder of a pipeline.")
    ] = "en_core_web_sm",
    split: Annotated[
        str | None, typer.Option(help="The split to use (default: dev; for a file, all rows).")
    ] = None,
    limit: Limit = None,
    data: Data = None,
    form: Format = "table",
) -> None:
    """Measure secret detectors: the share of marked secrets that they find, and how much text they mask.

    `results/README.md` explains the measures.

    Example: leakboard detect presidio_synth wnut17 --data ~/datasets
    """
    from leakboard.bench.scoring import compare_detectors, measure_detector

    parts = (
        compare_detectors(texts, spacy, split, limit, data)
        if detector is None
        else (
            part
            for name in texts
            for part in measure_detector(name, detector, spacy, split, limit, data)
        )
    )
    if form == "json":
        print_json(json_parts(parts))
        return
    for part in parts:
        console.print(part)
