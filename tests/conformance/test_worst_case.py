"""An audit of DP-SGD in its worst case: what is broken is caught, and what is whole is not."""

from __future__ import annotations

import pytest

from leakboard.bench.conformance.worst_case import FULL_BATCH, SAMPLED


@pytest.mark.parametrize("trial", [FULL_BATCH, SAMPLED], ids=["whole", "sampled"])
def test_what_is_intact_is_not_accused_by_an_audit_that_could(trial):
    audit = trial.audited()
    assert 1 < audit.bound < audit.claimed == 8 < audit.ceiling
    assert not audit.caught


@pytest.mark.parametrize(
    ("trial", "fault"),
    [(FULL_BATCH, "noise halved"), (SAMPLED, "clipping skipped"), (SAMPLED, "batches in order")],
    ids=str,
)
def test_broken_training_is_caught(trial, fault):
    audit = trial.audited(fault)
    assert audit.caught
    assert audit.bound > 8
