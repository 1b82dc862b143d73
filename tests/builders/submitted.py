"""Submissions as anybody could send them, honest or changed, and the verdict on each."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
from functools import cache

import numpy as np
from records import leak, record
from rich.console import Console

from leakboard.bench.contracts.cell import digest
from leakboard.bench.contracts.record import Record
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.methods import registry
from leakboard.bench.methods.method import spec_of
from leakboard.bench.records.store import to_text
from leakboard.bench.running.pairing import pair
from leakboard.bench.scoring import metrics
from leakboard.bench.submissions.completeness import standard
from leakboard.bench.submissions.verification import verify
from leakboard.bench.tasks.loading import load_task

RNG = np.random.default_rng(5)
TRUTH = [0, 1] * 12


def share(hits, totals, chance):
    return metrics.share(np.array(hits), np.array(totals), chance)


def honest(seed=0, defense="sap", **fields) -> Record:
    """A record of which every number follows from its raw guesses."""
    predicted = [t if i % 5 else 1 - t for i, t in enumerate(TRUTH)]
    ones = [1] * len(TRUTH)
    right = [int(p == t) for p, t in zip(predicted, TRUTH, strict=True)]
    hits, tokens = [3, 1, 2, 0] * 5, [4] * 20
    inverted = leak(raw={"hits": hits, "tokens": tokens}, **fields).model_copy(
        update={"success": share(hits, tokens, 0.1), "units": 80}
    )
    labels = leak(
        attack="logit-gradient",
        goal=Goal.LABEL,
        channel=Channel.LOGITS,
        raw={"guess": predicted, "truth": TRUTH},
    ).model_copy(
        update={"success": share(right, ones, 0.5), "units": len(TRUTH), "metric": "accuracy"}
    )
    params = {"eta": None} if defense == "sap" else {}
    return record(
        defense,
        params,
        seed=seed,
        leaks=[inverted, *others(defense, params, inverted, labels), labels],
        predictions={"predicted": predicted, "truth": TRUTH},
        undefended=True,
    ).model_copy(update={"utility": share(right, ones, 0.5)})


@cache
def reviews():
    return load_task("reviews")


def others(defense, params, inverted, labels):
    """What the other standard attacks leave on a cell: as these two, or skipped with a reason."""
    configured, found = registry.defense(defense)(**params), []
    for name, attack in standard().items():
        if name in ("eia-nn", "logit-gradient"):
            continue
        pairing = pair(attack, configured, reviews(), cut=0)
        found += pairing.skipped_leaks()
        for goal in sorted(pairing.goals):
            like = inverted if goal == Goal.INVERSION else labels
            attribute = "gender" if goal == Goal.ATTRIBUTE else None
            fields = {"attack": spec_of(attack), "goal": goal, "attribute": attribute}
            if goal == Goal.REIDENTIFICATION:
                hit = [1, 0] * (len(TRUTH) // 2)
                fields["metric"], fields["success"] = (
                    "top-1 accuracy",
                    share(hit, [1] * len(hit), 0.1),
                )
                fields["raw"] = {"hit": hit, "candidates": [10] * len(hit)}
            found.append(like.model_copy(update=fields))
    return found


RECORDS = [honest(seed, defense) for seed in (0, 1) for defense in ("sap", "none")]


def raw(records):
    return {r.key: to_text(r).encode() for r in records}


def manifest(contents, **fields):
    entries = {
        key: {"suite": "mine", "sha256": hashlib.sha256(content).hexdigest()}
        for key, content in contents.items()
    }
    return json.dumps({"format": 1, "method": "My noise", "records": entries} | fields).encode()


def zipped(members, mode=stat.S_IFREG | 0o644, kind=zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of names and contents, as anybody can write one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as file:
        for name, content in members:
            info = zipfile.ZipInfo()
            info.filename = name  # as it is; the constructor would mend it
            info.external_attr, info.compress_type = mode << 16, kind
            file.writestr(info, content)
    return out.getvalue()


def members(contents, **fields):
    named = [(f"records/{key}.json", content) for key, content in contents.items()]
    return [("manifest.json", manifest(contents, **fields)), *named]


def verdict(place, content: bytes):
    """The report on a file, which the terminal can show; nothing else is there afterwards."""
    file = place / "given.zip"
    file.write_bytes(content)
    report = verify(file)
    console = Console(file=io.StringIO(), width=200)
    for part in report.parts():
        console.print(part)
    shown = console.file.getvalue()
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert [path.name for path in place.iterdir()] == ["given.zip"]
    assert file.read_bytes() == content
    return report


def why(report) -> str:
    return "\n".join(f"{check}: {what}" for check, out, what in report.lines if out == "refused")


def resealed(content: dict) -> bytes:
    """A record that was changed, with a key and a checksum that fit again."""
    content.pop("sha256", None)
    return json.dumps(content | {"sha256": digest(content)}).encode()


def changed(change, which=0):
    """The honest records, one of them changed; its hashes are those of the change."""
    content = raw(RECORDS)
    key = RECORDS[which].key
    value = json.loads(content[key])
    change(value)
    content[key] = resealed(value)
    return zipped(members(content))


def really_run(folder):
    """Records of cells that were run here, as from a clean source tree: without a defense, and SAP."""
    import cells

    from leakboard.defenses.none import NoDefense
    from leakboard.defenses.sap import SAP

    attacks = tuple(standard().values())
    found = cells.run(folder, NoDefense(), SAP(eta=150), attacks=attacks)
    return [
        r.model_copy(update={"provenance": r.provenance.model_copy(update={"dirty": False})})
        for r in found
    ]


def with_key(record, **cell):
    """A record of another cell, with the key of that cell."""
    changed = record.cell.model_copy(update=cell)
    return record.model_copy(update={"cell": changed, "key": changed.key})


def more_private(record):
    """A record in which the nearest neighbour found less, all numbers made to fit."""
    leaks = []
    for found in record.leaks:
        if found.attack.name == "eia-nn" and found.status == "ok":
            hits = [max(0, hit - 1) for hit in found.raw["hits"]]
            less = share(hits, found.raw["tokens"], found.success.chance)
            fields = {"raw": found.raw | {"hits": hits}, "success": less}
            found = found.model_copy(update=fields)
        leaks.append(found)
    return record.model_copy(update={"leaks": leaks})


def sent(file, records, **fields):
    """The records as a submission in a file."""
    file.write_bytes(zipped(members(raw(records), **fields)))
    return file
