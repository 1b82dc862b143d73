"""Folders of records in one Parquet file, in which wheels ship the published records.

Each row is a record: its folder, its key, and its file byte for byte, so that checksums stay valid. Each folder
is a separate row group, which can be read alone. The build of a wheel loads this module by its path with only
pyarrow installed, so other modules are imported inside functions.
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
"""Compression level of zstd; higher levels take longer and gain little."""
PAGE = 2**27
"""Bytes of a page, large enough that the similar records of a folder are compressed together."""


def pack(folders: Sequence[Path], file: Path) -> int:
    """Write the records of folders to one file, and return their number."""
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
            raise Corrupt(f"a table with columns other than {', '.join(COLUMNS)}")
        return sorted(set(parquet.read_table(file, columns=["folder"])["folder"].to_pylist()))
    except (ArrowInvalid, OSError) as error:
        raise Corrupt(f"not a Parquet file ({error})") from error


def packed_print(file: Path, folder: str) -> str:
    """The `folder_print` of a packed folder."""
    from leakboard.bench.records.versions import print_of

    rows = _rows(file, folder)
    return print_of({f"{key}.json": hashlib.sha256(raw).hexdigest() for key, raw in rows})


def unpacked(file: Path, folder: str, entered: bool = False) -> list[Record]:
    """The records of one folder, in the order of its store.

    Args:
        entered: see `from_bytes`.

    Raises:
        Corrupt: a record is incomplete or was changed.
    """
    from leakboard.bench.records.store import MANIFEST, collector_paused, from_bytes

    where = f"{file}: {folder}"
    with collector_paused():
        return [
            from_bytes(raw, key, f"{where}/{key}", entered)
            for key, raw in _rows(file, folder)
            if f"{key}.json" != MANIFEST
        ]


def _rows(file: Path, folder: str) -> list[tuple[str, bytes]]:
    """Key and file of each record."""
    from pyarrow import parquet

    table = parquet.read_table(file, filters=[("folder", "==", folder)])
    return list(zip(table["key"].to_pylist(), table["record"].to_pylist(), strict=True))
