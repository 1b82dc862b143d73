"""Folders of records in one Parquet file: so a wheel carries what a checkout has as thousands of lines.

A row is a record: its folder, its key, and its file byte for byte, so that its checksum holds and it
can be scored again. Each folder is a row group of its own, to be read without the others. The build
of a wheel loads this module by its path, where nothing is installed but pyarrow: so the rest of the
project is imported where a record is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakboard.bench.contracts import Record

COLUMNS = ("folder", "key", "record")
LEVEL = 12
"""Of zstd: beyond it, seconds buy little."""
PAGE = 2**27
"""Bytes of a page, so that the records of a folder, which are much alike, are compressed together."""


def pack(folders: Sequence[Path], file: Path) -> int:
    """Writes the records of some folders into one file and returns their number."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([("folder", pa.string()), ("key", pa.string()), ("record", pa.binary())])
    rows = 0
    file.parent.mkdir(parents=True, exist_ok=True)
    how = {"compression": "zstd", "compression_level": LEVEL, "use_dictionary": ["folder"]}
    with parquet.ParquetWriter(file, schema, data_page_size=PAGE, **how) as writer:
        for folder in sorted(folders):
            paths = sorted(folder.glob("*.json"))
            content = [[folder.name] * len(paths), [p.stem for p in paths]]
            columns = [*content, [p.read_bytes() for p in paths]]
            writer.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True)), schema), PAGE)
            rows += len(paths)
    return rows


def packed_folders(file: Path) -> list[str]:
    """The names of the folders in a packed file.

    Raises:
        Corrupt: it is no such file.
    """
    from pyarrow import ArrowInvalid, parquet

    from leakboard.bench.records.store import Corrupt

    try:
        if tuple(parquet.read_schema(file).names) != COLUMNS:
            raise Corrupt(f"a table of other columns than {', '.join(COLUMNS)}")
        return sorted(set(parquet.read_table(file, columns=["folder"])["folder"].to_pylist()))
    except (ArrowInvalid, OSError) as error:
        raise Corrupt(f"no Parquet file ({error})") from error


def packed_print(file: Path, folder: str) -> str:
    """What `folder_print` is of that folder, before it was packed."""
    from leakboard.bench.records.versions import print_of

    rows = _rows(file, folder)
    return print_of({f"{key}.json": hashlib.sha256(raw).hexdigest() for key, raw in rows})


def unpacked(file: Path, folder: str) -> list[Record]:
    """The records of one folder, in the order in which its store has them.

    Raises:
        Corrupt: one of them is no whole and unchanged record.
    """
    from leakboard.bench.records.store import MANIFEST, from_bytes

    where = f"{file}: {folder}"
    return [
        from_bytes(raw, key, f"{where}/{key}")
        for key, raw in _rows(file, folder)
        if f"{key}.json" != MANIFEST
    ]


def _rows(file: Path, folder: str) -> list[tuple[str, bytes]]:
    """Key and file of each record."""
    from pyarrow import parquet

    table = parquet.read_table(file, filters=[("folder", "==", folder)])
    return list(zip(table["key"].to_pylist(), table["record"].to_pylist(), strict=True))
