"""The best of several attacks without the luck of the choice, and the numbers of texts that rates need."""

from __future__ import annotations

import numpy as np
import pytest

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.scoring import roc
from leakboard.bench.scoring.one_run import auc


@pytest.mark.slow
def test_the_best_of_many_useless_attacks_is_at_chance(monkeypatch):
    monkeypatch.setattr(roc, "RESAMPLES", 2)
    rng, member = np.random.default_rng(0), np.arange(40) < 20
    values, largest = [], []
    for _ in range(200):
        scores = {str(i): rng.normal(size=40) for i in range(8)}
        values.append(roc.cross_fitted(scores, member).auc.value)
        largest.append(max(auc(own, member).value for own in scores.values()))
    # Standard error of a mean: about 0.095/√200.
    assert abs(np.mean(values) - 0.5) < 0.02
    assert np.mean(largest) > 0.6


@pytest.mark.slow
def test_an_interval_of_the_best_covers_the_truth_and_a_strong_attack_is_chosen():
    rng, member = np.random.default_rng(0), np.arange(120) < 60
    covered = 0
    for _ in range(40):
        strong = rng.normal(size=120) + 1.2 * member  # AUC Φ(1.2/√2) = 0.802
        scores = {"weak": rng.normal(size=120), "strong": strong}
        found = roc.cross_fitted(scores, member)
        assert found.chosen == ("strong", "strong")
        covered += found.auc.low <= 0.802 <= found.auc.high
    assert covered >= 34


def test_rates_of_the_best_are_those_of_the_halves_and_never_without_an_interval():
    member = np.arange(80) < 40
    found = roc.cross_fitted({"all": member.astype(float), "none": np.zeros(80)}, member, (0.01,))
    assert found.chosen == ("all", "all")
    assert (found.auc.value, found.rates[0.01].value) == (1, 1)
    assert 0.85 < found.rates[0.01].low < 0.95
    none = roc.cross_fitted({"none": np.zeros(80)}, member, (0.01,)).rates[0.01]
    assert (none.value, none.low, none.chance) == (0, 0, 0.01)
    assert 0.05 < none.high < 0.12
    assert (found.members, found.others) == (40, 40)


def test_numbers_of_texts_that_are_needed():
    # No false alarm among n has probability (1 − fpr)^n.
    for rate, n in ((0.001, 2995), (0.01, 299)):
        assert roc.others_needed(rate) == n
        assert (1 - rate) ** n <= 0.05 < (1 - rate) ** (n - 1)
        assert roc.largest_rate(n) == pytest.approx(rate, rel=0.01)
    n = roc.members_needed(0.6)
    assert roc.smallest_auc(n) == pytest.approx(0.6, abs=0.001)
    rng, shown = np.random.default_rng(0), 0
    shift = 0.2533 * np.sqrt(2)  # Φ⁻¹(0.6)·√2
    spread = np.sqrt((2 * n + 1) / (12 * n * n))
    for _ in range(300):
        scores = rng.normal(size=2 * n) + shift * (np.arange(2 * n) < n)
        rank = scores.argsort().argsort()[:n].sum() - n * (n - 1) / 2
        shown += rank / n**2 > 0.5 + 1.96 * spread
    assert 0.72 < shown / 300 < 0.88


def test_too_few_texts_are_named():
    with pytest.raises(LeakboardError, match="at least two members and two others"):
        roc.cross_fitted({"a": np.zeros(4)}, np.array([1, 0, 0, 0]))
