"""The command `audit`: attacks on a model that is trained already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakboard.bench.cli.app import Budget, Device, app
from leakboard.bench.cli.output import All, Format, Quiet, progress_console, show_attacked


@app.command()
def audit(
    model: Annotated[
        str,
        typer.Argument(
            help="The trained model: a folder, a PEFT adapter (with --base), a name from `leakboard model list`, or a hub id."
        ),
    ],
    members: Annotated[
        Path,
        typer.Option(
            help="Texts that the model was trained on: a .txt file with one text per line, or a .csv, .tsv or .parquet file."
        ),
    ],
    others: Annotated[
        Path,
        typer.Option(help="Texts of the same kind and source that the model was not trained on."),
    ],
    base: Annotated[
        str | None,
        typer.Option(
            help="The model from which training started. An adapter needs it, and so do the strongest attacks."
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="More texts that the model was not trained on; the attack rmia compares with them."
        ),
    ] = None,
    secrets: Annotated[
        Path | None,
        typer.Option(
            help="A table with the columns text and secret, to test which secrets the model prints."
        ),
    ] = None,
    coins: Annotated[
        bool,
        typer.Option(
            "--coins",
            help="Declare that a fair coin decided whether each text is a member. The audit then proves a lower bound on ε.",
        ),
    ] = False,
    delta: Annotated[float, typer.Option(help="With --coins: the δ at which ε is bounded.")] = 1e-5,
    text: Annotated[str, typer.Option(help="Name of the column with the texts.")] = "text",
    label: Annotated[
        str, typer.Option(help="Name of the column with the labels, if the model is a classifier.")
    ] = "label",
    max_length: Annotated[
        int, typer.Option(help="Maximum number of tokens of a text; longer texts are truncated.")
    ] = 512,
    budget: Budget = 3.0,
    everything: All = False,
    form: Format = "table",
    quiet: Quiet = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--to", help="Write the results to this JSON file, for `report`."),
    ] = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed for sampling continuations.", min=0)] = 0,
) -> None:
    """Audit a trained language model or classifier: does it reveal which texts it was trained on?

    An attacker who has the model and a text infers whether the model was trained on that text.
    Give texts from the training set (members) and held-out texts from the same source (others).
    An AUC of 0.5 is a coin toss; at 1.0 the attacker tells every member from every other text.

    Examples: leakboard audit adapter/ --base dialogue-gpt --members train.txt --others heldout.txt

    leakboard audit model/ --base base/ --members train.csv --others rest.csv --secrets secrets.csv --out audit.json

    leakboard report audit.json
    """
    import leakboard

    found = leakboard.audit(
        model,
        members=members,
        others=others,
        base=base,
        public=public,
        secrets=secrets,
        coins=coins,
        delta=delta,
        text=text,
        label=label,
        max_length=max_length,
        device=device,
        seed=seed,
        progress=progress_console(form, quiet) or False,
    )
    show_attacked(found, form, out, everything, budget, quiet)
