"""Arrays on disk, read through one memory map: what of a transcript exceeds its memory budget."""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import LeakboardError

ROOMY = Path("/var/tmp")
"""For large temporary files: /tmp itself is often held in memory."""
ALIGNED = 64
"""Bytes at whose multiples arrays start."""


class Spill:
    """A temporary file without a name, to which arrays are appended.

    Having no name it cannot be left behind: its space is free as soon as nothing refers to it or to
    an array read from it, also after an error or a kill. It lies where TMPDIR says.

    Raises:
        LeakboardError: here and in `append`, where the disk is full or cannot be written.
    """

    def __init__(self) -> None:
        folder = os.environ.get("TMPDIR") or (ROOMY if ROOMY.is_dir() else None)
        with _told():
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (open as long as this)
        weakref.finalize(self, self._file.close)  # a map keeps what it needs
        self._places: list[tuple[int, np.dtype[Any], tuple[int, ...]]] = []
        self._end = 0

    def append(self, array: NDArray[Any]) -> None:
        """Writes a copy of an array behind the others."""
        with _told():
            self._file.seek(self._end)
            self._file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
            self._file.flush()
        self._places.append((self._end, array.dtype, array.shape))
        self._end += -(-array.nbytes // ALIGNED) * ALIGNED

    def arrays(self) -> Iterator[NDArray[Any]]:
        """All arrays in the order in which they came, read-only and on disk until they are read."""
        # One map for all: each would keep a file open and take one of the system's maps.
        whole = np.asarray(np.memmap(self._file, mode="r")) if self._end else np.zeros(0, np.uint8)
        for at, dtype, shape in self._places:
            size = dtype.itemsize * math.prod(shape)
            yield whole[at : at + size].view(dtype).reshape(shape)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LeakboardError(
            f"the transcript could not be written to disk ({error.strerror or error}). Make room, "
            "let TMPDIR name a larger disk, or lower record.examples in the suite"
        ) from error
