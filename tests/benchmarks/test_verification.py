"""Processor time of `verify` on a large submission; it is long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from benchmarking import Figure
from submitted import honest, sent

from leakboard.bench.contracts import Record
from leakboard.bench.submissions import verify

pytestmark = pytest.mark.long
RECORDS, LEAKS, SECONDS = 500, 70, 10.0


def many_leaks(record: Record) -> Record:
    """The record with as many leaks; those that are added are seen from other views."""
    measured = [leak for leak in record.leaks if leak.success]
    added = [
        measured[i % len(measured)].model_copy(update={"view": f"view {i}"})
        for i in range(LEAKS - len(record.leaks))
    ]
    return record.model_copy(update={"leaks": [*record.leaks, *added]})


def test_verify(comparison, tmp_path):
    seeds, defenses = range(RECORDS // 2), ("sap", "none")
    records = [many_leaks(honest(seed, defense)) for seed in seeds for defense in defenses]
    file = sent(Path(tmp_path / "given.zip"), records)
    seconds: list[float] = []

    def work() -> None:
        start = time.process_time()
        report = verify(file)
        seconds.append(time.process_time() - start)
        assert report.sound
        assert len(report.records) == RECORDS

    comparison.measure(work, rounds=1)
    name = f"verify: {RECORDS} records with {LEAKS} leaks each, time of the processor"
    comparison.report(Figure(name, min(seconds), SECONDS, 2 * SECONDS, "s"))
