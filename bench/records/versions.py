"""Numbered and dated versions of the published records.

A version consists of a digest for each folder of records. `versions.json` lists all versions; a release adds one.
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
from leakboard.bench.records.store import replacing

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
    """The version of the published records to which some records belong.

    Attributes:
        number, day: of the version; `day` as in 2026-11-22.
        changed: folders that were changed or added since then.
        rules: number of the rules by which its release read records, see `RULE_SENTENCES`.
    """

    number: int
    day: str
    changed: tuple[str, ...] = ()
    rules: int = RULES

    def __str__(self) -> str:
        text = f"data version {self.number} of {self.day}"
        if not self.changed:
            return text
        names = ", ".join(self.changed[:3])
        rest = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
        return f"{text}, with later changes in {names}{rest}"

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
    """Digest of the names and contents of the files in a folder of records."""
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.json")
    }
    return print_of(files)


def print_of(files: Mapping[str, str]) -> str:
    """Digest of a folder from the names and the SHA-256 of its files."""
    return digest(sorted(files.items()))


def is_entered(name: str, digits: str) -> bool:
    """Whether a folder of this name and digest belongs to a data version."""
    return any(version["folders"].get(name) == digits for version in _versions())


def data_version(prints: Mapping[str, str]) -> DataVersion | None:
    """The newest version that matches most of these folders; None if none matches.

    Args:
        prints: digest of each folder by name, see `folder_print`.
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
    """Add a version of these folders, read by today's rules, for a release.

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
