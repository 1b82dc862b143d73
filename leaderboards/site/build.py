"""Builds the site into a folder, whole or not at all; the same records give the same bytes."""

from __future__ import annotations

import gc
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd
from plotly.offline import get_plotlyjs

from bench.contracts import LeakboardError
from leaderboards.site.collection import collect
from leaderboards.site.content import Content
from leaderboards.site.drawing import Drawing
from leaderboards.site.pages import Pages
from leaderboards.tables import export

MANIFEST = "leakboard-site.json"
"""Lists the files of a site; a folder without it was not built here and is never replaced."""


def publish(folders: Sequence[Path], to: Path) -> int:
    """Builds the site of all records in the folders and puts it in the place of an earlier one.

    Returns:
        The number of pages.

    Raises:
        LeakboardError: as `collect` and `check_place` say, or the disk cannot be written.
    """
    check_place(to)
    # Here and there a word is read from a table: Arrow would make a Python string of it each time.
    with _nothing_collected(), pd.option_context("mode.string_storage", "python"):
        collection = collect(folders)
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(dir=to.parent, prefix=f".{to.name}."))
        except OSError as error:
            raise LeakboardError(f"{to}: cannot be written ({error.strerror or error})") from error
        try:
            with Drawing() as drawing:
                n = _write(Content(collection), new, drawing)
            new.chmod(0o755)  # mkdtemp makes folders for their owner alone
            check_place(to)  # it may have come into being meanwhile
            _swap(new, to)
        except OSError as error:
            raise LeakboardError(f"{to}: the site could not be written ({error})") from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return n


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Without the garbage collector: all that is read stays, and to look through it takes seconds."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def check_place(to: Path) -> None:
    """Makes sure that nothing is lost when a site takes this place.

    Raises:
        LeakboardError: something stands there that is not a site built here, or holds other files.
    """
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise LeakboardError(f"{to}: is not a folder; choose another place with --to")
    if not to.exists() or not any(to.iterdir()):
        return
    try:
        ours = set(json.loads((to / MANIFEST).read_text("utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise LeakboardError(
            f"{to}: holds files and is not a site built by leakboard; choose another place with --to"
        ) from None
    there = {path.relative_to(to).as_posix() for path in to.rglob("*") if not path.is_dir()}
    if foreign := sorted(there - ours - {MANIFEST}):
        raise LeakboardError(
            f"{to}: holds {foreign[0]}, which leakboard did not write; move it, or choose another "
            "place with --to"
        )


def _write(content: Content, folder: Path, drawing: Drawing) -> int:
    n = 0
    drawing.begin(content, folder / "figures")
    for path, text in Pages(content).every():
        place = folder / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")
        n += 1
    for suffix in ("csv", "parquet"):
        export(content.frame, folder / "data" / f"leakboard.{suffix}")
    content.settings.to_csv(folder / "data" / "settings.csv", index=False)
    content.settings.to_parquet(folder / "data" / "settings.parquet", index=False)
    for key, found in content.collection.files.items():
        shutil.copyfile(found[0], folder / "records" / f"{key}.json")
    with as_file(files("leaderboards.site") / "assets") as assets:
        shutil.copytree(assets, folder / "assets")
    (folder / "assets" / "plotly.min.js").write_text(get_plotlyjs(), "utf-8")
    drawing.finish()
    written = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    (folder / MANIFEST).write_text(json.dumps({"files": written}, indent=0) + "\n", "utf-8")
    return n


def _swap(new: Path, to: Path) -> None:
    """Puts the new folder in the place of the old one, which comes back if that fails."""
    if not to.exists():
        new.rename(to)
        return
    old = new.with_name(new.name + ".old")
    to.rename(old)
    try:
        new.rename(to)
    except OSError:
        old.rename(to)
        raise
    shutil.rmtree(old, ignore_errors=True)
