"""Packs records into a submission file."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.records import Store, from_bytes, to_text
from leakboard.bench.submissions.archive import FILE, MEMBER, MIB, WHOLE
from leakboard.bench.submissions.manifest import (
    Entry,
    Manifest,
    Submission,
    Verified,
    first_of,
)


def gather(sources: Mapping[str, Path], method: str | None, link: str, note: str) -> Submission:
    """Collect the records of folders as a submission.

    Args:
        sources: folders by the name of their suite.

    Raises:
        LeakboardError: a folder is empty, a record is damaged or in two folders, or a text is not
            accepted.
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
                        f"record {record.key} is in two folders; submit the folders separately"
                    )
                raw = store.path(record.key).read_bytes()
                records[record.key] = raw
                entries[record.key] = Entry(suite=suite, sha256=hashlib.sha256(raw).hexdigest())
        method = next(iter(sources)) if method is None else method
        manifest = Manifest(method=method, link=link, note=note, records=entries)
    except ValidationError as error:
        raise LeakboardError(first_of(error)) from error
    return Submission(manifest, records)


def accepted_records(submission: Submission, verified: Verified) -> Submission:
    """The submission with `not_reproduced` on the records of the defenses that were not reproduced, and on no others."""
    records, entries = dict(submission.records), dict(submission.manifest.records)
    for key, raw in submission.records.items():
        record = from_bytes(raw, key, key)
        mark = record.cell.defense.name in verified.methods
        if record.provenance.not_reproduced != mark:
            made = record.provenance.model_copy(update={"not_reproduced": mark})
            records[key] = to_text(record.model_copy(update={"provenance": made})).encode()
            sha256 = hashlib.sha256(records[key]).hexdigest()
            entries[key] = entries[key].model_copy(update={"sha256": sha256})
    manifest = submission.manifest.model_copy(update={"records": entries})
    return Submission(manifest, records)


def pack(submission: Submission) -> bytes:
    """The submission as a zip file. Equal records give equal bytes.

    Raises:
        LeakboardError: it exceeds the size limits of verification.
    """
    out = io.BytesIO()
    fields = submission.manifest.model_dump(mode="json", exclude={"verified"})
    content = json.dumps(fields, indent=1, ensure_ascii=False)
    members = {f"records/{key}.json": raw for key, raw in sorted(submission.records.items())}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, raw in {"manifest.json": content.encode(), **members}.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            file.writestr(info, raw, zipfile.ZIP_DEFLATED)
    packed, sizes = out.getvalue(), [len(raw) for raw in submission.records.values()]
    if len(packed) > FILE or max(sizes) > MEMBER or sum(sizes) > WHOLE:
        raise LeakboardError(
            f"too large: {len(packed) / MIB:.0f} MiB, unpacked {sum(sizes) / MIB:.0f}, the largest "
            f"record {max(sizes) / MIB:.0f}; at most {FILE // MIB}, {WHOLE // MIB} and {MEMBER // MIB} "
            "are accepted. Submit the suites one by one"
        )
    return packed
