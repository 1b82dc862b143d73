"""Commands that attack and measure what is not a suite's: transcripts of others, detectors of secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leakboard.bench.cli.app import Data, Device, Limit, app, console
from leakboard.bench.contracts import LeakboardError

Attribute = Annotated[
    list[str] | None, typer.Option(help="A column of the truth with a private attribute.")
]
AuxiliaryText = Annotated[
    str | None, typer.Option(help="A task whose public text the attacks may know.")
]


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
    attribute: Attribute = None,
    auxiliary: AuxiliaryText = None,
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
    import leakboard

    if truth is None and out is None:
        raise LeakboardError("give --truth FILE to score the guesses, or --out FILE to keep them")
    if attribute and truth is None:
        raise LeakboardError("--attribute names a column of the truth: give --truth FILE, too")
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
        progress=console,
    )
    for part in found.tables():
        console.print(part)
    if out is not None:
        found.write(out)
        console.print(f"written to {out}", highlight=False)
    if any(leak.status not in ("ok", "skipped") for leak in found.leaks):
        raise typer.Exit(1)


@app.command()
def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR|TRANSCRIPT|JSON",
            help="Records, a transcript's folder (then --model and --truth), or what `attack --out` wrote.",
        ),
    ],
    to: Annotated[Path, typer.Option(help="The .html file.")] = Path("report.html"),
    task: Annotated[
        str | None, typer.Option(help="Compare the settings of this one, instead of the largest.")
    ] = None,
    budget: Annotated[
        float, typer.Option(help="Points of utility that protection may cost.")
    ] = 3.0,
    model: Annotated[
        str | None, typer.Option(help="Of a transcript: the public model it came from.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="Of a transcript: what was sent, as for `attack`.")
    ] = None,
    attribute: Attribute = None,
    auxiliary: AuxiliaryText = None,
    data: Data = None,
    device: Device = "auto",
) -> None:
    """Write two pages for somebody who decides, as one HTML file that needs nothing else.

    They say what your provider can read, what helps within the budget, and what to do next. A browser prints them as
    PDF. Of a transcript they show what your own system sends; what helps comes from the published records.

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
        attacked["progress"] = console
    elif "data" in attacked:  # it may come from the environment
        del attacked["data"]
    written = leakboard.report(source, to, task=task, max_cost=budget, **attacked)
    console.print(f"written to {written}; a browser prints it as PDF", highlight=False)


@app.command()
def detect(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="presidio_synth, wnut17, a task, or a .tsv, .csv or .parquet file with a column "
            "text and, where secrets are marked, spans.",
        ),
    ],
    detector: Annotated[
        str | None,
        typer.Option(
            help="exact, patterns, presidio, or by spaCy: low-entity, high-entity, low-contextual, "
            "high-contextual. Without it, all side by side."
        ),
    ] = None,
    spacy: Annotated[
        str, typer.Option(help="An installed spaCy pipeline, or the folder of one.")
    ] = "en_core_web_sm",
    split: Annotated[
        str | None, typer.Option(help="Of the data (default: dev; all of a file).")
    ] = None,
    limit: Limit = None,
    data: Data = None,
) -> None:
    """Measure secret detectors: what they find of marked secrets, and how much they mask.

    `results/README.md` explains the measures. Example: leakboard detect presidio_synth wnut17
    --data ~/datasets
    """
    from leakboard.bench.scoring import compare_detectors, measure_detector

    if detector is None:
        for part in compare_detectors(texts, spacy, split, limit, data):
            console.print(part)
        return
    for name in texts:
        for part in measure_detector(name, detector, spacy, split, limit, data):
            console.print(part)
