"""Differences between two collections of records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leakboard.leaderboards.results.results import Results
from leakboard.leaderboards.results.sources import load, published
from leakboard.leaderboards.tables import Changes, changes


def diff(old: Results | str | Path, new: Results | str | Path | None = None) -> Changes:
    """Differences between two collections of records, setting by setting, with intervals and reasons.

    Args:
        old, new: records, or a source for `load`: a folder, a suite that was run, a snapshot, or hf://OWNER/NAME.
            `new` is by default the published records.

    Returns:
        A sequence of changes: `kind`, `setting`, `what`, `old`, `new`, `difference`, and `why` (method, data, model,
        training, seeds, attacker, code). `frame()` is their table. `note` tells if the data version of `old` was
        published by other rules.

    Raises:
        LeakboardError: see `load`.
    """
    before = old if isinstance(old, Results) else load(old)
    after = published() if new is None else new if isinstance(new, Results) else load(new)
    note = before.version.rules_note if before.version else ""
    return replace(changes(before, after), note=note)
