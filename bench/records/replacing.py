"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of `path` when the block ends; after an error the old one stays.

    It can be read by everybody, unless there was one that could not.
    """
    place = Path(os.path.realpath(path))  # a link stays one
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o644)
        os.replace(name, place)
    except BaseException:
        os.unlink(name)
        raise
