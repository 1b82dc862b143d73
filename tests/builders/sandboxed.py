"""What a hostile method could try in the sandbox; another process imports this."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import tempfile
from pathlib import Path

NEW_USERS_AND_MOUNTS, REMOUNT, BIND, DETACH = 0x10020000, 32, 4096, 2


def attempted(work):
    """Whether something could be done."""
    try:
        work()
    except OSError:
        return False
    return True


def attempts(pipe, outside, port, hidden):
    """What a method could try, each with its outcome."""
    libc = ctypes.CDLL(None)
    pipe.send(
        {
            "a file outside": attempted(lambda: Path(outside, "new").write_text("x")),
            "a change outside": attempted(lambda: Path(outside, "there").write_text("x")),
            "a removal outside": attempted(lambda: Path(outside, "there").unlink()),
            "a hidden file": attempted(lambda: Path(hidden, "labels.tsv").read_text()),
            "memory of another process": attempted(
                lambda: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY)
            ),
            "the hidden folder back": libc.umount2(os.fsencode(hidden), DETACH) == 0,
            "a connection": attempted(lambda: socket.create_connection(("127.0.0.1", port), 2)),
            "another mount": libc.mount(b"none", b"/mnt", b"tmpfs", 0, None) == 0,
            "files that can be changed": libc.mount(None, b"/", None, REMOUNT | BIND, None) == 0,
        }
    )
    libc.unshare(NEW_USERS_AND_MOUNTS)  # what is given up must not come back
    pipe.send({"after another": libc.mount(None, b"/", None, REMOUNT | BIND, None) == 0})
    pipe.send({"read": attempted(lambda: Path(outside, "there").read_text())})
    pipe.send({"temporary": attempted(lambda: Path(tempfile.mkdtemp(), "a").write_text("x"))})


def reply(pipe, number):
    pipe.send(number)


def enter_or_fail(place):
    """Ends with 0 where the system lets this process into a sandbox."""
    from leakboard.bench.submissions.sandbox import enter

    sys.exit(enter(place) is not None)
