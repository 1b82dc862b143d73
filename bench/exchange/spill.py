"""Temporary storage on disk for the part of a transcript that exceeds its memory budget."""

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

LARGE_TMP = Path("/var/tmp")
"""Folder for large temporary files; /tmp is often in memory."""
ALIGNMENT = 64
"""Arrays start at multiples of so many bytes."""


class Spill:
    """A temporary file without a name, to which arrays are appended.

    Its space is freed as soon as nothing refers to it or to an array read from it, even after an error or a
    kill. TMPDIR names its folder.

    Raises:
        LeakboardError: here and in `append`, if the disk is full or not writable.
    """

    def __init__(self) -> None:
        folder = os.environ.get("TMPDIR") or (LARGE_TMP if LARGE_TMP.is_dir() else None)
        with _disk_errors():
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (stays open)
        weakref.finalize(self, self._file.close)  # memory maps keep their data
        self._places: list[tuple[int, np.dtype[Any], tuple[int, ...]]] = []
        self._end = 0

    def append(self, array: NDArray[Any]) -> None:
        """Appends a copy of an array."""
        with _disk_errors():
            self._file.seek(self._end)
            self._file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
            self._file.flush()
        self._places.append((self._end, array.dtype, array.shape))
        self._end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT

    def arrays(self) -> Iterator[NDArray[Any]]:
        """All arrays in order of appending, read-only and on disk until they are read."""
        # One map for all arrays, since each map uses an open file and counts against a system limit.
        whole = np.asarray(np.memmap(self._file, mode="r")) if self._end else np.zeros(0, np.uint8)
        for at, dtype, shape in self._places:
            size = dtype.itemsize * math.prod(shape)
            yield whole[at : at + size].view(dtype).reshape(shape)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LeakboardError(
            f"the transcript could not be written to disk ({error.strerror or error}). Free some space, "
            "set TMPDIR to a folder on a larger disk, or lower record.examples in the suite"
        ) from error
