"""Makes everything that stands in a site: figures, pages, tables, records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd
from plotly.offline import get_plotlyjs

from leakboard.bench.contracts import digest
from leakboard.leaderboards.site import pictures
from leakboard.leaderboards.site.collection import collect
from leakboard.leaderboards.site.content import Content
from leakboard.leaderboards.site.documents import FOLDER, Documents
from leakboard.leaderboards.site.draft import Draft
from leakboard.leaderboards.site.drawing import Drawing
from leakboard.leaderboards.site.inputs import Inputs
from leakboard.leaderboards.site.pages import Pages
from leakboard.leaderboards.site.prints import Prints
from leakboard.leaderboards.tables import export

KINDS = ("pdf", "png", "svg")


def make(folders: Sequence[Path], inputs: Inputs, draft: Draft, known: frozenset[str]) -> int:
    """Makes the site of some folders of records.

    Args:
        known: SHA-256 of records that were read and found whole before.

    Returns:
        The number of pages.

    Raises:
        LeakboardError: as `collect` says, or a process that drew was ended.
        OSError: the disk cannot be written.
    """
    # Here and there a word is read from a table: Arrow would make a Python string of it each time.
    with pd.option_context("mode.string_storage", "python"), Drawing() as drawing:
        content = Content(collect(folders, known))
        prints = Prints(content, inputs)
        for name, of, draw in _figures(content, prints):
            if not draft.carries(of, [f"figures/{name}.{kind}" for kind in KINDS]):
                drawing.begin(draw, draft.folder / "figures" / name)
        n = 0
        for page in Pages(content, prints).every():
            draft.page(page.path, prints.page(page.of), page.text)
            n += 1
        _tables(content, prints, draft)
        _records(content, inputs, draft)
        _assets(prints, draft)
        if inputs.documents:
            _documents(inputs.documents, prints, draft)
        drawing.finish()
    return n


def _figures(
    content: Content, prints: Prints
) -> Iterator[tuple[str, str, Callable[[Path], list[Path]]]]:
    """Each by name, its print, and what draws it.

    First those that are drawn while what the next ones show is still computed.
    """
    for picture in content.suite_pictures:
        yield picture.name, prints.picture(picture), picture.draw
    for panel in content.panels:
        yield panel.name, prints.panel(panel), partial(pictures.of_panel, panel)
    for picture in content.matrix_pictures:
        yield picture.name, prints.picture(picture), picture.draw


def _tables(content: Content, prints: Prints, draft: Draft) -> None:
    frame, settings = content.frame, content.settings
    for suffix in ("csv", "parquet"):
        if not draft.carries(prints.all, [f"data/leakboard.{suffix}"]):
            export(frame, draft.folder / "data" / f"leakboard.{suffix}")
    if not draft.carries(prints.all, ["data/settings.csv"]):
        settings.to_csv(draft.folder / "data" / "settings.csv", index=False)
    if not draft.carries(prints.all, ["data/settings.parquet"]):
        settings.to_parquet(draft.folder / "data" / "settings.parquet", index=False)


def _records(content: Content, inputs: Inputs, draft: Draft) -> None:
    """The files of the records, as they are."""
    for key, found in content.collection.files.items():
        path = f"records/{key}.json"
        if not draft.carries(inputs.files[found[0]], [path]):
            shutil.copyfile(found[0], draft.folder / path)


def _documents(given: Documents, prints: Prints, draft: Draft) -> None:
    for path, sha in given.files.items():
        own = f"{FOLDER}/{path}"
        if not draft.carries(digest([prints.code, sha]), [own]):
            given.put(path, draft.folder / own)


def _assets(prints: Prints, draft: Draft) -> None:
    with as_file(files("leakboard.leaderboards.site") / "assets") as assets:
        for asset in sorted(assets.iterdir()):
            path = f"assets/{asset.name}"
            if not draft.carries(prints.code, [path]):
                shutil.copyfile(asset, draft.folder / path)
    if not draft.carries(prints.code, ["assets/plotly.min.js"]):
        (draft.folder / "assets" / "plotly.min.js").write_text(get_plotlyjs(), "utf-8")
