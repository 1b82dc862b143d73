"""The manifest of a submission: what is said beside its records, and what verifying found out."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError

from leakboard.bench import __version__
from leakboard.bench.contracts import LeakboardError, Part, Refused, parsed, plain, visible
from leakboard.bench.records import MANIFEST

MOST_RECORDS = 2000
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Words = Annotated[str, Field(max_length=300), AfterValidator(visible)]


def _https(link: str) -> str:
    if not link:
        return link
    parts = urlsplit(link)
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc:
        raise ValueError("a link begins with https:// and a host")
    if not re.fullmatch(r"[!#-;=?-Z_a-z~\[\]]+", link):
        raise ValueError("a link holds only the characters of a URL")
    return link


class Entry(Part):
    """A record file of a submission."""

    suite: Annotated[str, Field(pattern=r"^[\w.-]{1,100}$"), AfterValidator(visible)]
    """The suite, or the folder, to which it belongs."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Verified(Part):
    """What was run again when a submission was accepted. Only `verify --accept` writes it."""

    leakboard: Words = __version__
    """Version that verified it."""
    seed: int | None = Field(None, ge=0)
    """With the records it draws the cells; none where none was to be run."""
    repeated: tuple[Key, ...] = Field((), max_length=MOST_RECORDS)
    """Cells that were run again and gave what their records say."""
    defended: bool = False
    """Whether a defended cell is among them. Without it all numbers rest on the word of the sender."""
    methods: tuple[Words, ...] = Field((), max_length=MOST_RECORDS)
    """Defenses of which no cell was run again."""
    left: dict[Words, int] = Field({}, max_length=MOST_RECORDS)
    """Why cells were not run again, and how many."""


class Manifest(Part):
    """What stands in a submission beside its records."""

    format: Literal[1] = 1
    leakboard: Annotated[str, Field(max_length=50), AfterValidator(visible)] = __version__
    """Version that packed it."""
    method: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(visible)]
    link: Annotated[str, Field(max_length=300), AfterValidator(_https)] = ""
    """Where more is said about the method: https."""
    note: Annotated[str, Field(max_length=1000), AfterValidator(visible)] = ""
    records: dict[Key, Entry] = Field(min_length=1, max_length=MOST_RECORDS)
    verified: Verified | None = None
    """What verifying found; none in what is sent, and in what was accepted before this was noted."""

    @property
    def slug(self) -> str:
        """The method as the name of a folder: lower-case letters, digits and '-'."""
        ascii = unicodedata.normalize("NFKD", self.method).encode("ascii", "ignore").decode()
        words = re.findall(r"[a-z0-9]+", ascii.lower())
        return "-".join(words)[:60].strip("-") or f"submission-{min(self.records)}"

    @property
    def content(self) -> str:
        """SHA-256 over the checksums of the records: the same for a file and the folder made of it."""
        sums = sorted(entry.sha256 for entry in self.records.values())
        return hashlib.sha256("".join(sums).encode()).hexdigest()


@dataclass(frozen=True)
class Submission:
    """A manifest and the record files that it names, by their keys."""

    manifest: Manifest
    records: dict[str, bytes]


def accepted(folder: Path) -> Manifest | None:
    """What was said with the records of a folder, if they were submitted.

    Raises:
        LeakboardError: it is there, and no manifest.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        return manifest_of(path.read_bytes(), str(path))
    except Refused as error:
        raise LeakboardError(f"{error}. Restore it, or remove it") from error


def manifest_of(raw: bytes, what: str) -> Manifest:
    """The manifest that a file holds.

    Raises:
        Refused: it is none.
    """
    try:
        return Manifest.model_validate(parsed(raw, what))
    except ValidationError as error:
        raise Refused(f"{what}: {first_of(error)}") from error


def first_of(error: ValidationError) -> str:
    """The first mistake, in a line for a terminal."""
    first = error.errors()[0]
    return plain(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
