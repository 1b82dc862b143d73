"""The documentation that a site takes in: its files as they were built, with a way back to the board."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from leakboard.bench.contracts import LeakboardError

FOLDER = "docs"
"""Of the documentation in a site."""
INDEX = "index.html"
ALONE = " data-board hidden"
"""On its pages: what keeps the link to the board out of sight while there is no board beside them."""


@dataclass(frozen=True)
class Documents:
    """A documentation that was built.

    Attributes:
        files: SHA-256 of each, by its path in the folder.
    """

    folder: Path
    files: Mapping[str, str]

    @classmethod
    def at(cls, folder: Path) -> Self:
        """That of a folder.

        Raises:
            LeakboardError: there is none, or a file of it cannot be read.
        """
        if not (folder / INDEX).is_file():
            raise LeakboardError(
                f"--docs: {folder} holds no {INDEX}; `tox run -e docs` builds the documentation into build/docs"
            )
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        try:
            files = {
                path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in paths
            }
        except OSError as error:
            raise LeakboardError(f"{error.filename}: cannot be read ({error.strerror})") from error
        return cls(folder, files)

    def put(self, path: str, to: Path) -> None:
        """Writes one of its files, in which the link to the board is shown."""
        own = self.folder / path
        if own.suffix == ".html":
            to.write_text(own.read_text("utf-8").replace(ALONE, ""), "utf-8")
        else:
            shutil.copyfile(own, to)
