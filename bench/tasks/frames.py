"""Data in memory and in folders of the hub: pandas frames, `datasets` objects, `save_to_disk`, `hf://` addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, MissingExtra, plain
from leakboard.bench.tasks.arrow import arrow_table, class_names
from leakboard.bench.tasks.content import MOST_BYTES, check_size, too_large
from leakboard.bench.tasks.hub_access import hub_access
from leakboard.bench.tasks.table import Rows, Table
from leakboard.bench.tasks.values import build_table

ADDRESS = "hf:/"
"""Start of an address on the hub, after conversion to a path."""
DICT_FILE, STATE_FILE, INFO_FILE = "dataset_dict.json", "state.json", "dataset_info.json"


def is_frame(value: Any) -> bool:
    """True for a pandas DataFrame or a dataset of `datasets`; neither library is imported."""
    modules = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return bool(modules & {"pandas", "datasets"}) and not isinstance(value, Mapping | str)


def frame_table(frame: Any, where: str) -> Table:
    """Convert a DataFrame or Dataset to a table.

    Raises:
        LeakboardError: it is of another type, has no rows, or see `build_table`.
    """
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        if len(set(map(str, frame.columns))) < len(frame.columns):
            raise LeakboardError(f"{where}: two columns have the same name; rename one")
        rows = Rows.counted(f"{where}, data row", range(1, len(frame) + 1))
        columns = {str(name): frame[name].tolist() for name in frame.columns}
        return _filled(build_table(where, columns, rows))
    if (
        hasattr(frame, "with_format")
        and hasattr(frame, "column_names")
        and hasattr(frame, "__len__")
    ):
        table = arrow_table(where, frame.with_format("arrow")[:])
        kinds = {
            name: getattr(feature, "feature", feature) for name, feature in frame.features.items()
        }
        names = {name: kind.names for name, kind in kinds.items() if hasattr(kind, "names")}
        return _filled(_with_class_names(table, names))
    raise LeakboardError(
        f"{where}: expected a pandas DataFrame or a datasets.Dataset, got {type(frame).__name__}; an iterable "
        "dataset has no known number of rows: take some of them first"
    )


def _with_class_names(table: Table, names: Mapping[str, Any]) -> Table:
    """The table with class names in place of class numbers."""
    columns = {
        name: ["" if v in ("", "-1") else known[int(v)] for v in table.columns[name]]
        for name, known in names.items()
        if {*table.columns.get(name, ())} <= {"", "-1", *map(str, range(len(known)))}
        and name in table.columns
    }
    lists = {
        name: [[known[i] for i in row] if isinstance(row, list) else row for row in values]
        for name, known in names.items()
        if (values := table.nested.get(name)) is not None and _are_numbers(values, len(known))
    }
    return replace(table.with_columns(columns), nested={**table.nested, **lists})


def _are_numbers(values: Sequence[Any], most: int) -> bool:
    """True for lists of class numbers, which may also be names already."""
    return all(
        type(one) is int and 0 <= one < most
        for value in values
        for one in (value if isinstance(value, list) else ())
    )


def _filled(table: Table) -> Table:
    if not table.names or not len(table):
        raise LeakboardError(f"{table.where}: has no rows")
    return table


def is_saved(folder: Path) -> bool:
    """True if `save_to_disk` wrote the folder."""
    return (folder / DICT_FILE).is_file() or (folder / STATE_FILE).is_file()


def read_saved(folder: Path) -> dict[str, Table]:
    """Read a folder that `save_to_disk` wrote: tables by split, with the key "" for a single dataset.

    Raises:
        LeakboardError: a file is missing or damaged, or is outside of the folder.
    """
    if not (folder / DICT_FILE).is_file():
        return {"": _read_saved_split(folder)}
    splits = _json(folder / DICT_FILE).get("splits")
    if not isinstance(splits, list) or not all(map(_is_name, splits)):
        raise LeakboardError(f"{folder / DICT_FILE}: expected the names of splits")
    return {split: _read_saved_split(folder / split) for split in splits}


def _read_saved_split(folder: Path) -> Table:
    import pyarrow as pa

    files = _json(folder / STATE_FILE).get("_data_files")
    names = (
        [file.get("filename") for file in files if isinstance(file, dict)]
        if isinstance(files, list)
        else []
    )
    if not names or not all(map(_is_name, names)):
        raise LeakboardError(f"{folder / STATE_FILE}: expected the names of data files")
    parts = []
    for name in names:
        path = folder / str(name)
        try:
            size = path.stat().st_size
            if size > MOST_BYTES:
                raise too_large(path, size, MOST_BYTES, packed=False)
            with pa.memory_map(str(path)) as file:
                parts.append(pa.ipc.open_stream(file).read_all())
        except (OSError, pa.ArrowException) as error:
            raise LeakboardError(f"{path}: not a readable Arrow file ({error})") from error
    table = pa.concat_tables(parts)
    check_size(folder, table.num_rows, table.num_columns)
    found = arrow_table(str(folder), table)
    info = _json(folder / INFO_FILE) if (folder / INFO_FILE).is_file() else {}
    features = info.get("features")
    return _filled(
        _with_class_names(found, class_names(features) if isinstance(features, dict) else {})
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LeakboardError(f"{path}: cannot be read ({error})") from error
    if not isinstance(found, dict):
        raise LeakboardError(f"{path}: expected a JSON object")
    return found


def _is_name(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name and name not in ("", "..")


def read_address(path: Path) -> dict[str, Table]:
    """Load the splits of `hf://datasets/OWNER/NAME`, with an optional `@REVISION` and `/CONFIG`.

    Raises:
        MissingExtra: the package `datasets` is not installed.
        LeakboardError: it is no such address, or the hub has no such dataset.
    """
    kind, *words = path.as_posix().removeprefix(ADDRESS).strip("/").split("/")
    if kind != "datasets" or len(words) not in (2, 3):
        raise LeakboardError(
            f"{plain(path)}: expected hf://datasets/OWNER/NAME, or hf://datasets/OWNER/NAME@REVISION/CONFIG"
        )
    name, _, revision = words[1].partition("@")
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("datasets", "hub") from error
    repo = f"{words[0]}/{name}"
    config = words[2] if len(words) == 3 else None
    try:
        with hub_access():
            found = datasets.load_dataset(repo, config, revision=revision or None)
    except Exception as error:  # Its network, cache and format errors have no common base.
        raise LeakboardError(
            f"{repo} could not be loaded from the hub ({plain(error)[:300]}). Check the name and the network, or give "
            "its files by their path"
        ) from error
    return {str(split): frame_table(data, f"{repo} ({split})") for split, data in found.items()}
