"""Records on disk: one JSON file per cell, written whole or not at all."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from pydantic_core import from_json

from leakboard.bench.contracts import SCHEMA, LeakboardError, Record, did_you_mean, digest
from leakboard.bench.records.locks import claimed, locks_of

MANIFEST = "submission.json"
"""Beside records that came from outside: who sent them. It is no record."""


class Corrupt(Exception):
    """A file that is not a whole and unchanged record; the message says why."""


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
        """Writes a record in one step: after a kill at any moment there is the old file or the new.

        Raises:
            LeakboardError: the disk is full or the folder cannot be written.
        """
        path, text = self.path(record.key), to_text(record)
        temporary = path.with_suffix(f".{uuid4().hex}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):  # where the folder could not be made there is nothing to remove
                temporary.unlink()
            raise LeakboardError(
                f"{path}: the record could not be written ({error.strerror or error}). Everything "
                "finished before is kept; make room, or choose another folder with --out, and run again"
            ) from error
        return path

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Whether this process alone may write the cell's record, until the block ends.

        What a killed process left behind of it is swept.

        Raises:
            LeakboardError: see `claimed`.
        """
        with claimed(self.folder, key) as mine:
            if mine:
                for left in self.folder.glob(f"{key}.*.tmp"):
                    left.unlink(missing_ok=True)
            yield mine

    def written(self, key: str) -> float:
        """When the cell's record was last written, by the clock of its disk; 0 where there is none."""
        try:
            return self.path(key).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def now(self) -> float:
        """The clock of the disk, by which `written` tells the time."""
        mark = locks_of(self.folder) / f"{uuid4().hex}.now"
        try:
            mark.touch()
            return mark.stat().st_mtime
        finally:
            mark.unlink(missing_ok=True)

    def read(self, key: str) -> Record | None:
        """The record of a cell, or None where there is none.

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

    def read_all(self) -> list[Record]:
        """All readable records, ordered by file name; `problems` says what is damaged."""
        self.problems = []
        records = []
        with collector_paused():
            for path in sorted(self.folder.glob("*.json")):
                if path.name == MANIFEST:
                    continue
                try:
                    records.append(from_bytes(path.read_bytes(), path.stem, str(path)))
                except Corrupt as error:
                    self.problems.append(f"{path}: {error}")
        return records

    def set_aside(self, key: str) -> Path:
        """Moves a damaged file into `corrupt/`, where nobody reads it, and returns its new place."""
        place = self.folder / "corrupt" / f"{key}.json"
        place.parent.mkdir(exist_ok=True)
        return self.path(key).replace(place)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses Python's garbage collector: it would look through all new records again and again.

    Records hold no cycles; reading them takes a third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def to_text(record: Record) -> str:
    """JSON with one top-level key per line: compact, and still readable in a diff."""
    content = record.model_dump(mode="json")
    content["sha256"] = digest(content)
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_text(path: Path) -> Record:
    """Reads and checks one record file; see `Store.read`."""
    return from_bytes(path.read_bytes(), path.stem, str(path))


def from_bytes(raw: bytes, name: str, where: str) -> Record:
    """Checks the content of a record file.

    Args:
        name: of the file, without its suffix.
        where: for messages.

    Raises:
        Corrupt: it is no whole and unchanged record.
        LeakboardError: it was written by a later version.
    """
    try:
        content: Any = from_json(raw)
    except ValueError as error:
        raise Corrupt(f"not whole JSON ({error})") from error
    if not isinstance(content, dict):
        raise Corrupt("not a JSON object")
    version = content.get("schema_version")
    if isinstance(version, int) and version > SCHEMA:
        raise LeakboardError(
            f"{where}: written with record schema {version}, this version of leakboard reads up to "
            f"{SCHEMA}. Upgrade leakboard, or choose another folder with --out"
        )
    try:
        stated = content.pop("sha256", None)
        whole = stated == digest(content)
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
        raise Corrupt("its name, its key and its cell do not belong together")
    return record


def find(key: str, roots: Sequence[Path]) -> Record:
    """The record of that key in the folders of records inside the roots, the first that has it.

    Raises:
        LeakboardError: there is none, or its file is damaged.
    """
    known = {path.stem: path for root in roots[::-1] for path in sorted(root.glob("*/*.json"))}
    if key not in known:
        places = ", ".join(f"{root}/*" for root in roots)
        near = [name for name in known if key and name.startswith(key)] or known
        advice = did_you_mean(key, near) if len(near) < 20 else ""
        raise LeakboardError(f"--record: no record '{key}' in {places}. {advice}".strip())
    return Store(known[key].parent).require(key)
