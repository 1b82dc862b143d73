"""Settings in groups that may be compared, and what one costs against another."""

from __future__ import annotations

import numpy as np
import pytest
from boards import cell, seeds
from records import estimate

from leakboard.bench.contracts.cell import TrainSettings
from leakboard.leaderboards.tables.conditions import describe_groups, group_records
from leakboard.leaderboards.tables.settings import gain_over, groups_of


def settings_of(records):
    (group,) = groups_of(records)
    return {setting.defense: setting for setting in group.settings}


def test_lost_utility_is_paired_over_seeds():
    plain = seeds("none", (0.90, 0.80, 0.85), (1.0, 1.0, 1.0))
    noisy = seeds("sap", (0.88, 0.78, 0.83), (0.5, 0.5, 0.5), params={"eta": 75.0})
    own = settings_of([*noisy, *plain])
    lost, by_seed = gain_over(own["none"], own["sap"])
    assert lost.value == pytest.approx(2.0)
    assert by_seed == pytest.approx({0: 2.0, 1: 2.0, 2: 2.0})
    # The seeds differ by ten points, the differences not at all.
    assert lost.high - lost.low < 1e-9
    assert gain_over(own["none"], own["none"])[0].value == 0
    assert own["sap"].megabytes == pytest.approx(0.501, abs=1e-3)


def test_lost_utility_of_one_seed_has_the_interval_of_its_examples():
    truth = [0, 1] * 50
    a = cell("none", predictions={"predicted": truth, "truth": truth}, utility=1.0)
    wrong = [1 - t if i < 10 else t for i, t in enumerate(truth)]
    b = cell("sap", predictions={"predicted": wrong, "truth": truth}, utility=0.9)
    own = settings_of([a, b])
    lost, by_seed = gain_over(own["none"], own["sap"])
    half = 196 * np.std([1.0] * 10 + [0.0] * 90, ddof=1) / 10
    assert (lost.value, len(by_seed)) == (pytest.approx(10), 1)
    assert (lost.low, lost.high) == (pytest.approx(10 - half), pytest.approx(10 + half))
    other = settings_of([a, cell("sap", seed=1)])
    lost, by_seed = gain_over(other["none"], other["sap"])
    assert (lost.is_missing, by_seed) == (True, {})


def retrained(one, **settings):
    """The same cell with other settings of training."""
    cell = one.cell.model_copy(update={"train": TrainSettings(**settings)})
    return one.model_copy(update={"cell": cell, "key": cell.key})


def test_defenses_are_compared_each_as_it_was_trained():
    plain = cell("none")
    noisy = retrained(cell("sap", params={"eta": 75.0}), epochs=30, batch_size=64, tune="head")
    (group,) = groups_of([plain, noisy])
    assert [one.defense for one in group.settings] == ["none", "sap"]
    assert all("training differs between settings" in one.conditions for one in group.settings)


def test_one_setting_in_two_trainings_has_two_labels_and_is_never_averaged():
    made = [cell("none"), cell("sap", params={"eta": 75.0}, utility=0.9)]
    made += [
        retrained(made[1], epochs=2, tune="head").model_copy(update={"utility": made[0].utility})
    ]
    (group,) = groups_of(made)
    own = [one for one in group.settings if one.defense == "sap"]
    assert [one.label for one in own] == ["η = 75, tune = lora", "η = 75, tune = head"]
    assert [len(one.seeds) for one in own] == [1, 1]


def test_a_label_names_the_fewest_settings_of_training_that_distinguish_it():
    plain = cell("sap", params={"eta": 75.0})
    made = [
        retrained(plain, epochs=epochs, learning_rate=rate, batch_size=size)
        for epochs, rate, size in ((2, 1e-3, 32), (3, 3e-3, 16), (3, 1e-3, 64))
    ]
    (group,) = groups_of(made)
    assert {one.label for one in group.settings} == {
        "η = 75, epochs = 2",
        "η = 75, learning rate = 0.003",
        "η = 75, batch size = 64",
    }


@pytest.mark.parametrize(
    ("defense", "params", "label"),
    [
        ("jft", {"epsilon": 3.0, "phase1": "light-noise"}, "ε = 3, light-noise"),
        ("jft", {"epsilon": 3.0, "phase1": "direct"}, "ε = 3"),
        ("jft", {"epsilon": 3.0}, "ε = 3"),
        ("sap", {"eta": 75.0, "bottom": "trainable"}, "η = 75, trainable"),
    ],
)
def test_a_lone_setting_tells_which_variant_of_a_defense_it_is(defense, params, label):
    (group,) = groups_of([cell(defense, params=params)])
    assert [one.label for one in group.settings] == [label]


def test_what_is_lost_is_lost_against_no_protection_at_its_best():
    weak, strong = seeds("none", (0.6, 0.6), (1.0, 1.0)), seeds("none", (0.9, 0.9), (1.0, 1.0))
    strong = [retrained(one, epochs=30) for one in strong]
    noisy = seeds("sap", (0.8, 0.8), (0.5, 0.5), params={"eta": 75.0})
    untuned = seeds("untuned", (0.5, 0.5), (0.5, 0.5))

    def lost(records):
        (group,) = groups_of(records)
        (sap,) = (one for one in group.settings if one.defense == "sap")
        return group.cost(sap).points.value

    for made in ([*weak, *strong, *noisy], [*strong, *weak, *noisy]):
        assert lost([*made, *untuned]) == pytest.approx(10)
    # One that ran with fewer seeds has no partner for some of the others.
    assert lost([*weak, strong[0], *noisy, *untuned]) == pytest.approx(-20)


