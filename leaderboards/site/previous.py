"""The site that stands at a place already: what of it still holds, and whether it may be replaced."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.site.documents import FOLDER
from leakboard.leaderboards.site.inputs import Inputs

MANIFEST = "leakboard-site.json"
"""Tells of each file of a site what it was made from; a folder without it was not built here and is
never replaced."""


@dataclass(frozen=True)
class Made:
    """A file of a site.

    Attributes:
        of: a digest of all that it shows.
        sha256: of its content.
    """

    of: str
    sha256: str


@dataclass(frozen=True)
class Previous:
    """A site, by its manifest.

    Attributes:
        code: by which it was built; nothing where that is not known.
        inputs: the records that it was built from, as `Inputs.told` has them.
        files: by their paths in the folder.
    """

    folder: Path
    code: str = ""
    inputs: Sequence[Sequence[str]] = ()
    files: Mapping[str, Made] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path) -> Self:
        """The site of a folder; of one that an earlier version built nothing is known."""
        try:
            told = json.loads((folder / MANIFEST).read_text("utf-8"))
            files = {path: Made(*map(str, made)) for path, made in told["files"].items()}
            return cls(folder, str(told["code"]), list(told["inputs"]), files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(folder)

    @property
    def pages(self) -> int:
        """The number of its pages, besides those of a documentation."""
        pages = (path for path in self.files if path.endswith(".html"))
        return sum(not path.startswith(f"{FOLDER}/") for path in pages)

    def whole(self, path: str, of: str) -> bool:
        """Whether a file made from this is still what it was when it was made."""
        made, place = self.files.get(path), self.folder / path
        if made is None or made.of != of or place.is_symlink() or not place.is_file():
            return False
        return sha256(place) == made.sha256

    def shows(self, inputs: Inputs) -> bool:
        """Whether these are the inputs of the whole site, and nothing in it has changed since."""
        if self.code != inputs.code or self.inputs != inputs.told:
            return False
        return all(self.whole(path, made.of) for path, made in self.files.items())

    def read(self, inputs: Inputs) -> frozenset[str]:
        """SHA-256 of the files that this code has read before, and found whole."""
        if self.code != inputs.code:
            return frozenset()
        return frozenset(sha for _, _, sha in self.inputs)

    def hand_over(self, path: str, to: Path) -> None:
        """Puts a file into another place, by a second name for it where the disk knows such."""
        try:
            os.link(self.folder / path, to)
        except OSError:
            shutil.copyfile(self.folder / path, to)


def check_place(to: Path) -> None:
    """Makes sure that nothing is lost when a site takes this place.

    Raises:
        LeakboardError: something stands there that is not a site built here, or holds other files.
    """
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise LeakboardError(f"{to}: is not a folder; choose another place with --to")
    if not to.exists() or not any(to.iterdir()):
        return
    try:
        told: Any = json.loads((to / MANIFEST).read_text("utf-8"))
        ours = set(told["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise LeakboardError(
            f"{to}: holds files and is not a site built by leakboard; choose another place with --to"
        ) from None
    if foreign := sorted(_files_in(to) - ours - {MANIFEST}):
        raise LeakboardError(
            f"{to}: holds {foreign[0]}, which leakboard did not write; move it, or choose another "
            "place with --to"
        )


def sha256(path: Path) -> str:
    """Of the content of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
