"""Arrays on disk, read through one memory map: what of a transcript exceeds its memory budget."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import LeakboardError

ROOMY = Path("/var/tmp")
"""For large temporary files: /tmp itself is often held in memory."""
ALIGNED = 64
"""Bytes at whose multiples arrays start."""


class Spill:
    """A temporary file without a name, to which arrays are appended.

    Having no name it cannot be left behind: its space is free as soon as nothing refers to it or to
    an array read from it, also after an error or a kill. It lies where TMPDIR says.
    """

    def __init__(self) -> None:
        folder = os.environ.get("TMPDIR") or (ROOMY if ROOMY.is_dir() else None)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (lives as long as this object)
        self._places: list[tuple[int, np.dtype[Any], tuple[int, ...]]] = []
        self._end = 0

    def append(self, array: NDArray[Any]) -> None:
        """Writes a copy of an array behind the others.

        Raises:
            LeakboardError: the disk is full.
        """
        try:
            self._file.seek(self._end)
            self._file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
            self._file.flush()
        except OSError as error:
            raise LeakboardError(
                f"the transcript could not be written to disk ({error.strerror or error}). Make "
                "room, let TMPDIR name a larger disk, or lower record.examples in the suite"
            ) from error
        self._places.append((self._end, array.dtype, array.shape))
        self._end += -(-array.nbytes // ALIGNED) * ALIGNED

    def arrays(self) -> Iterator[NDArray[Any]]:
        """All arrays in the order in which they came, read-only and on disk until they are read."""
        # One map for all: each would keep a file open and take one of the system's maps.
        used = max((at + _size(dtype, shape) for at, dtype, shape in self._places), default=0)
        whole = np.asarray(np.memmap(self._file, mode="r", shape=used) if used else b"")
        for at, dtype, shape in self._places:
            raw = whole[at : at + _size(dtype, shape)] if used else np.zeros(0, np.uint8)
            yield raw.view(dtype).reshape(shape)


def _size(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    return dtype.itemsize * int(np.prod(shape))
