"""Folders that all processes of a test run share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock


def shared_folder(tmp_path_factory, name: str, make: Callable[[Path], object]) -> Path:
    """A new folder that `make` fills once for all workers of a test run; tests only read it."""
    place: Path = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    folder, made = place / name, place / f"{name}.made"
    with FileLock(f"{folder}.lock"):
        if not made.exists():
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
