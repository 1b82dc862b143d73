"""Another run of a cell, beside its record."""

from __future__ import annotations

from submitted import RECORDS

from leakboard.bench.contracts.record import Estimate
from leakboard.bench.records.agreement import compare_runs


def test_another_run_is_compared_to_the_last_digit_or_by_intervals():
    one = RECORDS[0]
    assert compare_runs(one, one)[0] == "held"
    assert "every number came out the same" in compare_runs(one, one)[1]
    near = one.leaks[0].success.model_copy(update={"value": one.leaks[0].success.value + 1e-3})
    far = Estimate(value=0.99, low=0.98, high=1.0, n=20, chance=0.1)
    for success, outcome, told in (
        (near, "held", "95 % interval"),
        (far, "refused", "here 0.990"),
    ):
        leaks = [one.leaks[0].model_copy(update={"success": success}), *one.leaks[1:]]
        found = compare_runs(one, one.model_copy(update={"leaks": leaks}))
        assert found[0] == outcome
        assert told in found[1]
    assert "did not come out here" in compare_runs(one, one.model_copy(update={"leaks": []}))[1]
    broken = one.model_copy(update={"status": "failed", "reason": "no"})
    assert compare_runs(one, broken)[0] == "refused"
