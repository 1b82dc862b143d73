"""Headlines, the cost of halving, where nothing works, and audits, on synthetic records."""

import pytest
from records import estimate, leak, record

from leakboard.bench.contracts import Channel, Claim, Goal
from leakboard.leaderboards.findings.answers import audits, halving, headlines, idle
from leakboard.leaderboards.findings.documents import front
from leakboard.leaderboards.tables.choices import choose
from leakboard.leaderboards.tables.results import results_table

LEAKS = {110: 0.93, 75: 0.5, 60: 0.2}


def sweep(
    utilities, task="sst2", seeds=3, leaks=LEAKS, twin=1.0, model="minilm", name="sap", **fields
):
    """SAP, or another defense, over η, with no protection, its twin and the untuned model."""
    cells, at = [], (task, model)
    for seed in range(seeds):
        d = seed / 1000
        cells += [
            record("none", {}, seed, 0.9 + d, [leak(twin)], *at, undefended=True),
            record(name, {"eta": None}, seed, 0.9, [leak(twin)], *at, undefended=True),
            record("untuned", {}, seed, 0.5, [], *at),
        ]
        cells += [
            record(name, {"eta": float(eta)}, seed, utilities[eta], [leak(leaks[eta] + d)], *at)
            for eta in leaks
        ]
    return [cell.model_copy(update=fields) for cell in cells]


CHEAP = {110: 0.89, 75: 0.885, 60: 0.7}
DEAR = {110: 0.89, 75: 0.8, 60: 0.7}


def sentences(rule, records):
    return [one.sentence for one in rule(results_table(records))]


def test_what_a_budget_buys_is_one_sentence_for_all_tasks_on_which_little_is_hidden():
    (one,) = headlines(results_table([*sweep(DEAR), *sweep(DEAR, "mrpc")]))
    assert one.sentence == (
        "Within 3 points, the most that is hidden of inputs on MRPC and SST-2 is 7 % "
        "(on MRPC, not tuned)."
    )
    assert len(one.keys) == 6


def test_a_defense_that_hides_much_within_the_budget_is_named_with_its_cost():
    (said,) = sentences(headlines, sweep(CHEAP, leaks={110: 0.93, 75: 0.3, 60: 0.2}))
    assert said.startswith(
        "SAP, η = 75, not tuned, hides 74 % of the inputs on SST-2, for 1.6 points"
    )


def test_where_the_budget_buys_nothing_the_cheapest_that_helps_is_told_with_its_cost():
    (said,) = sentences(headlines, sweep({110: 0.86, 75: 0.8, 60: 0.7}))
    assert said == (
        "Within 3 points, nothing measured clearly protects inputs on SST-2: the cheapest, "
        "SAP, η = 110, not tuned, leaks 93 % for 4.1 points (3.9 to 4.3)."
    )


def test_a_setting_that_halving_tells_of_is_no_headline_as_well():
    dear = sweep({110: 0.86, 75: 0.8, 60: 0.7}, leaks={110: 0.3, 75: 0.2, 60: 0.1})
    assert sentences(headlines, dear) == []
    (said,) = sentences(halving, dear)
    assert said.startswith("Hiding half of the inputs on SST-2 costs 4.1 of")


def test_the_front_counts_settings_with_five_seeds_only():
    many, few = sweep(DEAR, seeds=5), sweep(DEAR, "mrpc", leaks={110: 0.3, 75: 0.2, 60: 0.1})
    assert front(results_table([*many, *few])) == front(results_table(many))
    assert "the most that is hidden of inputs on SST-2 is 7 % (SAP, η = 110" in front(
        results_table(many)
    )


def test_the_front_counts_all_settings_where_none_has_five_seeds():
    assert "the most that is hidden of inputs on SST-2 is 7 %" in front(results_table(sweep(DEAR)))


def test_no_setting_is_called_too_dear_whose_cost_may_lie_within_the_budget():
    rising = sweep({110: 0.86, 75: 0.8, 60: 0.7})
    wild = [
        one.model_copy(update={"utility": estimate(0.86 + (0.04, -0.04, 0.0)[one.cell.seed])})
        if one.cell.defense.params.get("eta") == 110
        else one
        for one in rising
    ]
    assert len(sentences(headlines, rising)) == 1
    assert sentences(headlines, wild) == []


def test_a_task_on_which_tuning_gains_less_than_the_budget_has_no_headline():
    hardly = [
        one.model_copy(update={"utility": estimate(0.88)})
        if one.cell.defense.name == "untuned"
        else one
        for one in sweep(CHEAP, leaks={110: 0.93, 75: 0.3, 60: 0.2})
    ]
    assert sentences(headlines, hardly) == []


