"""What two records of one cell disagree in."""

from __future__ import annotations

from records import COST, leak, record

from leakboard.bench.records.agreement import differing

FIRST = record(leaks=[leak(0.5), leak(0.7, "eia-map")])


def test_records_that_measured_the_same_agree_and_times_do_not_count():
    slower = COST.model_copy(update={"train_seconds": 99.0})
    again = FIRST.model_copy(update={"leaks": [leak(0.5, seconds=3.0)], "cost": slower})
    assert differing(FIRST, FIRST) == []
    assert differing(FIRST, again) == differing(again, FIRST) == []


def test_what_differs_is_named():
    other = record(utility=0.8, leaks=[leak(0.5), leak(0.6, "eia-map")])
    assert differing(FIRST, other) == ["utility", "attack eia-map"]
