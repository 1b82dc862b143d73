"""Where the records of a suite or a folder lie."""

from __future__ import annotations

from pathlib import Path

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.suites import Suite, load_suite, suite_names

LOCAL = Path("results/local")
"""Where runs are kept, each in a folder of its suite's name."""


def folder_of(source: str | Path) -> Path:
    """The folder of records that is meant by its path or by the name of its suite.

    Raises:
        LeakboardError: there is none.
    """
    folder = Path(source) if Path(source).is_dir() else LOCAL / name_of(source)
    if not folder.is_dir():
        raise LeakboardError(f"no records in {folder}. Run the suite first: leakboard run {source}")
    return folder


def folders_of(source: str | Path) -> list[Path]:
    """The same; of a folder that holds no records itself those inside it that do.

    Raises:
        LeakboardError: there is none.
    """
    folder = folder_of(source)
    if any(folder.glob("*.json")):
        return [folder]
    return sorted(path for path in folder.glob("*") if any(path.glob("*.json"))) or [folder]


def name_of(source: str | Path) -> str:
    """The name of a folder or suite, under which its records and pictures stand."""
    if Path(source).is_dir():
        return Path(source).resolve().name
    suite = suite_of(source)
    return str(source) if suite is None or isinstance(suite, str) else suite.name


def suite_of(source: str | Path) -> Suite | str | None:
    """The suite that the path of a file means, or that of a name or of a folder's name, by its name, if any."""
    folder = Path(source).is_dir()
    name = Path(source).resolve().name if folder else str(source)
    if not folder and Path(source).suffix in (".yaml", ".yml"):
        return load_suite(name)
    return name if name in suite_names() else None
