"""Submissions: records from outside, packed into one file. What is read here was written by strangers.

Nothing of it is ever extracted, followed or run: names are compared, bytes are counted while they
are read, and everything else is a value in memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError

from bench import __version__
from bench.contracts import LeakboardError, Part
from bench.records import MANIFEST, Store
from bench.submissions.untrusted import Refused, parsed, plain, visible

MIB = 2**20
FILE, MEMBER, WHOLE = 32 * MIB, 32 * MIB, 128 * MIB
"""Most bytes of a file, of one record in it, and of all of them."""
MOST_RECORDS = 2000
END = struct.Struct("<4s4H2LH")
"""The record at the end of a zip: signature, disks, counts, size and place of its directory, comment."""
ZIP64 = b"PK\x06\x07"
RECORD = re.compile(r"records/([0-9a-f]{16})\.json")


def _https(link: str) -> str:
    if not link:
        return link
    parts = urlsplit(link)
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc:
        raise ValueError("a link begins with https:// and a host")
    if not re.fullmatch(r"[!#-;=?-Z_a-z~\[\]]+", link):
        raise ValueError("a link holds only the characters of a URL")
    return link


class Entry(Part):
    """A record file of a submission."""

    suite: Annotated[str, Field(pattern=r"^[\w.-]{1,100}$"), AfterValidator(visible)]
    """The suite, or the folder, to which it belongs."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(Part):
    """What stands in a submission beside its records."""

    format: Literal[1] = 1
    leakboard: Annotated[str, Field(max_length=50), AfterValidator(visible)] = __version__
    """Version that packed it."""
    method: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(visible)]
    link: Annotated[str, Field(max_length=300), AfterValidator(_https)] = ""
    """Where more is said about the method: https."""
    note: Annotated[str, Field(max_length=1000), AfterValidator(visible)] = ""
    records: dict[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")], Entry] = Field(
        min_length=1, max_length=MOST_RECORDS
    )

    @property
    def slug(self) -> str:
        """The method as the name of a folder: lower-case letters, digits and '-'."""
        ascii = unicodedata.normalize("NFKD", self.method).encode("ascii", "ignore").decode()
        words = re.findall(r"[a-z0-9]+", ascii.lower())
        return "-".join(words)[:60].strip("-") or f"submission-{min(self.records)}"


@dataclass(frozen=True)
class Submission:
    """A manifest and the record files that it names, by their keys."""

    manifest: Manifest
    records: dict[str, bytes]


