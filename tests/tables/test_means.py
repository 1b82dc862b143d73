"""Means over seeds, and their intervals."""

from __future__ import annotations

import pytest
from records import leak, record, sweep
from scipy.stats import ttest_1samp

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.points import points

pytestmark = pytest.mark.usefixtures("few_methods", "certified")


def test_means_and_intervals_over_seeds_are_students() -> None:
    found = points(frame(sweep()), "inversion", "eia-nn")
    row = found[found["label"] == "η = 75"].iloc[0]
    expected = ttest_1samp([0.5, 0.49, 0.48], 0).confidence_interval()
    assert row["ep"] == pytest.approx(0.49)
    assert (row["ep_low"], row["ep_high"]) == pytest.approx((expected.low, expected.high))
    assert (row["n_seeds"], row["knob"], row["knob_value"]) == (3, "eta", 75)


def test_intervals_over_seeds_stay_within_what_can_be_measured() -> None:
    def bits(seed: int, exposure: float):
        found = leak(
            exposure,
            "canary-exposure",
            Goal.MEMORISATION,
            chance=1.4,
            ceiling=19.93,
        )
        return record("none", {}, seed, 0.99 - 0.4 * seed, [found], undefended=True)

    (row,) = points(frame([bits(0, 19.9), bits(1, 9.0)]), "memorisation").to_dict("records")
    assert (row["success_low"], row["success_high"]) == (0.0, pytest.approx(19.93))
    assert (row["ep_low"], row["ep_high"]) == (0.0, 1.0)
    assert (row["utility_low"], row["utility_high"]) == (0.0, 1.0)
    (row,) = points(frame([bits(0, 10.0), bits(1, 9.0)]), "memorisation").to_dict("records")
    assert 0 < row["success_low"] < 9 < 10 < row["success_high"] < 19.93


def test_what_is_measured_below_nothing_keeps_its_place() -> None:
    def bits(seed: int, exposure: float):
        found = leak(
            exposure,
            "canary-exposure",
            Goal.MEMORISATION,
            chance=0.0,
            ceiling=19.93,
        )
        return record("none", {}, seed, 0.9, [found], undefended=True)

    (row,) = points(frame([bits(0, -0.5), bits(1, -0.4)]), "memorisation").to_dict("records")
    assert row["success"] == pytest.approx(-0.45)
    assert row["success_low"] == -0.5


def test_what_training_added_has_its_whole_interval_on_either_side_of_nothing() -> None:
    def bits(seed: int, gained: float):
        found = leak(gained, "canary-exposure", Goal.MEMORISATION, chance=0.0, ceiling=19.93)
        found = found.model_copy(update={"metric": "exposure gained"})
        return record("none", {}, seed, 0.9, [found], undefended=True)

    (row,) = points(frame([bits(0, -0.5), bits(1, -0.4)]), "memorisation").to_dict("records")
    # Student's t of two numbers: the mean ± 12.7 · 0.05.
    assert row["success_low"] == pytest.approx(-0.45 - 12.706 * 0.05, abs=1e-3)
    assert row["success_high"] == pytest.approx(-0.45 + 12.706 * 0.05, abs=1e-3)
    assert row["ep_high"] > 1


def test_one_seed_keeps_the_interval_inside_the_cell() -> None:
    row = points(frame(sweep(seeds=1)), "inversion").iloc[0]
    assert (row["ep_low"], row["ep_high"]) == pytest.approx((0.79, 0.81))
    assert (row["utility_low"], row["utility_high"]) == pytest.approx((0.69, 0.71))


def test_a_cell_present_twice_is_one_seed() -> None:
    row = points(frame([record(), record()]), "inversion").iloc[0]
    assert row["n_seeds"] == 1
    assert row["ep_low"] < row["ep"]


def test_cells_trained_differently_are_not_averaged() -> None:
    made = [record(seed=0), record(seed=1, epochs=9), record(seed=2, limit=None)]
    assert points(frame(made), "inversion")["n_seeds"].tolist() == [1, 1, 1]
