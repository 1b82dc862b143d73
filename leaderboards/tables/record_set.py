"""Records as one collection in which every cell stands once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from leakboard.bench.contracts import Record
from leakboard.bench.records import differing
from leakboard.leaderboards.tables.comparisons import Comparison, comparisons
from leakboard.leaderboards.tables.deciding import Decided
from leakboard.leaderboards.tables.frame import frame, in_order
from leakboard.leaderboards.tables.printed import mirrored

if TYPE_CHECKING:
    import pandas as pd

    from leakboard.bench.suites import Suite


@dataclass(frozen=True, repr=False, eq=False)
class RecordSet:
    """Records of one or several runs, and their table.

    Attributes:
        records: each cell once, in the order in which tables show them. A record holds everything
            that is kept of its cell; `results/README.md` explains each field.
        name: of the suite or the folder.
        suite: what was run, where that is known; a paper that it mirrors is drawn beside it.
        folders: where the records lie.
        problems: what could not be read, or does not agree, in sentences.
    """

    records: tuple[Record, ...]
    name: str = "records"
    suite: Suite | None = None
    folders: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        name: str = "records",
        suite: Suite | None = None,
        folders: Sequence[Path] = (),
        problems: Sequence[str] = (),
    ) -> Self:
        """Records in any order; of a cell that stands in several places the attacks are joined.

        Where two records of a cell do not agree the first one stands, and `problems` says so.
        """
        found: dict[str, Record] = {}
        told = list(problems)
        for record in records:
            first = found.get(record.key, record)
            if apart := [] if first is record else differing(first, record):
                told.append(
                    f"record {record.key} is there twice and differs in {', '.join(apart)}; the "
                    "first one counts"
                )
            else:
                found[record.key] = record if first is record else record.merged(first)
        ordered = tuple(in_order(list(found.values())))
        return cls(ordered, name, suite, tuple(folders), tuple(dict.fromkeys(told)))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __add__(self, other: RecordSet) -> Self:
        if not isinstance(other, RecordSet):
            return NotImplemented
        name = self.name if self.name == other.name else f"{self.name} + {other.name}"
        suite = self.suite if self.suite == other.suite else None
        return self.of(
            [*self.records, *other.records],
            name,
            suite,
            tuple(dict.fromkeys([*self.folders, *other.folders])),
            [*self.problems, *other.problems],
        )

    @cached_property
    def _table(self) -> pd.DataFrame:
        return frame(self.records)

    @cached_property
    def compared(self) -> list[Comparison]:
        """The records in groups in which only what is alike is compared."""
        return comparisons(self.records, Decided(self._table))

    def frame(self) -> pd.DataFrame:
        """One row per cell and leak; `results/README.md` explains the columns."""
        return self._table.copy()

    @property
    def printed(self) -> pd.DataFrame | None:
        """What figures draw of the paper that the suite mirrors; None where it mirrors none."""
        if self.suite is None or self.suite.paper is None:
            return None
        return mirrored(self.suite.paper).dropna(subset=["utility", "ep"], how="all")

    @cached_property
    def by_folder(self) -> dict[str, frozenset[str]]:
        """The keys of the records of each folder; of records that lie in none those of the whole."""
        places = {folder.resolve() for folder in self.folders}
        found = {
            folder.name: frozenset(path.stem for path in folder.glob("*.json"))
            for folder in sorted(places)
        }
        return found or {self.name: frozenset(record.key for record in self.records)}
