"""Reading of (packed) table files into memory, with size limits."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_LE
from pathlib import Path

from leakboard.bench.contracts import LeakboardError

MOST_BYTES = 2**30
"""Maximum size of an unpacked file, which is read into memory."""
FLOOR, RATIO = 2**26, 100
"""Limits of unpacking: absolute size, or ratio to the packed size. Texts shrink to a third or a tenth, zeros to a
thousandth."""
MOST_ROWS, MOST_FIELDS, MOST_COLUMNS = 5_000_000, 12_000_000, 1000
"""Limits of a table; each field takes 60 bytes in addition to its characters."""


def read_bytes(path: Path) -> bytes:
    """Read a file, and unpack it if its name ends in .gz.

    Raises:
        LeakboardError: it cannot be read, is too large, or contains a NUL.
    """
    packed = path.suffix == ".gz"
    try:
        size = path.stat().st_size
        most = byte_limit(size) if packed else MOST_BYTES
        with gzip.open(path) if packed else path.open("rb") as file:
            data: bytes = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise LeakboardError(f"{path}: cannot be read ({error})") from error
    if len(data) > most:
        raise too_large(path, size, most, packed)
    data = _from_utf16(path, data)
    at = data.find(b"\0")
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise LeakboardError(
            f"{path}, line {line}: holds a NUL, as no text does; save the file as UTF-8 text"
        )
    return data


def _from_utf16(path: Path, data: bytes) -> bytes:
    """Convert data with the byte order mark of UTF-16 to UTF-8; spreadsheets save "Unicode text" so."""
    if not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or data.startswith(BOM_UTF32_LE):
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeError as error:
        raise LeakboardError(f"{path}: not UTF-16 ({error}); save the file as UTF-8") from error


def byte_limit(size: int) -> int:
    """Maximum unpacked size of a packed file."""
    return min(MOST_BYTES, max(FLOOR, RATIO * size))


def too_large(path: Path, size: int, most: int, packed: bool) -> LeakboardError:
    """Error for a file that is, or unpacks to, more than `most` bytes."""
    what = f"unpacks from {size:,} to more than" if packed else "is larger than"
    return LeakboardError(
        f"{path}: {what} {most:,} bytes; all rows are held in memory. Leave rows out"
    )


def check_size(path: Path, rows: int, columns: int) -> None:
    """Raise LeakboardError if a table has too many rows, columns or fields."""
    for number, most, what in (
        (columns, MOST_COLUMNS, "columns"),
        (rows, MOST_ROWS, "rows"),
        (rows * columns, MOST_FIELDS, "fields"),
    ):
        if number > most:
            raise LeakboardError(f"{path}: has more than {most:,} {what}; leave some out")
