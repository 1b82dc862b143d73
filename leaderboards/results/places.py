"""Folders of the records of suites."""

from __future__ import annotations

from pathlib import Path

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.suites import Suite, load_suite, suite_names

LOCAL = Path("results/local")
"""Folder of runs, each in a folder with the name of its suite."""
SUITE_FILES = (".yaml", ".yml")


def folder_of(source: str | Path) -> Path:
    """Folder of records, by its path or by the name of its suite.

    Raises:
        LeakboardError: there is none, or the source is a file that is no suite.
    """
    if Path(source).is_file() and Path(source).suffix not in SUITE_FILES:
        raise LeakboardError(
            f"{source} is not a folder of records. Give folders only: {Path(source).parent / '*'}/"
        )
    folder = Path(source) if Path(source).is_dir() else LOCAL / name_of(source)
    if not folder.is_dir():
        raise LeakboardError(f"no records in {folder}. Run the suite first: leakboard run {source}")
    return folder


def folders_of(source: str | Path) -> list[Path]:
    """Folders of records: the folder of a source, or its subfolders with records.

    Raises:
        LeakboardError: there is none.
    """
    folder = folder_of(source)
    if any(folder.glob("*.json")):
        return [folder]
    return sorted(path for path in folder.glob("*") if any(path.glob("*.json"))) or [folder]


def name_of(source: str | Path) -> str:
    """Name of a folder or suite, for its records and figures."""
    if Path(source).is_dir():
        return Path(source).resolve().name
    suite = suite_of(source)
    return str(source) if suite is None or isinstance(suite, str) else suite.name


def suite_of(source: str | Path) -> Suite | str | None:
    """The suite of a YAML file, or the name of a built-in suite with the name of the source; None if there is none."""
    folder = Path(source).is_dir()
    name = Path(source).resolve().name if folder else str(source)
    if not folder and Path(source).suffix in SUITE_FILES:
        return load_suite(name)
    return name if name in suite_names() else None
