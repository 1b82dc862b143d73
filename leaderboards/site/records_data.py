"""All records as one compact script for the page of records, which needs no server."""

from __future__ import annotations

import json
from typing import Any

from leakboard.bench.contracts import Leak, Record
from leakboard.bench.submissions import Collection
from leakboard.leaderboards.site.markup import slug
from leakboard.leaderboards.tables import GOAL_WORDS, NOT_REPRODUCED


def records_data(collection: Collection) -> dict[str, Any]:
    """The content of the page of records; words are stored once and used by their index.

    Returns:
        `words`: texts. `records`: for each record the key, indices of folder, task, model, defense, parameters, status,
        reason and utility metric, then cut, seed, utility [value, low, high], leaks and submissions. A leak has
        indices of attack, goal, metric, channel and reason, then success, baseline and units. `pages`: file names of
        methods whose name is no file name.
    """
    words: dict[str, int] = {}

    def word(text: object) -> int:
        return words.setdefault(str(text), len(words))

    records = [_record(record, collection, word) for record in collection.records.values()]
    names = {r.cell.defense.name for r in collection.records.values()}
    names |= {leak.attack.name for r in collection.records.values() for leak in r.leaks}
    pages = {name: slug(name) for name in sorted(names) if slug(name) != name}
    return {"words": list(words), "records": records, "pages": pages}


def script(name: str, data: Any) -> str:
    """Data as a script that sets a variable of the window, since pages from disk may not fetch files."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for end in ("\u2028", "\u2029"):
        text = text.replace(end, f"\\u{ord(end):04x}")
    return f"window.{name}={text};\n"


def _record(record: Record, collection: Collection, word: Any) -> list[Any]:
    cell = record.cell
    given = sorted(cell.defense.params.items())
    params = ", ".join(
        f"{name} = {f'{value:g}' if isinstance(value, float) else value}"
        for name, value in given
        if value is not None
    )
    if record.provenance.not_reproduced:
        params = ", ".join(filter(None, [params, NOT_REPRODUCED]))
    submitted = [
        [one.method, one.note or "", one.link or ""]
        for one in collection.submissions.get(record.key, ())
    ]
    folder = collection.files[record.key].rpartition("/")[0]
    words = (folder, cell.task, cell.model, cell.defense.name, params)
    state = (record.status, record.reason, record.utility_metric)
    ends = (record.utility.value, record.utility.low, record.utility.high) if record.utility else ()
    indices = [word(text) for text in words + state]
    leaks = [_leak(leak, word) for leak in record.leaks]
    return [record.key, *indices, cell.cut, cell.seed, [*map(_short, ends)], leaks, submitted]


def _leak(leak: Leak, word: Any) -> list[Any]:
    success = leak.success
    baseline = max(success.chance, leak.floor.value if leak.floor else 0.0) if success else None
    goal = GOAL_WORDS[leak.goal] + (f" ({leak.attribute})" if leak.attribute else "")
    reads = " ".join(filter(None, (leak.channel, f"({leak.view})" if leak.view else "")))
    reason = leak.reason if leak.status == "ok" else f"{leak.status}: {leak.reason}"
    words = (leak.attack.name, goal, leak.metric, reads, reason)
    numbers = (success.value if success else None, baseline)
    return [*map(word, words), *map(_short, numbers), success.n if success else 0]


def _short(value: float | None) -> float | None:
    """The value rounded for pages; None for NaN."""
    return None if value is None or value != value else round(value, 3)
