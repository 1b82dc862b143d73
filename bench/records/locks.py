"""One writer per cell: locks of the operating system, which end with the process that holds them.

They need a file system whose locks hold between all machines that write there: a local one, or NFS 4.
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
"""Folder of the lock files, inside that of the records. They are empty and may stay."""
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
    """Whether this process has the cell for itself, until the block ends; it never waits.

    Raises:
        LeakboardError: the folder cannot be written, or its file system knows no locks.
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
    """Makes sure that another process is kept out.

    Raises:
        LeakboardError: it is not; two workers there would lose records.
    """
    _check(folder.resolve())


@cache
def _check(folder: Path) -> None:
    with lock_cell(folder, "check") as mine:
        if not mine:  # another process holds it, as it should be possible
            return
        path = str(_lock(folder, "check").lock_file)
        other = subprocess.run([sys.executable, "-c", TAKES, path], check=False)
        if other.returncode != REFUSED:
            raise LeakboardError(
                f"{folder}: its file system does not keep two processes apart, so that records could "
                "be lost. Choose another folder with --out, on a disk of this machine or on NFS 4"
            )


def has_locks(folder: Path) -> bool:
    """Whether a run has begun there, as seen from this machine."""
    return (folder / LOCKS).is_dir()


def locks_of(folder: Path) -> Path:
    """The folder of the locks, made if need be.

    Raises:
        LeakboardError: it cannot be made.
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
    # An object for each claim, so that a claim within a claim is refused here, too.
    return FileLock(locks_of(folder) / f"{key}.lock", thread_local=False, is_singleton=False)
