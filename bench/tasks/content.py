"""Reading of (packed) table files into memory, with size limits."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_LE
from io import BytesIO
from pathlib import Path

from leakboard.bench.contracts import LeakboardError

MOST_BYTES = 2**28
"""Maximum size of an unpacked file, which is read into memory."""
MOST_HELD = 2**29
"""Maximum memory of the values of a table in bytes, by estimate; a text with one emoji takes four bytes per character."""
LONGEST_LINE = 2**25
"""Maximum length of a line in bytes, since a line is decoded at once."""
PIECE = 2**20
"""Number of bytes that are unpacked at once."""
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
        if not packed and size > most:
            raise too_large(path, size, most, packed)
        unpacked = BytesIO()
        with gzip.open(path) if packed else path.open("rb") as file:
            while unpacked.tell() <= most and (piece := file.read(PIECE)):
                unpacked.write(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise LeakboardError(f"{path}: cannot be read ({error})") from error
    if unpacked.tell() > most:
        raise too_large(path, size, most, packed)
    data = _from_utf16(path, unpacked.getvalue())
    at = data.find(b"\0")
    if at >= 0:
        raise LeakboardError(
            f"{path}, line {_line(data, at)}: contains a NUL character; save the file as UTF-8 text"
        )
    _check_lines(path, data)
    return data


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _check_lines(path: Path, data: bytes) -> None:
    """Raise LeakboardError if a line is too long; of the others only the last one within reach is searched."""
    start = 0
    while len(data) - start > LONGEST_LINE:
        end = start + LONGEST_LINE
        ends = max(data.rfind(b"\n", start, end), data.rfind(b"\r", start, end))
        if ends < 0:
            raise LeakboardError(
                f"{path}, line {_line(data, start)}: longer than {LONGEST_LINE:,} bytes; shorten the text, and "
                "write one row on each line"
            )
        start = ends + 1


def _from_utf16(path: Path, data: bytes) -> bytes:
    """Convert data with the byte order mark of UTF-16 to UTF-8; spreadsheets save "Unicode text" so."""
    if not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or data.startswith(BOM_UTF32_LE):
        return data
    if len(data) > MOST_BYTES // 2:
        raise too_large(path, len(data), MOST_BYTES // 2, packed=False)
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
        f"{path}: {what} {most:,} bytes; all rows are held in memory. Leave rows out, or split the file"
    )


def check_number(path: Path, line: int) -> None:
    """Raise LeakboardError if a file has too many lines, most of which are blank."""
    if line > 2 * MOST_ROWS:
        raise LeakboardError(
            f"{path}: has more than {2 * MOST_ROWS:,} lines; leave blank lines out"
        )


def check_held(where: str, size: float) -> None:
    """Raise LeakboardError if the values of a table take more than `MOST_HELD` bytes of memory."""
    if size > MOST_HELD:
        raise LeakboardError(
            f"{where}: up to here the table takes more than {MOST_HELD:,} bytes of memory; leave rows or columns out, "
            "or shorten texts"
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
