"""What changed from some records to others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leakboard.leaderboards.results.results import Results
from leakboard.leaderboards.results.sources import load, published
from leakboard.leaderboards.tables import Changes, changes


def diff(old: Results | str | Path, new: Results | str | Path | None = None) -> Changes:
    """What changed from some records to others, and why: setting by setting, with intervals.

    Args:
        old, new: records, or what `load` takes: a folder of records or of such folders, a suite that was run, a
            snapshot, hf://OWNER/NAME. Without `new` the published records.

    Returns:
        A sequence of changes, those of one setting beside each other: `kind`, `setting`, `what`, `old`, `new`, their
        `difference`, `why` (method, data, model, training, seeds, attacker, code); `frame()` is a table of them,
        and `note` says where the data version of `old` was published by other rules.

    Raises:
        LeakboardError: as `load` says.
    """
    before = old if isinstance(old, Results) else load(old)
    after = published() if new is None else new if isinstance(new, Results) else load(new)
    note = before.version.rules_note if before.version else ""
    return replace(changes(before, after), note=note)