def test_half_is_hidden_at_the_least_cost_unless_the_budget_affords_it():
    (said,) = sentences(halving, sweep({110: 0.89, 75: 0.8, 60: 0.7}, leaks=LEAKS | {75: 0.4}))
    assert said.startswith(
        "Hiding half of the inputs on SST-2 costs 10.1 of the 40.1 points gained "
        "(SAP, η = 75, not tuned, hides 63 %; "
    )
    assert sentences(halving, sweep(CHEAP, leaks=LEAKS | {75: 0.4})) == []
    assert sentences(halving, sweep(DEAR, leaks=dict.fromkeys(LEAKS, 0.9))) == []


def test_half_is_hidden_by_a_setting_that_still_learns_wherever_one_does():
    """At η = 60 a tenth of what tuning gains is left, and 77 % of it at η = 75."""
    worn = {110: 0.89, 75: 0.81, 60: 0.54}
    (learns,) = sentences(halving, sweep(worn, leaks=LEAKS | {75: 0.4}))
    assert learns.startswith("Hiding half of the inputs on SST-2 costs 9.1 of the 40.1 points")
    (nearly_nothing,) = sentences(halving, sweep(worn, leaks=LEAKS | {75: 0.8}))
    assert nearly_nothing == (
        "No measured setting that still learns hides half of the inputs on SST-2: SAP, η = 60, not tuned, "
        "costs 36.1 of the 40.1 points (35.9 to 36.3)."
    )
    cell = (
        "| none that still learns; 36.1 of the 40.1 points (SAP, η = 60, not tuned; hides 84 %) |"
    )
    assert cell in front(results_table(sweep(worn, leaks=LEAKS | {75: 0.8})))


@pytest.mark.parametrize("name", ["sap", "rapt"])
def test_a_setting_that_still_learns_halves_before_a_cheaper_one_that_does_not(name):
    """On other data of the task, tuning gains less, so a model that learned nothing is cheap."""
    worn = sweep({110: 0.89, 75: 0.81, 60: 0.54}, leaks=LEAKS | {75: 0.4})
    small = [
        one.model_copy(update={"cell": one.cell.model_copy(update={"data_hash": "0" * 64})})
        for one in sweep({50: 0.825}, leaks={50: 0.1}, name=name)
    ]
    small = [
        one.model_copy(update={"utility": estimate(0.82)})
        if one.cell.defense.name == "untuned"
        else one
        for one in small
    ]
    (said,) = sentences(halving, [*worn, *small])
    assert said.startswith("Hiding half of the inputs on SST-2 costs 9.1 of the 40.1 points")


def test_a_budget_names_all_defenses_that_measurements_do_not_distinguish():
    def with_cti(utility, leaks=0.93):
        return sweep(DEAR) + [
            record("sap-cti", {"eta": 110.0}, seed, utility[seed], [leak(leaks)], "sst2", "minilm")
            for seed in range(3)
        ]

    def shown(records):
        return front(results_table(records)).splitlines()[2].split(" | ")[2]

    assert (
        shown(with_cti((0.895, 0.885, 0.888)))
        == "93 % (SAP, η = 110, not tuned, or SAP-CTI, η = 110, not tuned)"
    )
    equal = results_table(with_cti((0.895, 0.885, 0.888)))
    assert [row.defense for row in choose(equal, "sst2", "inputs").equals] == ["sap-cti"]
    (told,) = headlines(equal)
    assert len(told.keys) == 6
    assert shown(with_cti((0.88, 0.88, 0.88))) == "93 % (SAP, η = 110, not tuned)"
    assert shown(with_cti((0.895, 0.885, 0.888), 0.97)) == "93 % (SAP, η = 110, not tuned)"


def test_costs_on_other_data_are_not_called_equal():
    other = [
        one.model_copy(update={"cell": one.cell.model_copy(update={"data_hash": "0" * 64})})
        for one in sweep({110: 0.875}, leaks={110: 0.93}, name="rapt")
    ]
    choice = choose(results_table(sweep(DEAR) + other), "sst2", "inputs")
    assert choice.setting.defense == "sap"
    assert choice.equals == ()


def test_a_gain_that_may_lie_within_the_budget_has_no_headline():
    """All of SAP's models are five points above the untuned ones, and no protection 10, 4 and 0."""
    rising = (0.80, 0.86, 0.90)

    def moved(one):
        add = {"untuned": 0.0, "sap": 0.05}.get(one.cell.defense.name)
        if add is None or one.undefended:
            return one
        return one.model_copy(update={"utility": estimate(rising[one.cell.seed] + add)})

    wild = sweep({75: 0.9}, leaks={75: 0.3})
    assert len(sentences(headlines, wild)) == 1
    assert sentences(headlines, map(moved, wild)) == []


