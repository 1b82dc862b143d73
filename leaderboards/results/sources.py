"""Where records come from: folders, suites that were run, and what the installation ships."""

from __future__ import annotations

from pathlib import Path

from bench.contracts import LeakboardError, did_you_mean
from bench.records import Corrupt, Store, packed_folders, unpacked
from bench.suites import load_suite, suite_names
from leaderboards.results.places import folder_of, name_of, suite_of
from leaderboards.results.results import Results

ROOT = Path(__file__).parents[2]
CHECKOUT, SHIPPED = ROOT / "results" / "published", ROOT / "bench" / "records" / "published.parquet"
"""The published records: as files in a checkout, in one file where a wheel was installed."""


def load(*sources: str | Path) -> Results:
    """The records of folders, or of suites that were run.

    What is damaged is left out and told in `problems`.

    Raises:
        LeakboardError: none is given, one holds no records, or holds those of a later version.
    """
    if not sources:
        raise LeakboardError(
            "folders: give a folder of records, or the name of a suite that was run"
        )
    found = [_read(source) for source in sources]
    return sum(found[1:], found[0])


def _read(source: str | Path) -> Results:
    if not isinstance(source, str | Path):
        raise LeakboardError(
            f"folders: expected the path of a folder or the name of a suite, got {source!r:.60}"
        )
    store = Store(folder_of(source))
    records = store.read_all()
    if not records:
        raise LeakboardError(f"{store.folder} holds no records. Run the suite first")
    told = (name_of(source), suite_of(source), [store.folder], store.problems)
    return Results.of(records, *told)


def published(name: str | None = None) -> Results:
    """The records that this version of the project publishes.

    Args:
        name: of a suite or folder, such as 'matrix'; all of them without it.

    Raises:
        LeakboardError: nothing of that name is published, or a file is damaged.
    """
    if CHECKOUT.is_dir():
        known = sorted(path.name for path in CHECKOUT.iterdir() if any(path.glob("*.json")))
    elif SHIPPED.is_file():
        known = packed_folders(SHIPPED)
    else:
        raise LeakboardError("this installation ships no published records; install a wheel")
    if name is not None and name not in known:
        raise LeakboardError(
            f"name: nothing is published as '{name}'. {did_you_mean(str(name), known)}"
        )
    found = [_published(one) for one in known if name in (None, one)]
    return sum(found[1:], found[0]).named(name or "published")


def _published(name: str) -> Results:
    suite = load_suite(name) if name in suite_names() else None
    if CHECKOUT.is_dir():
        store = Store(CHECKOUT / name)
        return Results.of(store.read_all(), name, suite, [store.folder], store.problems)
    try:
        return Results.of(unpacked(SHIPPED, name), name, suite)
    except Corrupt as error:
        raise LeakboardError(f"{SHIPPED}: {name} is damaged ({error}); install again") from error
