"""Records of several folders as one collection without duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.records import Store, data_version, differing, folder_print
from leakboard.bench.submissions.manifest import Manifest, accepted


@dataclass(frozen=True)
class Collection:
    """The records that a site is built from.

    Attributes:
        records: one record per cell, by key.
        files: file of each record as the site names it, such as results/published/matrix/KEY.json, by key.
        submissions: manifests of submissions that contain the record, by key.
        notes: sentences about the collection.
        version: data version of the records in words, or an empty string.
    """

    records: dict[str, Record]
    files: dict[str, str]
    submissions: dict[str, list[Manifest]]
    notes: list[str]
    version: str


def collect(folders: Sequence[Path]) -> Collection:
    """Reads all records of the folders, merges attacks on one cell, and leaves out shadow models.

    Raises:
        LeakboardError: no records, a damaged record or manifest, one of a later version, or two different records of one
            key. A site must not hide missing results.
    """
    folders = list(dict.fromkeys(folders))
    records: dict[str, Record] = {}
    paths: dict[str, Path] = {}
    submissions: dict[str, list[Manifest]] = {}
    notes = []
    for folder in folders:
        store = Store(folder)
        found = store.read_all()
        if store.problems:
            raise LeakboardError(
                "damaged records or other files; restore them or move them away:\n"
                + "\n".join(store.problems)
            )
        if not found:
            raise LeakboardError(f"{folder} holds no records")
        if all(record.utility is None for record in found):
            notes.append(
                f"No record of {folder.resolve().name} has a utility: its settings have no cost."
            )
        manifest = accepted(folder)
        for record in found:
            key, path = record.key, store.path(record.key)
            if manifest:
                submissions.setdefault(key, []).append(manifest)
            if key in records:
                record = _joined(records[key], paths[key], record, path)
            records[key] = record
            paths.setdefault(key, path)
    shown = {key: one for key, one in sorted(records.items()) if one.cell.shadow is None}
    if not shown:
        reason = "all records are of shadow models" if records else "no folder of records was found"
        raise LeakboardError(f"nothing to publish: {reason}")
    version = data_version({folder.resolve().name: folder_print(folder) for folder in folders})
    files = {key: _name_of(paths[key]) for key in shown}
    return Collection(shown, files, submissions, notes, str(version or ""))


def _name_of(path: Path) -> str:
    """Path inside of the repository, or with its folder only, since a site must not name folders of a machine."""
    parts = path.resolve().parts
    if parts[-4:-2] == ("results", "published"):
        return "/".join(parts[-4:])
    return "/".join(parts[-2:])


def _joined(first: Record, where: Path, second: Record, there: Path) -> Record:
    """Two records of one cell merged, if they agree in all common results."""
    if fields := differing(first, second):
        raise LeakboardError(
            f"{where} and {there} are records of the same cell, but differ in {', '.join(fields)}. Keep one of them"
        )
    return second.merged(first)