def test_models_are_told_apart_and_an_unusual_one_is_named():
    leaks, cheaper = LEAKS | {75: 0.4}, DEAR | {75: 0.85}
    both = sweep(DEAR, leaks=leaks) + sweep(cheaper, leaks=leaks, model="mpnet")
    usual, larger = sentences(halving, both)
    assert usual.startswith("Hiding half of the inputs on SST-2 costs 10.1 of")
    assert larger.startswith("Hiding half of the inputs on SST-2 with MPNet costs 5.1 of")
    (one,) = headlines(results_table(both))
    assert (
        "of inputs on SST-2 with MPNet and SST-2 is 7 % (on SST-2 with MPNet, not tuned)."
        in one.sentence
    )


def test_a_cost_stands_beside_what_its_own_training_hides():
    """Trained longer, SAP leaks 40 % to an attack that did not run after two epochs, and costs twice as much."""
    cells, everything = sweep({75: 0.8}, leaks={75: 0.1}), [leak(1.0), leak(1.0, "eia-bayes")]
    for seed in range(3):
        for epochs in (2, 30):
            off = {"epochs": epochs, "undefended": True}
            cells.append(record("none", {}, seed, 0.9, everything, "sst2", **off))
        cells.append(record("sap", {"eta": None}, seed, 0.9, everything, "sst2", **off))
        cells.append(record("untuned", {}, seed, 0.5, [], "sst2", epochs=30))
        found = [leak(0.1), leak(0.4 + seed / 1000, "eia-bayes")]
        cells.append(record("sap", {"eta": 75.0}, seed, 0.7, found, "sst2", epochs=30))
    unique = {one.key: one for one in cells}
    (said,) = sentences(halving, list(unique.values()))
    assert "costs 10.0 of" in said
    assert "(SAP, η = 75, epochs = 2, not tuned, hides 95 %, another training 63 %; " in said


def test_a_goal_on_which_no_attack_works_is_said_with_the_tasks_and_the_largest_advantage():
    weak = [*sweep(DEAR, twin=0.2), *sweep(DEAR, "mrpc", twin=0.15)]
    (one,) = idle(results_table(weak))
    assert one.sentence.startswith("On MRPC and SST-2, no protection of inputs can be judged: ")
    assert "`eia-nn`, the strongest attack, reaches an advantage of only 0.16" in one.sentence
    assert sentences(idle, sweep(DEAR)) == []


def audit(bound, right, ceiling, attack="membership"):
    """An audit of 100 coins; by its guesses `right` of the 50 highest ranks are members."""
    member = [1] * right + [0] * (50 - right) + [1] * (50 - right) + [0] * right
    ranks = [2 * (100 - i) for i in range(100)]
    return leak(
        0.6,
        attack,
        Goal.MEMBERSHIP,
        0.5,
        channel=Channel.MODEL,
        epsilon=bound,
        epsilon_ceiling=ceiling,
        raw={"twice_rank": ranks, "member": member},
    )


def audited(bound, right=50, ceiling=9.0, epsilon=2.0, unit="example", more=()):
    """DP-SGD at a claimed ε, of which an audit proves a bound, and without noise, where it guesses so many right."""
    claim = Claim(guarantee="dp", parameters={"epsilon": epsilon}, covers="all", unit=unit)
    cells = []
    for seed in range(3):
        own = [audit(bound, 25, ceiling), *more]
        plain = [
            audit(0.0, right, ceiling),
            *(audit(0.0, 25, ceiling, one.attack.name) for one in more),
        ]
        cells += [
            record("dpsgd", {"epsilon": epsilon}, seed, 0.8, own, claim=claim),
            record("dpsgd", {"epsilon": None}, seed, 0.9, plain, undefended=True),
        ]
    return cells


def test_an_audit_is_told_beside_the_claim_and_what_it_proves_without_the_noise():
    (one,) = audits(results_table(audited(0.5)))
    assert one.sentence.startswith(
        "An audit does not contradict DP-SGD's ε = 2 on reviews: it proves ε ≥ 0.50, and ε ≥ "
    )
    assert one.value.value == pytest.approx(0.5)
    (said,) = sentences(audits, audited(2.5))
    assert said.startswith("An audit contradicts DP-SGD's ε = 2 on reviews")


def test_an_audit_that_cannot_fail_is_left_out():
    assert sentences(audits, audited(0.5, ceiling=1.9)) == []
    assert sentences(audits, audited(0.5, right=26)) == []
    assert sentences(audits, audited(0.5, unit="label")) == []


def test_the_attack_that_audits_is_chosen_by_what_it_proves_without_the_noise():
    luckier = audit(2.5, 25, 9.0, "rmia")
    (one,) = audits(results_table(audited(0.5, more=[luckier])))
    assert one.attack == "membership"
    assert "does not contradict" in one.sentence
