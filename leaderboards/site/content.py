"""What the site shows, apart from how it stands on pages."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Record
from leakboard.bench.methods import registry
from leakboard.bench.scoring import Flags, Strengths, flags, strengths
from leakboard.leaderboards.findings import Finding, findings
from leakboard.leaderboards.site.collection import Collection
from leakboard.leaderboards.site.panels import Panel, panels
from leakboard.leaderboards.site.pictures import Picture, of_matrices, of_suites
from leakboard.leaderboards.tables import (
    SETTING,
    Comparison,
    Decided,
    Matrix,
    canonical,
    comparisons,
    frame,
    matrices,
    per_setting,
    rows_of,
    setting_of,
    settings,
    varying,
)

KINDS = ("defense", "attack")


class Content:
    """What follows from one collection of records; each part is made when it is needed."""

    def __init__(self, collection: Collection) -> None:
        self.records, self.collection = collection.records, collection

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All results, as `leakboard.leaderboards.tables.frame.frame` builds them."""
        return frame(self.records, self.strengths, self.flags)

    @cached_property
    def decided(self) -> Decided:
        """What decides in each setting."""
        return Decided(self.frame)

    @cached_property
    def settings(self) -> pd.DataFrame:
        """All settings, as `leakboard.leaderboards.tables.points.per_setting` builds them."""
        return per_setting(self.frame, self.decided)

    @cached_property
    def keys(self) -> dict[tuple[Any, ...], str]:
        """For each setting the key of its first record."""
        found: dict[tuple[Any, ...], str] = {}
        for row in rows_of(self.frame[[*SETTING, "key"]].drop_duplicates()):
            found.setdefault(setting_of(row), row["key"])
        return found

    @cached_property
    def flags(self) -> Flags:
        """What to doubt, by key and index of the leak."""
        return flags(self.records, self.strengths)

    @cached_property
    def strengths(self) -> Strengths:
        """How well the attack behind a leak works without protection, by key and index of the leak."""
        return strengths(self.records)

    @cached_property
    def compared(self) -> list[Comparison]:
        """What may be compared, of all records."""
        return comparisons(self.records, self.decided)

    @cached_property
    def matrices(self) -> list[Matrix]:
        """Defense × goal, of each comparison."""
        return matrices(self.compared)

    @cached_property
    def findings(self) -> list[Finding]:
        """What these records show, in sentences."""
        return findings(self.compared)

    @cached_property
    def panels(self) -> list[Panel]:
        """The figures of utility against privacy."""
        return panels(self.records, self.settings, self.keys)

    @cached_property
    def matrix_pictures(self) -> list[Picture]:
        """The figures of the matrices."""
        return of_matrices(self.matrices)

    @cached_property
    def suite_pictures(self) -> list[Picture]:
        """The figures of single folders."""
        return of_suites(self.collection.by_folder)

    @cached_property
    def words(self) -> dict[str, str]:
        """By key the parameters of the defense in words, those that vary within it."""
        found: dict[str, str] = {}
        for own in self.using["defense"].values():
            params = {record.key: canonical(record.cell.defense.params) for record in own}
            names = varying(params.values())
            found |= {key: settings(text, names) for key, text in params.items()}
        return found

    @cached_property
    def using(self) -> dict[str, dict[str, list[Record]]]:
        """By kind and name, the records of a method."""
        found: dict[str, dict[str, list[Record]]] = {kind: {} for kind in KINDS}
        for record in self.records:
            found["defense"].setdefault(record.cell.defense.name, []).append(record)
            for name in dict.fromkeys(leak.attack.name for leak in record.leaks):
                found["attack"].setdefault(name, []).append(record)
        return found

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks, those with most records first."""
        times = Counter(record.cell.task for record in self.records)
        return [task for task, _ in times.most_common()]

    @cached_property
    def methods(self) -> dict[str, list[str]]:
        """By kind the names of all methods that are known or that have a record."""
        known = {"defense": [*registry.defenses()], "attack": [*registry.attacks()]}
        return {kind: sorted({*known[kind], *self.using[kind]}) for kind in KINDS}
