"""Numbered and dated versions of the published records, by which a reader tells from which data a number is.

A version is a digest of each folder of records; `versions.json` has them all, and a release adds one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, digest
from leakboard.bench.records.replacing import replacing

VERSIONS = Path(__file__).with_name("versions.json")
RULES = 2
"""Number of the rules by which this program reads records; a data version names those of its release."""
RULE_SENTENCES = {
    1: "success of the strongest attack against a perfect one",
    2: "leakage against the undefended twin, cross-fitted",
}
"""For each number, how results were computed from records."""


@dataclass(frozen=True)
class DataVersion:
    """Which version of the published records some records are.

    Attributes:
        number, day: of the version; `day` as 2026-11-22.
        changed: folders that are not as they were in it, or were not there.
        rules: number of the rules by which its release read records, see `RULE_SENTENCES`.
    """

    number: int
    day: str
    changed: tuple[str, ...] = ()
    rules: int = RULES

    def __str__(self) -> str:
        told = f"data version {self.number} of {self.day}"
        if not self.changed:
            return told
        names = ", ".join(self.changed[:3])
        rest = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
        return f"{told}, changed since in {names}{rest}"

    @property
    def rules_note(self) -> str:
        """A line that says by which other rules the release of this version read records; '' for the rules of today."""
        if self.rules == RULES:
            return ""
        return (
            f"data version {self.number} was published by other rules ({RULE_SENTENCES[self.rules]}); both "
            f"sides are read here by those of today ({RULE_SENTENCES[RULES]})"
        )


def folder_print(folder: Path) -> str:
    """A digest of a folder of records: of the names and the bytes of its files."""
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.json")
    }
    return print_of(files)


def print_of(files: Mapping[str, str]) -> str:
    """The same of the names and the SHA-256 of the files."""
    return digest(sorted(files.items()))


def data_version(prints: Mapping[str, str]) -> DataVersion | None:
    """The version to which most of some folders belong, the newest of those; None where none does.

    Args:
        prints: of each folder by its name, see `folder_print`.
    """
    best: DataVersion | None = None
    for version in _versions():
        known = version["folders"]
        changed = tuple(sorted(name for name, own in prints.items() if known.get(name) != own))
        if len(changed) < len(prints) and (best is None or len(changed) <= len(best.changed)):
            rules = version.get("rules", 1)
            best = DataVersion(version["number"], version["day"], changed, rules)
    return best


def enter_version(prints: Mapping[str, str], release: str, day: date) -> DataVersion:
    """Adds a version of these folders, read by today's rules, for a release.

    Raises:
        LeakboardError: the newest version has the same folders and rules already.
    """
    versions = _versions()
    same = dict(prints)
    if versions and (versions[-1]["folders"], versions[-1].get("rules", 1)) == (same, RULES):
        raise LeakboardError(
            f"nothing has changed since data version {versions[-1]['number']} of {versions[-1]['day']}"
        )
    number = versions[-1]["number"] + 1 if versions else 1
    new = {
        "number": number,
        "day": day.isoformat(),
        "release": release,
        "rules": RULES,
        "folders": same,
    }
    with replacing(VERSIONS) as file:
        file.write_text(json.dumps([*versions, new], indent=1) + "\n", "utf-8")
    return DataVersion(number, day.isoformat())


def _versions() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(VERSIONS.read_text("utf-8"))
    return found
