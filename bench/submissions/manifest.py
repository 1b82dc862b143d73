"""The manifest of a submission: description of its records, and the result of verification."""

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
        raise ValueError("a link must begin with https:// and a host")
    if not re.fullmatch(r"[!#-;=?-Z_a-z~\[\]]+", link):
        raise ValueError("a link may contain only the characters of a URL")
    return link


class Entry(Part):
    """A record file of a submission."""

    suite: Annotated[str, Field(pattern=r"^[\w.-]{1,100}$"), AfterValidator(visible)]
    """Its suite or folder."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Verified(Part):
    """Cells that were run again when a submission was accepted. Only `verify --accept` writes it."""

    leakboard: Words = __version__
    """Version of leakboard that verified it."""
    seed: int | None = Field(None, ge=0)
    """Seed by which cells were drawn, together with the records; None if none was to be run."""
    repeated: tuple[Key, ...] = Field((), max_length=MOST_RECORDS)
    """Keys of cells that were run again and agreed with their records."""
    defended: bool = False
    """Whether a defended cell is among them."""
    methods: tuple[Words, ...] = Field((), max_length=MOST_RECORDS)
    """Defenses without a reproduced cell; their records carry `not_reproduced`."""
    left: dict[Words, int] = Field({}, max_length=MOST_RECORDS)
    """Reasons why cells were not run again, with the number of cells."""


class Manifest(Part):
    """Description of a submission, next to its records."""

    format: Literal[1] = 1
    leakboard: Annotated[str, Field(max_length=50), AfterValidator(visible)] = __version__
    """Version of leakboard that packed it."""
    method: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(visible)]
    link: Annotated[str, Field(max_length=300), AfterValidator(_https)] = ""
    """A link (https) to a description of the method."""
    note: Annotated[str, Field(max_length=1000), AfterValidator(visible)] = ""
    records: dict[Key, Entry] = Field(min_length=1, max_length=MOST_RECORDS)
    verified: Verified | None = None
    """Result of verification; None before acceptance, and in submissions accepted by early versions."""

    @property
    def slug(self) -> str:
        """The method as a folder name: lower-case letters, digits and '-'."""
        ascii = unicodedata.normalize("NFKD", self.method).encode("ascii", "ignore").decode()
        words = re.findall(r"[a-z0-9]+", ascii.lower())
        return "-".join(words)[:60].strip("-") or f"submission-{min(self.records)}"

    @property
    def content(self) -> str:
        """SHA-256 over the checksums of the records."""
        sums = sorted(entry.sha256 for entry in self.records.values())
        return hashlib.sha256("".join(sums).encode()).hexdigest()


@dataclass(frozen=True)
class Submission:
    """A manifest and its record files by key."""

    manifest: Manifest
    records: dict[str, bytes]


def accepted(folder: Path) -> Manifest | None:
    """The manifest of a folder of accepted records, or None.

    Raises:
        LeakboardError: the file is no valid manifest.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        return manifest_of(path.read_bytes(), str(path))
    except Refused as error:
        raise LeakboardError(f"{error}. Restore it, or remove it") from error


def manifest_of(raw: bytes, what: str) -> Manifest:
    """Parse a manifest.

    Raises:
        Refused: the content is no valid manifest.
    """
    try:
        return Manifest.model_validate(parsed(raw, what))
    except ValidationError as error:
        raise Refused(f"{what}: {first_of(error)}") from error


def first_of(error: ValidationError) -> str:
    """The first error, as one line."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    return plain(f"{'.'.join(map(str, first['loc']))}: {message}")
