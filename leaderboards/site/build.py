"""Builds the site into a folder, whole or not at all; the same records give the same bytes."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.site.draft import Draft
from leakboard.leaderboards.site.drawing import start
from leakboard.leaderboards.site.inputs import inputs
from leakboard.leaderboards.site.previous import Previous, check_place


class Published(NamedTuple):
    """How many pages a site has, and how many of them were built: the rest is as it was."""

    pages: int
    built: int


def publish(folders: Sequence[Path], to: Path, docs: Path | None = None) -> Published:
    """Builds the site of all records in the folders and puts it in the place of an earlier one.

    What would be the same to the byte is carried over from that one.

    Args:
        docs: a documentation that was built; the site holds it then, and each leads to the other.

    Raises:
        LeakboardError: as `collect` and `check_place` say, there is no documentation, or the disk cannot
            be written.
    """
    check_place(to)
    given, previous = inputs(folders, docs), Previous.at(to)
    if previous.shows(given):
        return Published(previous.pages, 0)
    start()  # processes that draw, which load while this one does
    from leakboard.leaderboards.site.making import make

    with _nothing_collected():
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(dir=to.parent, prefix=f".{to.name}."))
        except OSError as error:
            raise LeakboardError(f"{to}: cannot be written ({error.strerror or error})") from error
        try:
            draft = Draft(new, previous, f" ({given.version})" if given.version else "")
            n = make(folders, given, draft, previous.read(given))
            draft.finish(given)
            new.chmod(0o755)  # mkdtemp makes folders for their owner alone
            check_place(to)  # it may have come into being meanwhile
            _swap(new, to)
        except OSError as error:
            raise LeakboardError(f"{to}: the site could not be written ({error})") from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return Published(n, draft.built)


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
