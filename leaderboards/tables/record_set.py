"""Collections of records without duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from leakboard.bench.contracts import Record
from leakboard.bench.records import collector_paused, differing, frame, sort_records
from leakboard.leaderboards.tables.printed import mirrored_points
from leakboard.leaderboards.tables.results import ResultsTable, results_table

if TYPE_CHECKING:
    import pandas as pd

    from leakboard.bench.suites import Suite


@dataclass(frozen=True, repr=False, eq=False)
class RecordSet:
    """Records of one or several runs, and their table.

    Attributes:
        records: one record per cell, in the order of tables; `results/README.md` explains each field.
        name: name of the suite or the folder.
        run: the suite that was run, or its name, if known; see `suite`.
        folders: folders of the records.
        problems: sentences about unreadable or contradictory records.
    """

    records: tuple[Record, ...]
    name: str = "records"
    run: Suite | str | None = None
    folders: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        name: str = "records",
        run: Suite | str | None = None,
        folders: Sequence[Path] = (),
        problems: Sequence[str] = (),
    ) -> Self:
        """A collection of records in any order; attacks of several records of one cell are merged.

        If two records of a cell disagree, the first one is used, and `problems` says so.
        """
        found: dict[str, Record] = {}
        sentences = list(problems)
        for record in records:
            first = found.get(record.key, record)
            if fields := [] if first is record else differing(first, record):
                sentences.append(
                    f"record {record.key} is there twice and differs in {', '.join(fields)}; the "
                    "first one counts"
                )
            else:
                found[record.key] = record if first is record else record.merged(first)
        ordered = tuple(sort_records(list(found.values())))
        return cls(ordered, name, run, tuple(folders), tuple(dict.fromkeys(sentences)))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __add__(self, other: RecordSet) -> Self:
        if not isinstance(other, RecordSet):
            return NotImplemented
        return self.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[RecordSet]) -> Self:
        """Union of several collections; its name joins the different names with a plus."""
        runs = [part.run for part in parts]
        return cls.of(
            [record for part in parts for record in part.records],
            " + ".join(dict.fromkeys(part.name for part in parts)),
            runs[0] if all(run == runs[0] for run in runs) else None,
            tuple(dict.fromkeys(folder for part in parts for folder in part.folders)),
            [problem for part in parts for problem in part.problems],
        )

    @cached_property
    def _table(self) -> pd.DataFrame:
        return frame(self.records)

    @cached_property
    def suite(self) -> Suite | None:
        """The suite that was run; figures add the numbers of the paper that it mirrors."""
        if not isinstance(self.run, str):
            return self.run
        from leakboard.bench.suites import load_suite  # it loads every method

        return load_suite(self.run)

    @cached_property
    def table(self) -> ResultsTable:
        """The results: one row for each setting and goal."""
        with collector_paused():
            return results_table(self.records)

    def frame(self) -> pd.DataFrame:
        """One row per cell and leak; `results/README.md` explains the columns."""
        return self._table.copy()

    @property
    def printed(self) -> pd.DataFrame | None:
        """Printed points of the paper that the suite mirrors; None if it mirrors none."""
        if self.suite is None or self.suite.paper is None:
            return None
        return mirrored_points(self.suite.paper).dropna(subset=["utility", "ep"], how="all")

    @cached_property
    def by_folder(self) -> dict[str, frozenset[str]]:
        """Keys of the records by folder; without folders, all keys under the name of the collection."""
        places = {folder.resolve() for folder in self.folders}
        found = {
            folder.name: frozenset(path.stem for path in folder.glob("*.json"))
            for folder in sorted(places)
        }
        return found or {self.name: frozenset(record.key for record in self.records)}