def accepted(folder: Path) -> Manifest | None:
    """What was said with the records of a folder, if they were submitted.

    Raises:
        LeakboardError: it is there, and no manifest.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        return _manifest(path.read_bytes(), str(path))
    except Refused as error:
        raise LeakboardError(f"{error}. Restore it, or remove it") from error


def gather(sources: Mapping[str, Path], method: str | None, link: str, note: str) -> Submission:
    """The records of folders as a submission.

    Args:
        sources: folders by the name of their suite.

    Raises:
        LeakboardError: nothing there, a damaged record, one in two folders, or a text that is not
            taken.
    """
    records: dict[str, bytes] = {}
    entries: dict[str, Entry] = {}
    try:
        for suite, folder in sources.items():
            store = Store(folder)
            found = store.read_all()
            if store.problems:
                raise LeakboardError(f"{store.problems[0]}. Run its suite again")
            if not found:
                raise LeakboardError(f"{folder}: holds no records to submit. Run the suite first")
            for record in found:
                if record.key in records:
                    raise LeakboardError(
                        f"record {record.key} is in two folders; submit each by itself"
                    )
                raw = store.path(record.key).read_bytes()
                records[record.key] = raw
                entries[record.key] = Entry(suite=suite, sha256=hashlib.sha256(raw).hexdigest())
        method = next(iter(sources)) if method is None else method
        manifest = Manifest(method=method, link=link, note=note, records=entries)
    except ValidationError as error:
        raise LeakboardError(_first(error)) from error
    return Submission(manifest, records)


def pack(submission: Submission) -> bytes:
    """The submission as a zip; the same records give the same bytes.

    Raises:
        LeakboardError: it is larger than what is read.
    """
    out = io.BytesIO()
    content = json.dumps(submission.manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
    members = {f"records/{key}.json": raw for key, raw in sorted(submission.records.items())}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, raw in {"manifest.json": content.encode(), **members}.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            file.writestr(info, raw, zipfile.ZIP_DEFLATED)
    packed, sizes = out.getvalue(), [len(raw) for raw in submission.records.values()]
    if len(packed) > FILE or max(sizes) > MEMBER or sum(sizes) > WHOLE:
        raise LeakboardError(
            f"too large: {len(packed) / MIB:.0f} MiB, unpacked {sum(sizes) / MIB:.0f}; at most "
            f"{FILE // MIB} and {WHOLE // MIB} are taken. Submit suites one by one"
        )
    return packed


def opened(path: Path) -> Submission:
    """A submission from its file, or from a folder into which one was accepted.

    Raises:
        Refused: it is not whole, not bounded, or holds anything else.
        LeakboardError: there is no such file or folder, or it cannot be read.
    """
    try:
        if path.is_dir():
            members = _in_folder(path)
        elif path.is_file():
            if path.stat().st_size > FILE:
                raise Refused(f"is larger than {FILE // MIB} MiB")
            members = _in_zip(path.read_bytes())
        else:
            raise LeakboardError(f"{path}: no such file")
    except OSError as error:
        raise LeakboardError(f"{path}: cannot be read ({error.strerror or error})") from error
    if "manifest.json" not in members:
        raise Refused("holds no manifest.json")
    manifest = _manifest(members.pop("manifest.json"), "manifest.json")
    records = {name.removeprefix("records/")[:16]: raw for name, raw in members.items()}
    if odd := sorted(records.keys() ^ manifest.records.keys()):
        raise Refused(f"record {odd[0]} stands in the manifest or beside it, but not in both")
    for key, raw in records.items():
        if hashlib.sha256(raw).hexdigest() != manifest.records[key].sha256:
            raise Refused(f"record {key} is not the one that was packed: its SHA-256 differs")
    return Submission(manifest, records)


def _manifest(raw: bytes, what: str) -> Manifest:
    try:
        return Manifest.model_validate(parsed(raw, what))
    except ValidationError as error:
        raise Refused(f"{what}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return plain(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _in_zip(raw: bytes) -> dict[str, bytes]:
    """Names and contents of a zip; only names that a submission has."""
    # The directory is bounded before zipfile reads it, which makes an object of each of its entries.
    end = raw[-END.size :]
    if len(end) < END.size or not end.startswith(b"PK\x05\x06"):
        raise Refused("is no zip file, or not a whole one")
    _, _, _, _, count, size, _, comment = END.unpack(end)
    if comment or count > MOST_RECORDS + 1 or size > 200 * (MOST_RECORDS + 1):
        raise Refused(f"holds more than {MOST_RECORDS} records, or more than records")
    if raw[-END.size - 20 : -END.size].startswith(ZIP64):
        raise Refused("is a zip file of a kind for sizes that are not taken")
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            for info in file.infolist():
                _expected(info, found)
                with file.open(info) as member:
                    found[info.filename] = _at_most(member, sum(map(len, found.values())))
    except Refused:
        raise
    except Exception as error:  # what a broken zip raises is written nowhere
        raise Refused(f"cannot be unpacked: {type(error).__name__}: {error}") from error
    return found


def _expected(info: zipfile.ZipInfo, found: Iterable[str]) -> None:
    name = info.orig_filename
    if name != "manifest.json" and not RECORD.fullmatch(name):
        raise Refused(
            f"holds '{plain(name, 80)}'; only manifest.json and records/<16 hex digits>.json are taken"
        )
    if name in found:
        raise Refused(f"holds {name} twice")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refused(f"holds {name} as a link or something else that is no file")
    # The others unpack without a bound on what comes out.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(f"holds {name} compressed in an unusual way")


def _at_most(member: Any, before: int) -> bytes:
    """What unpacks from a member, counted while it is read: what a header states is not believed."""
    content: bytes = member.read(MEMBER + 1)
    if len(content) > MEMBER or before + len(content) > WHOLE:
        raise Refused(f"unpacks to more than {MEMBER // MIB} MiB, or {WHOLE // MIB} in all")
    return content


def _in_folder(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in _files(folder):
        name = "manifest.json" if path.name == MANIFEST else f"records/{path.name}"
        if name != "manifest.json" and not RECORD.fullmatch(name):
            raise Refused(f"holds '{plain(path.name, 80)}', which is no record")
        if path.is_symlink() or not path.is_file():
            raise Refused(f"holds {path.name} as a link or something else that is no file")
        with path.open("rb") as member:
            found[name] = _at_most(member, sum(map(len, found.values())))
    return found


def _files(folder: Path) -> Iterator[Path]:
    for i, path in enumerate(sorted(folder.iterdir())):
        if i > MOST_RECORDS:
            raise Refused(f"holds more than {MOST_RECORDS} records")
        yield path
