"""A sandbox of Linux for the process that runs a submitted method again: no network, and files that cannot be changed.

It is entered before numerical libraries are loaded, since a process with several threads cannot enter one.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import struct
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

NEW_MOUNTS, NEW_USERS, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
RECURSIVE, READ_ONLY, BIND, PRIVATE = 0x8000, 1, 4096, 1 << 18
DROP_BOUND, NO_NEW_PRIVILEGES = 24, 38
MOUNT_SETATTR, HERE = 442, -100
CAPABILITIES, VERSION_3 = 64, 0x20080522


class Words:
    """A pipe of events as JSON, so that who receives them need not unpickle what a method sent."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def send(self, event: Any) -> None:
        self.pipe.send_bytes(json.dumps(event).encode())


def enter(place: Path, hidden: Path | None = None) -> str | None:
    """Enter the sandbox; only files in one folder can then be changed.

    Args:
        hidden: a folder that is empty inside.

    Returns:
        Why there is none, or None.
    """
    if sys.platform != "linux":
        return "only Linux has it"
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    empty = place / "empty"
    empty.mkdir()
    try:
        _check(libc.unshare(NEW_USERS | NEW_MOUNTS | NEW_NETWORK))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        _set_mounts(libc, b"/", RECURSIVE, READ_ONLY, 0, PRIVATE)
        if hidden is not None:
            _check(libc.mount(os.fsencode(empty), os.fsencode(hidden), None, BIND, None))
        target = os.fsencode(place)
        _check(libc.mount(target, target, None, BIND, None))
        _set_mounts(libc, target, 0, 0, READ_ONLY, 0)
        _give_up_rights(libc)
    except OSError as error:
        return f"the system refuses it ({error.strerror or error})"
    tempfile.tempdir = os.environ["TMPDIR"] = str(place)
    return None


def _set_mounts(libc: Any, path: bytes, flags: int, *attributes: int) -> None:
    """Change attributes of mounts: those to set, those to clear, and how they propagate."""
    packed = struct.pack("=QQQQ", *attributes, 0)
    _check(libc.syscall(MOUNT_SETATTR, HERE, path, flags, packed, len(packed)))


def _give_up_rights(libc: Any) -> None:
    """Without this the process could undo what it entered."""
    _check(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(CAPABILITIES):
        libc.prctl(DROP_BOUND, capability, 0, 0, 0)  # the system has fewer
    header = ctypes.create_string_buffer(struct.pack("=Ii", VERSION_3, 0))
    _check(libc.capset(header, ctypes.create_string_buffer(24)))


def _check(outcome: int) -> None:
    if outcome:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def work_inside(pipe: Connection, place: Path, hidden: Path | None, packed: bytes) -> None:
    """Enter the sandbox, tell whether there is one, and call a pickled function with the pipe and its arguments.

    If there is none, the function runs all the same.
    """
    words = Words(pipe)
    words.send(("sandbox", enter(place, hidden)))
    work, arguments = _unpack(packed)
    work(words, *arguments)


def pack(work: Callable[..., None], *arguments: Any) -> bytes:
    """A function of a module and its arguments, to be unpickled inside."""
    return pickle.dumps((work, arguments))


def _unpack(packed: bytes) -> tuple[Callable[..., None], tuple[Any, ...]]:
    found: tuple[Callable[..., None], tuple[Any, ...]] = pickle.loads(packed)
    return found
