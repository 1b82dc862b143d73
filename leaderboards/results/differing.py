"""What changed from some records to others."""

from __future__ import annotations

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
        `difference`, `why` (method, data, model, training, seeds, attacker, code); `frame()` is a table of them.

    Raises:
        LeakboardError: as `load` says.
    """
    before = old if isinstance(old, Results) else load(old)
    if new is None:
        return changes(before, published())
    return changes(before, new if isinstance(new, Results) else load(new))
