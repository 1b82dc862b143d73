"""Comparisons pair what can be compared, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from boards import cell, seeds

from leakboard.bench.contracts.cell import TrainSettings
from leakboard.leaderboards.tables.comparisons import alike, comparisons, paired, setups


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


def retrained(one, **settings):
    """The same cell with other settings of training."""
    cell = one.cell.model_copy(update={"train": TrainSettings(**settings)})
    return one.model_copy(update={"cell": cell, "key": cell.key})


def test_defenses_are_compared_each_as_it_was_trained():
    plain = cell("none")
    noisy = retrained(cell("sap", params={"eta": 75.0}), epochs=30, batch_size=64, tune="head")
    (found,) = comparisons([plain, noisy])
    assert found.settings["defense"].tolist() == ["none", "sap"]
    assert "each trained in its own way" in found.words


def test_one_setting_in_two_trainings_is_told_apart_and_never_averaged():
    made = [cell("none"), cell("sap", params={"eta": 75.0}, utility=0.9)]
    made += [
        retrained(made[1], epochs=2, tune="head").model_copy(update={"utility": made[0].utility})
    ]
    (found,) = comparisons(made)
    own = found.settings[found.settings["defense"] == "sap"]
    assert own["label"].tolist() == ["η = 75, lora", "η = 75, head"]
    assert own["seeds"].tolist() == [1, 1]


def test_what_is_lost_is_lost_against_no_protection_at_its_best():
    weak, strong = seeds("none", (0.6, 0.6), (1.0, 1.0)), seeds("none", (0.9, 0.9), (1.0, 1.0))
    strong = [retrained(one, epochs=30) for one in strong]
    noisy = seeds("sap", (0.8, 0.8), (0.5, 0.5), params={"eta": 75.0})
    for made in ([*weak, *strong, *noisy], [*strong, *weak, *noisy]):
        (found,) = comparisons(made)
        lost = found.settings.groupby("defense")["points"].max()
        assert lost["sap"] == pytest.approx(10)
    # One that ran with fewer seeds has no partner for some of the others.
    (found,) = comparisons([*weak, strong[0], *noisy])
    assert found.settings.set_index("defense").loc["sap", "points"] == pytest.approx(-20)


def test_other_precision_and_other_lengths_are_not_compared():
    short = [cell("none"), cell("sap", params={"eta": 75.0})]
    half = [cell("none", precision="bf16"), cell("sap", params={"eta": 75.0}, precision="bf16")]
    cut = [retrained(one, max_length=16) for one in short]
    found = comparisons([*short, *half, *cut])
    assert [len(one.records) for one in found] == [2, 2, 2]
    assert len({one.words for one in found}) == 3
    (other,) = [one for one in found if "bf16" in one.words]
    assert {record.cell.train.precision for record in other.records} == {"bf16"}
    # Whatever the order of the records is, that of what is compared is one.
    assert [one.words for one in comparisons([*cut, *half, *short])] == [one.words for one in found]
    # Without an undefended cell nobody knows what was lost.
    assert comparisons([cell("sap", params={"eta": 75.0})]) == []


def test_groups_that_words_do_not_tell_apart_are_told_by_their_data_where_these_differ():
    one = cell("none")

    def groups(**other):
        two = one.cell.model_copy(update=other)
        return alike([one, one.model_copy(update={"cell": two, "key": two.key})])

    assert {told.split(", ")[-1] for told in setups(groups(data_hash="ab" * 8)).values()} == {
        f"data {one.cell.data_hash[:8]}",
        "data abababab",
    }
    found = groups(evaluate="test")
    assert {told.split(", ")[-1] for told in setups(found).values()} == {
        f"setup {digits}" for digits in found
    }
    assert not any("data" in told for told in setups(alike([one])).values())
