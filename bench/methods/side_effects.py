"""Side effects of the code of methods: files, processes, connections, and changes of this package.

They are noticed by Python's audit events. Compiled code can evade these, so this finds faults and plain cheats; it is no
sandbox.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import joblib

from leakboard.bench.contracts import plain

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.remove": ("removes", 0, 1),
    "os.rename": ("replaces", 1, 3),
    "os.rmdir": ("removes", 0, 1),
    "os.truncate": ("truncates", 0, None),
    "os.link": ("links", 1, 3),
    "os.chmod": ("changes", 0, 2),
    "shutil.rmtree": ("removes", 0, 1),
}
"""Audit events about a file: a verb, and the arguments with the path and the descriptor of the folder that it starts from."""
TEMPORARY = os.path.realpath(tempfile.gettempdir())
"""Folder in which the harness removes what it made before."""
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn")
ALLOWED = ("/dev/", "/proc/self/")
_reports: list[tuple[Callable[[str], None], tuple[Path, ...]]] = []
_installed: list[bool] = []


@contextmanager
def reporting(report: Callable[[str], None], *unreadable: Path) -> Iterator[None]:
    """Reports each side effect of the code that runs inside, just before it happens.

    Files in a temporary folder, which `tempfile` uses meanwhile, and compiled modules are not reported.

    Args:
        report: given a line such as "writes /home/me/x"; what it raises prevents the side effect.
        unreadable: folders in which no file may be read, either.
    """
    if not _installed:
        joblib.cpu_count(only_physical_cores=True)  # else scikit-learn starts lscpu, once
        sys.addaudithook(_hook)  # cannot be removed again
        _installed.append(True)
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        entry = report, tuple(path.resolve() for path in unreadable)
        _reports.append(entry)
        try:
            yield
        finally:
            _reports.remove(entry)
            tempfile.tempdir = before


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _reports:
        return
    effect = None
    if event == "open":
        path, mode, flags = args
        if any(c in (mode or "") for c in "wax+") or (flags or 0) & WRITES:
            effect = f"writes {_printable(path)}" if _counts(path, follows=True) else None
        elif any(_is_inside(path, folder) for _, folders in _reports for folder in folders):
            effect = f"reads {_printable(path)}"
    elif event in CHANGES:
        verb, path_at, folder_at = CHANGES[event]
        path = args[path_at]
        folder = None if folder_at is None or len(args) <= folder_at else args[folder_at]
        if _counts(path, folder, TEMPORARY if verb == "removes" else None):
            effect = f"{verb} {_printable(path)}"
    elif event in STARTS:
        effect = f"starts {_printable(args[0]) if args else 'a process'}"
    elif event == "socket.connect" and args[0].family != getattr(socket, "AF_UNIX", None):
        effect = f"connects to {plain(args[1], 80)}"
    if effect is not None:
        for report, _ in list(_reports):
            report(effect)


def _counts(
    path: Any, folder: int | None = None, allowed: str | None = None, follows: bool = False
) -> bool:
    """Whether a change of a file is a side effect.

    Args:
        folder: descriptor of the folder that a relative path starts from; the working folder if it is None or −1.
        allowed: a further folder in which it is none.
        follows: whether the change is that of the file behind a link.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        return False  # a number of an open file
    name = os.fsdecode(path)
    if folder is not None and folder >= 0:
        name = os.path.join(f"/proc/self/fd/{folder}", name)
    # An open file is that behind a link; all other changes are those of the link.
    head, tail = os.path.split(name)
    whole = os.path.realpath(name) if follows else os.path.join(os.path.realpath(head), tail)
    if whole.startswith(ALLOWED) or f"{os.sep}__pycache__{os.sep}" in whole:
        return False
    inside = {os.path.realpath(tempfile.gettempdir()), allowed or ""} - {""}
    return not any(Path(whole).is_relative_to(place) for place in inside)


def _is_inside(path: Any, folder: Path) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    return Path(os.path.realpath(os.fsdecode(path))).is_relative_to(folder)


def _printable(path: Any) -> str:
    return plain(os.fsdecode(path) if isinstance(path, bytes) else path, 200)


def package_code() -> dict[str, CodeType]:
    """The code of each function of this package that is loaded, by module and name."""
    found: dict[str, CodeType] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("leakboard.") and module is not None:
            for attribute, value in list(vars(module).items()):
                _add(found, f"{name}.{attribute}", value)
    return found


def _add(found: dict[str, CodeType], name: str, value: Any) -> None:
    if isinstance(value, FunctionType):
        found[name] = value.__code__
    elif isinstance(value, dict):  # a table of functions
        for key, part in list(value.items()):
            if isinstance(part, FunctionType):
                found[f"{name}[{key}]"] = part.__code__
    elif isinstance(value, type) and value.__module__.startswith("leakboard."):
        for attribute, part in list(vars(value).items()):
            if isinstance(part, staticmethod | classmethod):
                part = part.__func__
            elif isinstance(part, property):
                part = part.fget
            if isinstance(part, FunctionType):
                found[f"{name}.{attribute}"] = part.__code__


def _is_same(code: CodeType, other: CodeType | None) -> bool:
    # Code is never changed in place, and equality leaves out its file.
    return code is other or (
        other is not None and code == other and code.co_filename == other.co_filename
    )


def changed_code(before: dict[str, CodeType]) -> list[str]:
    """Names of functions of this package that were replaced since `package_code` was called."""
    now = package_code()
    return sorted(name for name, value in before.items() if not _is_same(value, now.get(name)))


def loaded_package() -> dict[str, CodeType]:
    """`package_code` after importing all modules that train, attack and score."""
    import importlib
    import pkgutil

    import leakboard.bench as bench

    for info in pkgutil.walk_packages(bench.__path__, "leakboard.bench."):
        if not info.name.startswith(
            ("leakboard.bench.cli", "leakboard.bench.conformance.templates")
        ):
            with suppress(ImportError):  # an optional part
                importlib.import_module(info.name)
    return package_code()
