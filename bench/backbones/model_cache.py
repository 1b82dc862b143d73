"""Cache folder of models that are trained or unpacked at first use."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from leakboard.bench.contracts import LeakboardError


def cache_folder() -> Path:
    """The user's cache folder, which need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leakboard"


def cached_folder(model: str, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of a name in the cache; if missing, it is created atomically.

    Args:
        model: name of the model, for messages.
        name: identifies the content of the folder.
        make: writes the model into an empty folder.

    Raises:
        LeakboardError: the cache folder cannot be written.
    """
    cache = cache_folder()
    folder = cache / name
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LeakboardError(
            f"model '{model}' is stored in a cache, but {cache} cannot be created ({error}). "
            "Set XDG_CACHE_HOME to another folder"
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
