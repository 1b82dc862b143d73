"""Storage of records: one JSON file per cell, written atomically."""

from __future__ import annotations

import gc
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import EIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from pydantic_core import from_json

from leakboard.bench.contracts import SCHEMA, LeakboardError, Record, did_you_mean, digest
from leakboard.bench.records.locks import lock_cell, locks_of

MANIFEST = "submission.json"
"""File next to submitted records that describes the submission; it is no record."""


class Corrupt(Exception):
    """A file is not a complete, unchanged record; the message gives the reason."""


@dataclass
class Store:
    """A folder of records.

    Attributes:
        problems: one sentence per file that could not be read, filled by `read_all`.
    """

    folder: Path
    problems: list[str] = field(default_factory=list)

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def write(self, record: Record) -> Path:
        """Write a record atomically: if the process is killed, the old or the new file remains.

        Raises:
            LeakboardError: the disk is full or the folder cannot be written.
        """
        path, text = self.path(record.key), to_text(record)
        temporary = path.with_suffix(f".{uuid4().hex}.tmp")
        with _disk_errors(path, "the record could not be written"):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with temporary.open("w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except OSError:
                with suppress(OSError):  # there may be nothing to remove
                    temporary.unlink()
                raise
        return path

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Lock a cell until the block ends; yields whether this process may write its record.

        Temporary files of killed processes are removed.

        Raises:
            LeakboardError: see `claimed`.
        """
        with lock_cell(self.folder, key) as mine:
            if mine:
                with _disk_errors(self.folder, "files of a killed process could not be removed"):
                    for left in self.folder.glob(f"{key}.*.tmp"):
                        left.unlink(missing_ok=True)
            yield mine

    def written(self, key: str) -> float:
        """Time at which the cell's record was written, by the clock of its disk; 0 if there is none."""
        try:
            return self.path(key).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def now(self) -> float:
        """Current time by the clock of the disk, as in `written`."""
        mark = locks_of(self.folder) / f"{uuid4().hex}.now"
        with _disk_errors(self.folder, "no file could be written"):
            try:
                mark.touch()
                return mark.stat().st_mtime
            finally:
                mark.unlink(missing_ok=True)

    def read(self, key: str) -> Record | None:
        """The record of a cell, or None.

        Raises:
            Corrupt: the file is damaged.
            LeakboardError: it was written by a later version.
        """
        path = self.path(key)
        return from_text(path) if path.is_file() else None

    def require(self, key: str) -> Record:
        """The record of a cell that has one.

        Raises:
            LeakboardError: the file is missing or damaged, or was written by a later version.
        """
        path = self.path(key)
        try:
            return from_text(path)
        except (Corrupt, FileNotFoundError) as error:
            raise LeakboardError(f"{path}: {error}. Restore the file") from error

    def read_all(self, entered: bool = False) -> list[Record]:
        """All readable records, ordered by file name; damaged files are listed in `problems`.

        Args:
            entered: see `from_bytes`.
        """
        self.problems = []
        records = []
        with collector_paused():
            for path in sorted(self.folder.glob("*.json")):
                if path.name == MANIFEST:
                    continue
                try:
                    records.append(from_bytes(path.read_bytes(), path.stem, str(path), entered))
                except Corrupt as error:
                    self.problems.append(f"{path}: {error}")
        return records

    def set_aside(self, key: str) -> Path:
        """Move a damaged file to `corrupt/`, which is not read, and return its new path."""
        place = self.folder / "corrupt" / f"{key}.json"
        with _disk_errors(self.path(key), "the damaged record could not be set aside"):
            place.parent.mkdir(exist_ok=True)
            return self.path(key).replace(place)


@contextmanager
def _disk_errors(place: Path, what: str) -> Iterator[None]:
    """Turns an error of the file system into one with a remedy."""
    try:
        yield
    except OSError as error:
        raise LeakboardError(
            f"{place}: {what} ({error.strerror or error}). Everything finished before is saved; free some space, "
            "or choose another folder with --out, and run again"
        ) from error


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses Python's garbage collector: it would look through all new records again and again.

    Records hold no cycles; reading them takes a third of the time. Afterwards all objects are of the oldest
    generation, which the collector rarely looks through.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # somebody else's frozen objects stay frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def to_text(record: Record) -> str:
    """JSON with one top-level key per line, which is compact and readable in a diff."""
    content = record.model_dump(mode="json")
    content["sha256"] = digest(content)
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_text(path: Path) -> Record:
    """Read and verify one record file; see `Store.read`."""
    return from_bytes(path.read_bytes(), path.stem, str(path))


def from_bytes(raw: bytes, name: str, where: str, entered: bool = False) -> Record:
    """Parse and verify the content of a record file.

    Args:
        name: of the file, without its suffix.
        where: for messages.
        entered: the bytes are those of a data version, so that the checksum tells nothing more.

    Raises:
        Corrupt: it is no complete, unchanged record.
        LeakboardError: it was written by a later version.
    """
    try:
        content: Any = from_json(raw)
    except ValueError as error:
        raise Corrupt(f"not valid JSON ({error})") from error
    if not isinstance(content, dict):
        raise Corrupt("not a JSON object")
    if not {"key", "cell"} & content.keys():
        raise Corrupt("not a record (no key, no cell)")
    version = content.get("schema_version")
    if isinstance(version, int) and version > SCHEMA:
        raise LeakboardError(
            f"{where}: written with record schema {version}, but this version of leakboard reads up to "
            f"{SCHEMA}. Upgrade leakboard, or choose another folder with --out"
        )
    try:
        stated = content.pop("sha256", None)
        whole = entered or stated == digest(content)
    except (ValueError, RecursionError) as error:  # a lone surrogate, or nested too deeply
        raise Corrupt(f"not text that can be hashed ({error})") from error
    if not whole:
        raise Corrupt("its content does not match its checksum")
    try:
        record = Record.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise Corrupt(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if record.key != record.cell.key or name != record.key:
        raise Corrupt("its name, key and cell do not match")
    return record


def find(key: str, roots: Sequence[Path]) -> Record:
    """The record with this key in the first folder of the roots that has it.

    Raises:
        LeakboardError: no folder has it, or its file is damaged.
    """
    known = {path.stem: path for root in roots[::-1] for path in sorted(root.glob("*/*.json"))}
    if key not in known:
        places = ", ".join(f"{root}/*" for root in roots)
        near = [name for name in known if key and name.startswith(key)] or known
        advice = did_you_mean(key, near) if len(near) < 20 else ""
        raise LeakboardError(f"--record: no record '{key}' in {places}. {advice}".strip())
    return Store(known[key].parent).require(key)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` when the block ends; after an error the old file stays.

    A new file is readable by everybody; an existing one keeps its permissions. An error of the disk names `path`.
    """
    place = Path(os.path.realpath(path))  # a link stays one
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o644)
        os.replace(name, place)
    except OSError as error:
        os.unlink(name)
        raise OSError(error.errno or EIO, error.strerror or str(error), str(path)) from error
    except BaseException:
        os.unlink(name)
        raise
