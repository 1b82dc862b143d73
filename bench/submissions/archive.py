"""Reads untrusted submissions within limits, without extracting files, following links or running code.

Names are checked against a fixed pattern, and bytes are counted while they are read into memory.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, Refused, place, plain
from leakboard.bench.records import MANIFEST
from leakboard.bench.submissions.manifest import MOST_RECORDS, Submission, manifest_of

MIB = 2**20
FILE, MEMBER, WHOLE = 32 * MIB, 16 * MIB, 128 * MIB
"""Maximum bytes of a file, of one record in it, and of all records."""
END = struct.Struct("<4s4H2LH")
"""The record at the end of a zip: signature, disks, counts, size and place of its directory, comment."""
ZIP64 = b"PK\x06\x07"
RECORD = re.compile(r"records/([0-9a-f]{16})\.json")


def read_submission(path: Path) -> Submission:
    """Read a submission from its file, or from the folder of an accepted one.

    Raises:
        Refused: it is incomplete, exceeds a limit, or contains other files.
        LeakboardError: there is no such file or folder, or it cannot be read.
    """
    path = place(path)
    try:
        if path.is_dir():
            members = _read_folder(path)
        elif path.is_file():
            if path.stat().st_size > FILE:
                raise Refused(f"is larger than {FILE // MIB} MiB")
            members = _read_zip(path.read_bytes())
        else:
            raise LeakboardError(f"{plain(path)}: no such file")
    except OSError as error:
        raise LeakboardError(f"{path}: cannot be read ({error.strerror or error})") from error
    if "manifest.json" not in members:
        raise Refused("holds no manifest.json")
    manifest = manifest_of(members.pop("manifest.json"), "manifest.json")
    if manifest.verified is not None and not path.is_dir():
        raise Refused("claims that it was verified, which only the verifier may state")
    records = {name.removeprefix("records/")[:16]: raw for name, raw in members.items()}
    if odd := sorted(records.keys() ^ manifest.records.keys()):
        raise Refused(f"record {odd[0]} is in the manifest or among the files, but not in both")
    for key, raw in records.items():
        if hashlib.sha256(raw).hexdigest() != manifest.records[key].sha256:
            raise Refused(f"record {key} is not the one that was packed: its SHA-256 differs")
    return Submission(manifest, records)


def _read_zip(raw: bytes) -> dict[str, bytes]:
    """Names and contents of a zip file with expected names only."""
    # The size of the directory is checked first, since zipfile creates an object for each entry.
    end = raw[-END.size :]
    if len(end) < END.size or not end.startswith(b"PK\x05\x06"):
        raise Refused("is not a zip file, or an incomplete one")
    _, _, _, _, count, size, _, comment = END.unpack(end)
    if comment or count > MOST_RECORDS + 1 or size > 200 * (MOST_RECORDS + 1):
        raise Refused(f"holds more than {MOST_RECORDS} records, or other files as well")
    if raw[-END.size - 20 : -END.size].startswith(ZIP64):
        raise Refused("is a ZIP64 archive, which is not accepted")
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            for info in file.infolist():
                _check_member(info, found)
                with file.open(info) as member:
                    found[info.filename] = _read_bounded(member, sum(map(len, found.values())))
    except Refused:
        raise
    except Exception as error:  # zipfile does not document what damaged files raise
        raise Refused(f"cannot be unpacked: {type(error).__name__}: {error}") from error
    return found


def _check_member(info: zipfile.ZipInfo, found: Iterable[str]) -> None:
    name = info.orig_filename
    if name != "manifest.json" and not RECORD.fullmatch(name):
        raise Refused(
            f"holds '{plain(name, 80)}'; only manifest.json and records/<16 hex digits>.json are accepted"
        )
    if name in found:
        raise Refused(f"holds {name} twice")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refused(f"holds {name} as a link or something else that is not a file")
    # Other methods cannot be unpacked with a limit on the output.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(f"holds {name} compressed in an unusual way")


def _read_bounded(member: Any, before: int) -> bytes:
    """Unpack a member, and count its bytes while reading, since headers are not trusted."""
    content: bytes = member.read(MEMBER + 1)
    if len(content) > MEMBER or before + len(content) > WHOLE:
        raise Refused(f"unpacks to more than {MEMBER // MIB} MiB, or {WHOLE // MIB} in all")
    return content


def _read_folder(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in _files(folder):
        name = "manifest.json" if path.name == MANIFEST else f"records/{path.name}"
        if name != "manifest.json" and not RECORD.fullmatch(name):
            raise Refused(f"holds '{plain(path.name, 80)}', which is not a record")
        if path.is_symlink() or not path.is_file():
            raise Refused(f"holds {path.name} as a link or something else that is not a file")
        with path.open("rb") as member:
            found[name] = _read_bounded(member, sum(map(len, found.values())))
    return found


def _files(folder: Path) -> Iterator[Path]:
    for i, path in enumerate(sorted(folder.iterdir())):
        if i > MOST_RECORDS:
            raise Refused(f"holds more than {MOST_RECORDS} records")
        yield path
