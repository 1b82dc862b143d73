"""Models that are made here once, by training or by unpacking, and kept in the user's cache folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from leakboard.bench.contracts import LeakboardError


def cached_folder(model: str, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache; where there is none, it is made, whole or not at all.

    Args:
        model: what the user calls the model, for messages.
        name: tells apart all that decides what is in the folder.
        make: writes the model into a folder, which is there and empty.

    Raises:
        LeakboardError: the cache folder cannot be written.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leakboard"
    folder = cache / name
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LeakboardError(
            f"model '{model}' is made once and kept, but {cache} cannot be made ({error}). "
            "Name another folder by XDG_CACHE_HOME"
        ) from error
    with tempfile.TemporaryDirectory(dir=cache, prefix="unfinished-") as unfinished:
        inside = Path(unfinished) / name
        inside.mkdir()
        make(inside)
        try:
            inside.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster, with the same model
                raise
    return folder
