"""Folders of records in one Parquet file: so a wheel carries what a checkout has as thousands of lines.

A row is a record: its folder, its key, and its file byte for byte, so that its checksum holds and it
can be scored again. Each folder is a row group of its own, to be read without the others. The build
of a wheel loads this module by its path, where nothing is installed but pyarrow: so the rest of the
project is imported where a record is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.contracts import Record

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
    """The names of the folders in a packed file."""
    from pyarrow import parquet

    return sorted(set(parquet.read_table(file, columns=["folder"])["folder"].to_pylist()))


def unpacked(file: Path, folder: str) -> list[Record]:
    """The records of one folder, in the order in which its store has them.

    Raises:
        Corrupt: one of them is no whole and unchanged record.
    """
    from pyarrow import parquet

    from bench.records.store import MANIFEST, from_bytes

    table = parquet.read_table(file, filters=[("folder", "==", folder)])
    rows = zip(table["key"].to_pylist(), table["record"].to_pylist(), strict=True)
    where = f"{file}: {folder}"
    return [
        from_bytes(raw, key, f"{where}/{key}") for key, raw in rows if f"{key}.json" != MANIFEST
    ]
