"""Bias of cross-fitting by the number of seeds, simulated; `python tests/tables/test_cross_fitting.py` prints the table."""

import numpy as np
import pytest

from leakboard.leaderboards.tables.intervals import Interval
from leakboard.leaderboards.tables.leakage import Reading, Strongest

SEEDS = (3, 5, 7, 10)
SPREAD = 0.1
"""Standard deviation of the success of one attack at one moment over seeds: 0.04 to 0.08 in records of P³EFT."""


def simulate(lead, candidates, seeds, runs=200, rng=None):
    """Mean error of the cross-fitted success, and of the largest mean over seeds, of the best attack's true success.

    Args:
        lead: true success of the best attack minus that of all others.
    """
    rng = rng or np.random.default_rng(0)
    true = np.full(candidates, 0.6 - lead)
    true[candidates // 2] = 0.6
    errors = []
    for _ in range(runs):
        drawn = true + SPREAD * rng.standard_normal((seeds, candidates))
        by_seed = {seed: dict(map(reading, enumerate(own))) for seed, own in enumerate(drawn)}
        largest = drawn.mean(0).max()
        errors.append((Strongest(by_seed).success.value - 0.6, largest - 0.6))
    return np.mean(errors, 0), np.std(errors, 0) / np.sqrt(runs)


def reading(indexed):
    index, success = indexed
    candidate = ("spectral", "[]", "activations", index)
    value = Interval(success, success, success)
    return candidate, Reading(candidate, 1, "AUC", value, 0.0, 0.0, 9.0, 100, None)


@pytest.mark.parametrize("seeds", SEEDS)
def test_among_equal_attacks_cross_fitting_has_no_bias_and_the_maximum_has(seeds):
    (fitted, largest), (error, _) = simulate(0.0, 20, seeds)
    assert abs(fitted) < 4 * error
    assert largest > 0.05


def test_with_few_seeds_a_single_best_attack_is_often_missed():
    few, many = (simulate(SPREAD, 20, seeds, 100)[0][0] for seeds in (3, 10))
    assert -SPREAD < few < -0.02
    assert few < many < 0.01


def table(runs=300):
    """Rows of the table in results/README.md."""
    for lead in (0.0, 0.05, 0.1, 0.2):
        for candidates in (5, 250):
            found = [simulate(lead, candidates, seeds, runs) for seeds in SEEDS]
            cells = [f"{100 * mean[0]:+.1f} / {100 * mean[1]:+.1f}" for mean, _ in found]
            print(f"| {100 * lead:g} | {candidates} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    table()
