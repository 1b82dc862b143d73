"""Cache folder of models that are trained or unpacked at first use."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from leakboard.bench.contracts import LeakboardError

UNFINISHED = "unfinished-"
"""Beginning of the names of folders that are being written."""
ABANDONED = 24 * 3600
"""Seconds after which an unfinished folder is one of a killed process."""


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
        raise _cache_error(model, f"{cache} cannot be created", error) from error
    try:
        _create(folder, make)
    except OSError as error:
        raise _cache_error(model, f"{folder} cannot be written", error) from error
    return folder


def _create(folder: Path, make: Callable[[Path], None]) -> None:
    """Write a folder elsewhere, flush it, and rename it, so that it is never half written."""
    for left in folder.parent.glob(f"{UNFINISHED}*"):
        with suppress(FileNotFoundError):  # another process has just renamed it
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=UNFINISHED) as unfinished:
        inside = Path(unfinished) / folder.name
        inside.mkdir()
        make(inside)
        for path in inside.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        try:
            inside.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster, with the same model
                raise


def _cache_error(model: str, what: str, error: OSError) -> LeakboardError:
    return LeakboardError(
        f"model '{model}' is stored in a cache, but {what} ({error.strerror or error}). "
        "Make room, or set XDG_CACHE_HOME to another folder"
    )
