"""What did not run, as lines."""

from __future__ import annotations

from records import leak, record, skipped

from leakboard.leaderboards.tables.failures import failures
from leakboard.leaderboards.tables.frame import frame


def test_failures_list_cells_and_attacks_but_not_what_was_skipped() -> None:
    cell = record("sap", {"eta": 1.0}, status="diverged", reason="loss is inf")
    lost = leak(None, status="out-of-memory", reason="", attack="eia-optimise")
    lines = failures(frame([cell, record(seed=3, leaks=[leak(), skipped(), lost])]))
    assert len(lines) == 2
    assert lines[0].endswith("diverged: loss is inf")
    assert "seed 3, eia-optimise: out-of-memory: no reason given" in lines[1]
