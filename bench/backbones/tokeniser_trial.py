"""Trial of tokenisers from outside in a process with limits of time and memory, before they are opened in this one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakboard.bench.backbones import tokeniser_child
from leakboard.bench.contracts import LeakboardError, plain

SECONDS, WAIT = 10, 60
"""Limits of the trial: seconds of the processor, and of the clock."""
MEMORY, PER_BYTE = 2**30, 8
"""Limit of memory: so many bytes, and so many for each byte of the files."""
MOST_BYTES = 128 * 2**20
"""Largest size of a tokeniser's file."""
FILE = "tokenizer.json"
_passed: set[str] = set()


def try_tokeniser(name: str, folder: Path, seconds: int = SECONDS, memory: int = MEMORY) -> None:
    """Open a tokeniser in a process of its own, and encode texts with it.

    Args:
        folder: the files of the tokeniser; a `tokenizer.json` among them is tried alone.

    Raises:
        LeakboardError: it fails, takes too much time or memory, or can make texts far longer.
    """
    file = folder / FILE
    files = [file] if file.is_file() else sorted(p for p in folder.iterdir() if _is_word_file(p))
    sizes = [path.stat().st_size for path in files]
    if max(sizes, default=0) > MOST_BYTES:
        raise LeakboardError(
            f"model '{name}': its tokeniser has a file of more than {MOST_BYTES // 2**20} MiB"
        )
    digest = hashlib.sha256(b"".join(_digest(path) for path in files)).hexdigest()
    if digest in _passed:
        return
    place = file if file.is_file() else folder
    if wrong := _outcome(place, seconds, memory + PER_BYTE * sum(sizes)):
        raise LeakboardError(
            f"model '{name}': its tokeniser is refused ({place.name if place is file else 'in a trial'}: {wrong}). "
            "Use the tokeniser that was published with the model"
        )
    _passed.add(digest)


def _is_word_file(path: Path) -> bool:
    return path.is_file() and not path.name.endswith((".safetensors", ".safetensors.index.json"))


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _outcome(place: Path, seconds: int, memory: int) -> str:
    """What is wrong with a tokeniser, or nothing."""
    command = [sys.executable, "-P", tokeniser_child.__file__, str(place)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LEAKBOARD_")}
    added = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    limits = f"the limits are {seconds} s and {memory // 2**20:,} MiB"
    try:
        done = subprocess.run(
            [*command, str(memory), str(seconds)],
            env=kept | added,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WAIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a trial did not end within {WAIT} s"
    if done.returncode:
        return f"the process of a trial ended with code {done.returncode}; {limits}"
    return plain(done.stdout.decode("utf-8", "replace").strip(), 300)


@contextmanager
def naming_panics(name: str) -> Iterator[None]:
    """Turns an error inside a tokeniser's compiled code, which is no Exception, into a sentence."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise LeakboardError(
            f"model '{name}': its tokeniser cannot encode a text ({plain(error, 200)})"
        ) from error