def test_more_seeds_of_a_weaker_training_are_no_reference():
    weak, strong = seeds("none", (0.6,) * 5, (1.0,) * 5), seeds("none", (0.9,) * 3, (1.0,) * 3)
    noisy = seeds("sap", (0.8,) * 3, (0.5,) * 3, params={"eta": 75.0})
    untuned = seeds("untuned", (0.5,) * 5, (0.5,) * 5)
    (group,) = groups_of([*weak, *(retrained(one, epochs=30) for one in strong), *noisy, *untuned])
    (sap,) = (one for one in group.settings if one.defense == "sap")
    assert group.cost(sap).points.value == pytest.approx(10)


def test_conditions_say_how_many_seeds_the_settings_have():
    plain, noisy = seeds("none", (0.9,) * 3, (1.0,) * 3), seeds("sap", (0.8,) * 5, (0.5,) * 5)
    (group,) = groups_of([*plain, *noisy])
    assert {one.conditions.rpartition(", ")[2] for one in group.settings} == {"3 to 5 seeds"}
    (group,) = groups_of([*plain, *noisy[:3]])
    assert {one.conditions.rpartition(", ")[2] for one in group.settings} == {"3 seeds"}


def test_other_precision_and_other_lengths_are_not_compared():
    short = [cell("none"), cell("sap", params={"eta": 75.0})]
    half = [cell("none", precision="bf16"), cell("sap", params={"eta": 75.0}, precision="bf16")]
    cut = [retrained(one, max_length=16) for one in short]

    def conditions(records):
        groups = [group.settings for group in groups_of(records)]
        assert all(len({one.conditions for one in own}) == 1 for own in groups)
        return {own[0].conditions: own for own in groups}

    found = conditions([*short, *half, *cut])
    assert [len(own) for own in found.values()] == [2, 2, 2]
    (other,) = [own for words, own in found.items() if "bf16" in words]
    assert {one.first.cell.train.precision for one in other} == {"bf16"}
    # The order of the records does not matter.
    assert list(conditions([*cut, *half, *short])) == list(found)


def test_without_an_undefended_setting_nothing_has_a_cost():
    (group,) = groups_of([cell("sap", params={"eta": 75.0}), cell("untuned", utility=0.1)])
    cost = group.cost(group.settings[0])
    assert (cost.points.is_missing, cost.reason) == (
        True,
        "nothing unprotected was measured beside it",
    )


def test_groups_that_words_do_not_distinguish_are_named_by_their_data_where_these_differ():
    one = cell("none")

    def groups(**other):
        two = one.cell.model_copy(update=other)
        return group_records([one, one.model_copy(update={"cell": two, "key": two.key})])

    def last(groups):
        return {words.split(", ")[-1] for words in describe_groups(groups).values()}

    assert last(groups(data_hash="ab" * 8)) == {
        f"data {one.cell.data_hash[:8]}",
        "data abababab",
    }
    found = groups(evaluate="test")
    assert last(found) == {f"setup {digits}" for digits in found}
    assert not any("data" in words for words in describe_groups(group_records([one])).values())


def test_what_a_customer_chooses_is_named_without_circumstances_and_with_a_mark_if_not_tuned():
    params = {"epsilon": 3.0, "canaries": "missed", "detector": "patterns"}
    missed = seeds("jft", (0.9, 0.9), (0.5, 0.5), params=params)
    found = seeds("jft", (0.9, 0.9), (0.5, 0.5), params=params | {"canaries": "masked"})
    (group,) = groups_of([*missed, *found])
    names = {setting.name: setting.choice for setting in group.settings}
    assert names == {
        "JFT, ε = 3, missed": "JFT, ε = 3, not tuned",
        "JFT, ε = 3, masked": "JFT, ε = 3, not tuned",
    }
    tuned = missed[0].provenance.model_copy(update={"trials": ("a",)})
    (group,) = groups_of(
        [one.model_copy(update={"provenance": tuned}) for one in [*missed, *found]]
    )
    assert {setting.choice for setting in group.settings} == {"JFT, ε = 3"}


def test_the_gain_of_tuning_is_above_guessing_the_most_common_class():
    """A random head that guesses the rarer class is no model that tuning improved."""
    common = [
        one.model_copy(update={"utility": estimate(0.7, 0.7)})
        for one in seeds("none", (0.7, 0.7, 0.7), (1.0, 1.0, 1.0))
    ]
    rare = [
        one.model_copy(update={"utility": estimate(0.3, 0.7)})
        for one in seeds("untuned", (0.3, 0.3, 0.3), (0.0, 0.0, 0.0))
    ]
    (group,) = groups_of([*common, *rare])
    assert group.gain.value == pytest.approx(0)
    (one,) = groups_of([common[0], rare[0]])
    learned, by_seed = gain_over(one.reference, one.untuned)
    assert (learned.value, by_seed) == (pytest.approx(0), {0: pytest.approx(0)})
