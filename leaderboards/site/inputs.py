"""What a site is made from: files of records, and the code that shows them, as digests."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, digest
from leakboard.bench.records import data_version, print_of
from leakboard.leaderboards.site.documents import FOLDER, Documents

PLUG_INS = ("leakboard.attacks", "leakboard.defenses")
PROJECT = tuple(f"leakboard.{name}" for name in ("attacks", "bench", "defenses", "leaderboards"))
LIBRARIES = (
    *("fonttools", "jinja2", "markupsafe", "matplotlib", "numpy", "pandas", "plotly", "pyarrow"),
    *("pydantic", "pyyaml", "scipy"),
)
"""What decides, besides the project's own code, which bytes a page, a table or a figure has."""


@dataclass(frozen=True)
class Inputs:
    """What a site is made from.

    Attributes:
        code: digest of the code.
        files: SHA-256 of each file of records and of submissions, folder by folder.
        documents: the documentation that it takes in, if any.
    """

    code: str
    files: Mapping[Path, str]
    documents: Documents | None = None

    @cached_property
    def told(self) -> list[list[str]]:
        """Of each file its folder, its name and its SHA-256, in order."""
        # The name of a folder is that of its suite, and stands on pages.
        told = [[path.parent.resolve().name, path.name, sha] for path, sha in self.files.items()]
        of_documents = self.documents.files if self.documents else {}
        # No folder has a name with a slash.
        return [*told, *([f"{FOLDER}/", path, sha] for path, sha in of_documents.items())]

    @cached_property
    def version(self) -> str:
        """Which data version these records are, in words; '' where they are of none."""
        folders: dict[str, dict[str, str]] = {}
        for path, sha in self.files.items():
            folders.setdefault(path.parent.resolve().name, {})[path.name] = sha
        return str(data_version({name: print_of(own) for name, own in folders.items()}) or "")

    @cached_property
    def all(self) -> str:
        """A digest of everything: sites of the same inputs are the same to the byte."""
        return digest([self.code, self.told])


def inputs(folders: Sequence[Path], docs: Path | None = None) -> Inputs:
    """The inputs of the site of some folders, and of a documentation that it takes in.

    Raises:
        LeakboardError: a file cannot be read, or `docs` holds no documentation.
    """
    found: dict[Path, str] = {}
    for folder in dict.fromkeys(folders):
        for path in sorted(folder.glob("*.json")):
            try:
                found[path] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as error:
                raise LeakboardError(f"{path}: cannot be read ({error.strerror})") from error
    return Inputs(version_of_code(), found, Documents.at(docs) if docs else None)


def version_of_code() -> str:
    """A digest of the project's files, those of plug-ins, and the versions of libraries."""
    plug_ins = sorted(point for group in PLUG_INS for point in entry_points(group=group))
    packages = dict.fromkeys([*PROJECT, *(point.module.split(".")[0] for point in plug_ins)])
    return digest(
        [
            sys.version,
            [[name, version(name)] for name in LIBRARIES],
            [[point.group, point.name, point.value] for point in plug_ins],
            [[name, path, sha] for name in packages for path, sha in _files_of(name)],
        ]
    )


def _files_of(package: str) -> Iterator[tuple[str, str]]:
    """Path and SHA-256 of each file of a package, or of a module by itself."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return
    origin = Path(spec.origin)
    root = origin.parent
    paths = sorted(root.rglob("*")) if spec.submodule_search_locations else [origin]
    for path in paths:
        if path.is_file() and path.suffix != ".pyc":
            yield path.relative_to(root).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()
