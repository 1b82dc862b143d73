"""Locks of the operating system, so that each cell has one writer. They end with their process.

They need a file system with locks across all writing machines: a local one, or NFS 4.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from leakboard.bench.contracts import LeakboardError

LOCKS = ".locks"
"""Subfolder of the lock files in a folder of records. They are empty and may stay."""
TAKES = """
import sys
from filelock import FileLock, Timeout
try:
    FileLock(sys.argv[1]).acquire(timeout=0)
except Timeout:
    sys.exit(7)
"""
REFUSED = 7


@contextmanager
def lock_cell(folder: Path, key: str) -> Iterator[bool]:
    """Try to lock a cell until the block ends, without waiting; yields whether this process has the lock.

    Raises:
        LeakboardError: the folder cannot be written, or its file system does not support locks.
    """
    lock = _lock(folder, key)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    except (OSError, NotImplementedError) as error:
        raise LeakboardError(
            f"{lock.lock_file}: no lock could be taken ({error}). Choose another folder with --out, "
            "on a disk of this machine or on NFS 4"
        ) from error
    try:
        yield True
    finally:
        lock.release()


def check_locks(folder: Path) -> None:
    """Check that locks exclude other processes.

    Raises:
        LeakboardError: they do not, so two workers could overwrite each other's records.
    """
    _check(folder.resolve())


@cache
def _check(folder: Path) -> None:
    with lock_cell(folder, "check") as mine:
        if not mine:  # another process holds the lock, so locks work
            return
        path = str(_lock(folder, "check").lock_file)
        other = subprocess.run([sys.executable, "-c", TAKES, path], check=False)
        if other.returncode != REFUSED:
            raise LeakboardError(
                f"{folder}: file locks do not work on its file system, so records could be "
                "lost. Choose another folder with --out, on a disk of this machine or on NFS 4"
            )


def has_locks(folder: Path) -> bool:
    """Whether a run has started in the folder."""
    return (folder / LOCKS).is_dir()


def locks_of(folder: Path) -> Path:
    """The folder of the locks, created if missing.

    Raises:
        LeakboardError: it cannot be created.
    """
    place = folder / LOCKS
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LeakboardError(
            f"{folder}: cannot be written ({error.strerror or error}). Choose another folder with --out"
        ) from error
    return place


def _lock(folder: Path, key: str) -> FileLock:
    # A separate object for each lock, so that nested locks in one process are refused, too.
    return FileLock(locks_of(folder) / f"{key}.lock", thread_local=False, is_singleton=False)
