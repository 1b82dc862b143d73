"""Datasets from the Hugging Face hub, converted to the format of dataset folders."""

from __future__ import annotations

import json
from typing import Any

from leakboard.bench.contracts import LeakboardError, MissingExtra
from leakboard.bench.tasks.assemble import assemble
from leakboard.bench.tasks.catalogue import Entry, Hub
from leakboard.bench.tasks.hub_access import hub_access
from leakboard.bench.tasks.table import Table
from leakboard.bench.tasks.task import Task

REMEDY = "put its files into a folder DIR/{name} and name it with --data DIR or LEAKBOARD_DATA"


def load_hub(entry: Entry) -> Task:
    """Download a dataset, or load it from the hub's cache. Code from the hub is never run.

    Raises:
        MissingExtra: the package `datasets` is not installed.
        LeakboardError: the hub has no faithful copy, cannot be reached or has changed its columns.
    """
    remedy = REMEDY.format(name=entry.folder)
    hub = entry.hub
    if hub is None:
        get = f"get {entry.origin}, " if entry.origin else ""
        raise LeakboardError(
            f"task '{entry.name}': the hub has no faithful copy of this dataset; {get}{remedy}"
        )
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("datasets", "hub") from error

    tables = {}
    try:
        with hub_access():  # finds out once for all splits whether the hub can be reached
            for split, theirs in hub.splits.items():
                data = datasets.load_dataset(
                    hub.repo, hub.config, data_files=hub.file, revision=hub.revision, split=theirs
                )
                where = f"{hub.repo} ({hub.config or 'default'}, {theirs})"
                tables[split] = to_table(data, hub, where)
    except LeakboardError:
        raise
    except Exception as error:  # Its network, cache and format errors have no common base.
        raise LeakboardError(
            f"task '{entry.name}': {hub.repo} could not be loaded from the hub ({error}). "
            f"Check the network, or {remedy}"
        ) from error
    if hub.tenths:
        tables |= tables["train"].divided(hub.split_by, hub.tenths, rest="train")
    return assemble(entry.name, tables, entry.layout, f"hub: {hub.repo}")


def to_table(data: Any, hub: Hub, where: str) -> Table:
    """Our columns of a split of the hub, without rows that have no text.

    Args:
        data: a `datasets.Dataset`, or anything with `column_names` and columns by name.

    Raises:
        LeakboardError: a column is missing or a label is no known class number.
    """
    columns = {}
    for ours, theirs in hub.columns.items():
        column, *path = theirs.split(".")
        if column not in data.column_names:
            raise LeakboardError(
                f"{where}: no column '{column}'; it has {', '.join(data.column_names)}"
            )
        columns[ours] = [_nested(value, path, where) for value in data[column]]
    if hub.labels:
        columns["label"] = [_label_name(value, hub.labels, where) for value in columns["label"]]
    table = Table(where, {name: _as_text(values) for name, values in columns.items()})
    return table.take([row for row, text in enumerate(table.column("text")) if text.strip()])


def _nested(value: Any, path: list[str], where: str) -> Any:
    for key in path:
        # Some versions of a dataset store the nested record as JSON text.
        try:
            record = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError) as error:
            raise LeakboardError(f"{where}: a record is not JSON ({error})") from error
        if not isinstance(record, dict) or key not in record:
            there = f"it has {', '.join(record)}" if isinstance(record, dict) else "it is no object"
            raise LeakboardError(f"{where}: no '{key}' in the record; {there}")
        value = record[key]
    return value


def _label_name(value: Any, labels: tuple[str, ...], where: str) -> str:
    if isinstance(value, str) and value in labels:
        return value
    if isinstance(value, int) and 0 <= value < len(labels):
        return labels[value]
    raise LeakboardError(f"{where}: label {value!r}; expected 0 to {len(labels) - 1}")


def _as_text(values: list[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]
