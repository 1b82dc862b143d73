"""The records of several folders as one collection in which every cell stands once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.records import Store, differing
from leakboard.bench.submissions import Manifest, accepted
from leakboard.leaderboards.tables import in_order


@dataclass(frozen=True)
class Collection:
    """What a site is built from.

    Attributes:
        records: each cell once, in the order of `leakboard.leaderboards.tables.frame.in_order`; without the models that
            attackers train themselves, which are no results.
        files: by key, the files in which the cell stands.
        submitted: by key, what others said when they submitted it.
        notes: what a reader has to know of the collection as a whole.
    """

    records: list[Record]
    files: dict[str, list[Path]]
    submitted: dict[str, list[Manifest]]
    notes: list[str]

    def folders(self, key: str) -> list[str]:
        """The names of the folders, which are those of suites, that hold the cell."""
        return [path.resolve().parent.name for path in self.files[key]]

    @cached_property
    def by_folder(self) -> dict[str, list[Record]]:
        """The records of each folder."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            for name in dict.fromkeys(self.folders(record.key)):
                found.setdefault(name, []).append(record)
        return dict(sorted(found.items()))


def collect(folders: Sequence[Path], read: Container[str] = ()) -> Collection:
    """Reads all records of the folders; of one cell in several folders the attacks are joined.

    Args:
        read: SHA-256 of files that were read before and are known to be whole.

    Raises:
        LeakboardError: no records, a damaged record or manifest, one of a later version, or two of one key
            that do not say the same. A site with a hole in it would not show the hole.
    """
    names = Counter(
        path.stem for folder in dict.fromkeys(folders) for path in folder.glob("*.json")
    )
    several = {key for key, times in names.items() if times > 1}
    found: dict[str, Record] = {}
    files: dict[str, list[Path]] = {}
    submitted: dict[str, list[Manifest]] = {}
    notes = []
    for folder in dict.fromkeys(folders):
        store = Store(folder)
        records = store.read_all(read)
        if store.problems:
            raise LeakboardError(
                "damaged records; restore them or move them away:\n" + "\n".join(store.problems)
            )
        if not records:
            raise LeakboardError(f"{folder} holds no records")
        if all(record.utility is None for record in records):
            notes.append(
                f"No record of {folder.resolve().name} has a utility: its settings stand in the "
                "tables and not in the curves."
            )
        said = accepted(folder)
        for record in records:
            if said:
                submitted.setdefault(record.key, []).append(said)
            path, key = store.path(record.key), record.key
            if key in found:
                record = _joined(found[key], files[key][0], record, path)
            found[key] = record if key in several else _without_raw(record)
            files.setdefault(key, []).append(path)
    versions = sorted({record.schema_version for record in found.values()})
    if len(versions) > 1:
        told = ", ".join(map(str, versions))
        notes.append(
            f"These records were written with several versions of the schema ({told}); what an "
            "earlier one did not measure is missing."
        )
    shown = [_without_raw(record) for record in found.values() if record.cell.shadow is None]
    if not shown:
        what = "no folder of records was found" if not found else "all records are of shadow models"
        raise LeakboardError(f"nothing to publish: {what}")
    return Collection(
        in_order(shown), {record.key: files[record.key] for record in shown}, submitted, notes
    )


def _without_raw(record: Record) -> Record:
    """The record without what no page shows, which would take most of the memory."""
    leaks = [leak.model_copy(update={"raw": {}}) for leak in record.leaks]
    return record.model_copy(update={"leaks": leaks, "projections": []})


def _joined(first: Record, where: Path, second: Record, there: Path) -> Record:
    """One record of two of the same cell, if they agree in all that both measured."""
    if apart := differing(first, second):
        raise LeakboardError(
            f"{where} and {there} are records of one cell and differ in {', '.join(apart)}. "
            "Keep one of them"
        )
    return second.merged(first)
