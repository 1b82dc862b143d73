"""Comparisons pair what can be compared, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from boards import cell, seeds

from bench.contracts.settings import TrainSettings
from leaderboards.tables.comparisons import comparisons, paired


def test_lost_utility_is_paired_over_seeds():
    plain = seeds("none", (0.90, 0.80, 0.85), (1.0, 1.0, 1.0))
    noisy = seeds("sap", (0.88, 0.78, 0.83), (0.5, 0.5, 0.5), params={"eta": 75.0})
    (found,) = comparisons([*noisy, *plain])
    lost = found.settings.set_index("defense")
    assert lost.loc["sap", "points"] == pytest.approx(2.0)
    # The seeds differ by ten points, the differences not at all.
    assert lost.loc["sap", "high"] - lost.loc["sap", "low"] < 1e-9
    assert lost.loc["none", "points"] == 0
    assert lost.loc["sap", "sent"] == pytest.approx(0.501, abs=1e-3)


def test_lost_utility_of_one_seed_has_the_interval_of_its_examples():
    truth = [0, 1] * 50
    a = cell("none", predictions={"predicted": truth, "truth": truth}, utility=1.0)
    wrong = [1 - t if i < 10 else t for i, t in enumerate(truth)]
    b = cell("sap", predictions={"predicted": wrong, "truth": truth}, utility=0.9)
    points, low, high, n = paired({0: a}, {0: b})
    half = 1.96 * np.std([1.0] * 10 + [0.0] * 90, ddof=1) / 10
    assert (points, n) == (pytest.approx(0.1), 1)
    assert (low, high) == (pytest.approx(0.1 - half), pytest.approx(0.1 + half))
    assert np.isnan(paired({0: a}, {1: b})[0])


def test_what_was_trained_differently_is_not_compared():
    short = [cell("none"), cell("sap", params={"eta": 75.0})]
    long = [cell("none", epochs=5), cell("sap", params={"eta": 50.0}, epochs=5)]
    full = []
    for one in short:
        tuned = one.cell.model_copy(update={"train": TrainSettings(epochs=2, tune="full")})
        full.append(one.model_copy(update={"cell": tuned, "key": tuned.key}))
    half = [cell("none", precision="bf16"), cell("sap", params={"eta": 75.0}, precision="bf16")]
    found = comparisons([*short, *long, *full, *half])
    assert [len(one.records) for one in found] == [2, 2, 2, 2]
    assert len({one.words for one in found}) == 4
    assert [one.words for one in found if "bf16" in one.words] == [found[3].words]
    # Without an undefended cell nobody knows what was lost.
    assert comparisons([cell("sap", params={"eta": 75.0})]) == []
