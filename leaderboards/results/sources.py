"""Sources of records: folders, suites that were run, snapshots, and the published records."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path

from leakboard.bench import __version__
from leakboard.bench.contracts import LeakboardError, Record, did_you_mean, path_of
from leakboard.bench.records import (
    Corrupt,
    DataVersion,
    Store,
    data_version,
    enter_version,
    folder_print,
    is_entered,
    pack,
    packed_folders,
    packed_print,
    replacing,
    unpacked,
)
from leakboard.bench.suites import Suite, load_suite, suite_names
from leakboard.leaderboards.results.hub import SCHEME, fetched, upload
from leakboard.leaderboards.results.results import Results
from leakboard.leaderboards.tables import Changes, changes

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT, SHIPPED = ROOT / "results" / "published", ROOT / "bench" / "records" / "published.parquet"
"""Published records: a folder in a checkout, one file in an installed wheel."""
PACKED = ".parquet"
"""Suffix of a snapshot."""
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
            f"{source} is not a folder of records, nor a snapshot ({PACKED}). "
            f"To give folders only: {Path(source).parent / '*'}/"
        )
    folder = Path(source) if Path(source).is_dir() else LOCAL / name_of(source)
    if not folder.is_dir():
        raise LeakboardError(_no_records(str(source), folder))
    return folder


def _no_records(source: str, folder: Path) -> str:
    """What to do if neither a folder nor a suite that was run has this name."""
    if suite_of(source) is None:
        if "/" in source:
            return f"{source}: no such folder"
        known = [*suite_names(), *(path.name for path in LOCAL.glob("*"))]
        near = did_you_mean(source, known, ["the suites of `leakboard list suites`"])
        return f"no folder, no suite and no run in {LOCAL} is called '{source}'. {near}"
    published = CHECKOUT / folder.name
    shown = published.relative_to(Path.cwd()) if published.is_relative_to(Path.cwd()) else published
    also = f". Published records of it: {shown}" if published.is_dir() else ""
    return f"no records in {folder}. Run the suite first: leakboard run {source}{also}"


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


def load(*sources: str | Path) -> Results:
    """Records of folders, of suites that were run, of snapshots, or of dataset repositories of the hub.

    Damaged records are left out and listed in `Results.problems`.

    Args:
        sources: folders of records, or of such folders; names of suites that were run; .parquet files of `snapshot`;
            or hf://OWNER/NAME, optionally with @REVISION.

    Raises:
        LeakboardError: no source, or a source without records or with those of a later version.
        MissingExtra: a source is a repository, and the extra 'hub' is not installed.

    Examples:
        >>> import leakboard as lb
        >>> lb.load("runs/mine")
        <Results mine: ... records; task sst2; model minilm; ...>
    """
    if not sources:
        raise LeakboardError(
            "folders: give a folder of records, or the name of a suite that was run"
        )
    loaded = [_read(source) for source in sources]
    return loaded[0] if len(loaded) == 1 else Results.joined(loaded)  # a single one has a version


def _read(source: str | Path, entered: bool = False) -> Results:
    if not isinstance(source, str | Path):
        raise LeakboardError(
            f"folders: expected the path of a folder or the name of a suite, got {source!r:.60}"
        )
    if isinstance(source, str) and source.startswith(SCHEME):
        return _of_snapshot(fetched(source), source)
    if Path(source).suffix == PACKED:
        return _of_snapshot(Path(source), Path(source).stem)
    folders, name = folders_of(source), name_of(source)
    stores = [Store(folder) for folder in folders]
    records = [record for store in stores for record in store.read_all(entered)]
    if not records:
        raise LeakboardError(
            f"{folders[0]} holds no records, and no folder in it does. `leakboard run` writes records"
        )
    problems = [problem for store in stores for problem in store.problems]
    return Results.of(records, name, suite_of(source), folders, problems)


def _of_snapshot(file: Path, name: str) -> Results:
    """All records of a packed file, with their data version."""
    try:
        folders = packed_folders(file)
        records = [record for folder in folders for record in unpacked(file, folder)]
        prints = {folder: packed_print(file, folder) for folder in folders}
    except Corrupt as error:
        raise LeakboardError(
            f"{file}: {error}; expected a snapshot, as `leakboard snapshot` writes it"
        ) from error
    return replace(Results.of(records, name), version=data_version(prints))


def published(name: str | None = None) -> Results:
    """Published records of this version of the project; their data version is `Results.version`.

    Args:
        name: name of a suite or folder, such as 'matrix'; by default all.

    Raises:
        LeakboardError: no published records have this name, or a file is damaged.

    Examples:
        >>> import leakboard as lb
        >>> lb.published("sap-sst2")
        <Results sap-sst2: ... records; task sst2; ...; data version ...>
    """
    if CHECKOUT.is_dir():
        known = sorted(path.name for path in CHECKOUT.iterdir() if any(path.glob("*.json")))
    elif SHIPPED.is_file():
        known = packed_folders(SHIPPED)
    else:
        raise LeakboardError("this installation contains no published records; install a wheel")
    if name is not None and name not in known:
        raise LeakboardError(
            f"name: nothing is published as '{name}'. {did_you_mean(str(name), known)}"
        )
    parts = {part: _published(part) for part in known if name in (None, part)}
    version = data_version({part: digits for part, (_, digits) in parts.items()})
    joined = Results.joined([own for own, _ in parts.values()])
    return replace(joined.named(name or "published"), version=version)


def earlier_records(name: str) -> list[Record]:
    """Published records of a suite, if this is a checkout that has some."""
    return Store(CHECKOUT / name).read_all()


def snapshot(to: str | Path, *sources: str | Path) -> Path:
    """Writes records byte for byte into one file, which `load` reads.

    Args:
        to: the .parquet file.
        sources: folders of records or of such folders, or suites that were run; by default the published records.

    Raises:
        LeakboardError: another suffix, no records, two folders of one name, or the file cannot be written.

    Examples:
        >>> import leakboard as lb
        >>> file = lb.snapshot("mine.parquet", "runs/mine")
        >>> lb.load(file)
        <Results mine: ...>
    """
    file = path_of("to", to)
    assert file is not None
    if file.suffix != PACKED:
        raise LeakboardError(f"to: a snapshot is one {PACKED} file; got '{file}'")
    shipped = not sources and not CHECKOUT.is_dir()
    given = () if shipped else sources or (CHECKOUT,)
    folders = [folder for source in given for folder in folders_of(source)]
    repeated = [name for name, n in Counter(folder.name for folder in folders).items() if n > 1]
    if repeated:
        raise LeakboardError(
            f"two folders are called {repeated[0]}; rename one, since a snapshot tells folders apart by name"
        )
    empty = [folder for folder in folders if not any(folder.glob("*.json"))]
    if empty:
        raise LeakboardError(f"{empty[0]} holds no records. Run the suite first")
    try:
        with replacing(file) as new:
            if shipped:
                shutil.copyfile(SHIPPED, new)
            else:
                pack(folders, new)
    except OSError as error:
        raise LeakboardError(f"{file}: cannot be written ({error.strerror or error})") from error
    return file


def push(to: str, *sources: str | Path) -> str:
    """Uploads records to a dataset repository of the Hugging Face hub, from which `load` reads them.

    Args:
        to: hf://OWNER/NAME; the repository is created if there is none.
        sources: as for `snapshot`.

    Returns:
        The address of the commit.

    Raises:
        LeakboardError: invalid address, no records, or the hub refuses the upload.
        MissingExtra: the extra 'hub' is not installed.

    Examples:
        >>> import leakboard as lb
        >>> lb.push("hf://me/records", "runs/mine")  # doctest: +SKIP
    """
    with tempfile.TemporaryDirectory() as folder:
        file = snapshot(Path(folder) / f"records{PACKED}", *sources)
        records = _of_snapshot(file, to)
        return upload(to, file, records, str(records.version or ""))


def enter(day: date) -> DataVersion:
    """Gives the published records of a checkout a new data version, for the next release.

    Raises:
        LeakboardError: not a checkout, or nothing has changed since the newest version.
    """
    if not CHECKOUT.is_dir():
        raise LeakboardError(
            "data versions can be entered only in a checkout; this is an installation"
        )
    prints = {folder.name: folder_print(folder) for folder in folders_of(CHECKOUT)}
    return enter_version(prints, __version__, day)


def _published(name: str) -> tuple[Results, str]:
    """The records of a published folder, and the digits of their content."""
    if CHECKOUT.is_dir():
        digits = folder_print(CHECKOUT / name)
        return _read(CHECKOUT / name, is_entered(name, digits)), digits
    suite = name if name in suite_names() else None
    try:
        digits = packed_print(SHIPPED, name)
        records = unpacked(SHIPPED, name, is_entered(name, digits))
        return Results.of(records, name, suite), digits
    except Corrupt as error:
        raise LeakboardError(
            f"{SHIPPED}: {name} is damaged ({error}); install leakboard again"
        ) from error


def diff(old: Results | str | Path, new: Results | str | Path | None = None) -> Changes:
    """Differences between two collections of records, setting by setting, with intervals and reasons.

    Args:
        old, new: records, or a source for `load`: a folder, a suite that was run, a snapshot, or hf://OWNER/NAME.
            `new` is by default the published records.

    Returns:
        A sequence of changes: `kind`, `setting`, `what`, `old`, `new`, `difference`, and `why` (method, data, model,
        training, seeds, attacker, code). `frame()` is their table. `note` tells if the data version of `old` was
        published by other rules.

    Raises:
        LeakboardError: see `load`.

    Examples:
        >>> import leakboard as lb
        >>> changes = lb.diff("runs/mine", lb.published("sap-sst2"))
        >>> len(changes)
        0
    """
    before = old if isinstance(old, Results) else load(old)
    after = published() if new is None else new if isinstance(new, Results) else load(new)
    note = before.version.rules_note if before.version else ""
    return replace(changes(before, after), note=note)
