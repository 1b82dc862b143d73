"""What pairs of settings say about printed claims."""

import pytest
from records import PROVENANCE, leak, record

from leakboard.bench.contracts import Channel, Goal
from leakboard.leaderboards.tables.claims import PrintedClaim, claim_verdicts, joint_answer
from leakboard.leaderboards.tables.results import results_table

CLAIM = {
    "id": "p3eft-hides-labels",
    "paper": "P3EFT",
    "where": "Section 4",
    "claim": "P³EFT leaks less than no protection.",
    "goal": "label",
    "metric": "leakage",
    "task": ["sst2"],
    "a": {"defense": "p3eft"},
    "b": {"defense": "none"},
    "expect": "less",
}
NOISY = (0.3, -0.3, 0.25)


def claim(**fields):
    return PrintedClaim.model_validate(CLAIM | fields)


def labels(share, attack="unmix", channel=Channel.GRADIENTS):
    return leak(0.5 + share / 2, attack, Goal.LABEL, 0.5, channel=channel)


def at(level):
    return lambda seed: level + seed / 1000


def about(level):
    return lambda seed: level + NOISY[seed]


UTILITY, NOTHING = at(0.9), at(0.0)


def cells(defense, params, share, utility=UTILITY, task="sst2", leaks=None, **fields):
    made = []
    for seed in range(3):
        own = [labels(share(seed))] if leaks is None else leaks(seed)
        made.append(record(defense, params, seed, utility(seed), own, task, **fields))
    return made


def plain(task="sst2", utility=UTILITY, leaks=None):
    return cells("none", {}, lambda seed: 1.0, utility, task, leaks, undefended=True)


def p3eft(share, weight=0.1, **fields):
    return cells("p3eft", {"weight": weight}, share, **fields)


def frozen(share=NOTHING):
    return cells("frozen", {}, share)


def verdict(claim, *records):
    (one,) = claim_verdicts(results_table([r for own in records for r in own]), [claim])
    return one


def test_a_clear_difference_as_claimed_replicates_it_and_the_other_way_contradicts_it():
    assert verdict(claim(), plain(), p3eft(at(0.5))).answer == "replicated"
    more = claim(expect="more")
    assert verdict(more, plain(), p3eft(at(0.5))).answer == "contradicted"


def test_what_seeds_leave_open_is_undecided_and_says_what_is_excluded():
    one = verdict(claim(size=-0.9), plain(), p3eft(about(0.65)))
    assert one.answer == "undecided"
    assert one.words()[4].startswith("below -")
    assert not one.size_is_excluded
    tight = verdict(claim(size=-0.9), plain(), p3eft(at(0.999)))
    assert tight.size_is_excluded
    assert tight.words()[4] in ("the printed -0.90", "–")


def test_the_excluded_size_of_an_undecided_gain_is_the_printed_one():
    gain = claim(metric="utility", goal=None, expect="more", size=2.5, b={"defense": "sap"})
    sap = cells("sap", {"eta": 75.0}, at(1.0), at(0.8))
    mine = p3eft(at(1.0), utility=lambda seed: 0.8 + (0.008, -0.004, 0.0)[seed])
    one = verdict(gain, sap, mine)
    assert one.answer == "undecided"
    assert one.size_is_excluded
    assert one.words()[2:] == (
        "0.0 [-1.7, 1.7] points, 3 seeds; printed 2.5",
        "undecided",
        "the printed 2.5",
    )


def test_the_excluded_size_of_a_replicated_gain_is_told_too():
    gain = claim(metric="utility", goal=None, expect="more", size=2.5, b={"defense": "sap"})
    sap = cells("sap", {"eta": 75.0}, at(1.0), at(0.8))
    mine = p3eft(at(1.0), utility=lambda seed: 0.814 + (0.0004, -0.0004, 0.0)[seed])
    assert verdict(gain, sap, mine).words()[3:] == ("replicated", "the printed 2.5")
    near = claim(metric="utility", goal=None, expect="more", size=1.4, b={"defense": "sap"})
    assert verdict(near, sap, mine).words()[3:] == ("replicated", "–")


def test_pairs_with_the_frozen_encoder_decide_nothing_about_no_protection():
    one = verdict(claim(), p3eft(at(0.5)), frozen(at(0.9)))
    assert one.answer == "not measured"
    assert one.differences == ()
    assert one.reason == "no pair of settings was measured"
    # The frozen encoder beside the others changes nothing.
    both = verdict(claim(), plain(), p3eft(about(0.65)), frozen())
    assert both.answer == "undecided"
    assert {(d.a.defense, d.b.defense) for d in both.differences} == {("p3eft", "none")}


def test_one_clear_pair_among_undecided_ones_decides_and_a_contrary_one_contradicts():
    open_ = p3eft(about(0.65), weight=0.3)
    assert verdict(claim(), plain(), p3eft(at(0.5)), open_).answer == "replicated"
    more = claim(
        metric="success", expect="less", b={"defense": "dc"}, pair_by=[], task=["sst2", "mrpc"]
    )
    dc = cells("dc", {"weight": 0.5}, at(0.7))
    dc_mrpc = cells("dc", {"weight": 0.5}, at(0.3), task="mrpc")
    mine = p3eft(at(0.5))
    mine_mrpc = p3eft(at(0.6), task="mrpc")
    on_one = more.model_copy(update={"task": ("sst2",)})
    assert verdict(on_one, dc, mine).answer == "replicated"
    assert verdict(more, dc, mine, dc_mrpc, mine_mrpc).answer == "contradicted"


def test_a_claim_about_two_tasks_is_replicated_if_it_is_clear_on_both():
    less = claim(metric="success", b={"defense": "none"}, task=["sst2", "mrpc"])
    here = plain(), p3eft(at(0.5))
    there = plain("mrpc"), p3eft(at(0.5), task="mrpc")
    assert verdict(less, *here).answer == "undecided"
    assert verdict(less, *here, *there).answer == "replicated"
    assert (
        verdict(less, *here, plain("mrpc"), p3eft(about(0.65), task="mrpc")).answer == "undecided"
    )


def test_equality_is_not_replicated_beside_a_pair_whose_mean_lies_beyond_the_margin():
    equal = claim(metric="utility", goal=None, expect="equal", margin=1)
    near = p3eft(at(1.0), utility=at(0.902))
    spread = p3eft(at(1.0), weight=0.3, utility=lambda seed: 0.9 + (0.02, 0.05, -0.01)[seed])
    assert verdict(equal, plain(), near, spread).answer == "undecided"


def test_equality_asks_for_equal_training_or_tuning():
    equal = claim(metric="utility", goal=None, expect="equal", margin=1)
    longer = [
        r.model_copy(
            update={
                "cell": r.cell.model_copy(
                    update={"train": r.cell.train.model_copy(update={"epochs": 9})}
                )
            }
        )
        for r in p3eft(at(1.0), utility=at(0.902))
    ]
    assert verdict(equal, plain(), longer).answer == "not measured"


def tuned(records):
    told = PROVENANCE.model_copy(update={"trials": ("a", "b")})
    return [r.model_copy(update={"provenance": told}) for r in records]


def test_a_pair_without_tuning_says_nothing_beside_a_tuned_one_of_the_same_model():
    equal = claim(metric="utility", goal=None, expect="equal", margin=1)
    worse, near = at(0.85), at(0.902)
    untuned = [plain(), p3eft(at(1.0), utility=worse)]
    assert verdict(equal, *untuned).answer == "contradicted"
    best = [
        tuned(cells("none", {}, at(1.0), undefended=True, epochs=5)),
        tuned(cells("p3eft", {"weight": 0.1}, at(1.0), near, epochs=5)),
    ]
    told = verdict(equal, *untuned, *best)
    assert (told.answer, len(told.differences)) == ("replicated", 1)
    other = [
        tuned(cells("none", {}, at(1.0), undefended=True, model="mpnet")),
        tuned(cells("p3eft", {"weight": 0.1}, at(1.0), near, model="mpnet")),
    ]
    assert verdict(equal, *untuned, *other).answer == "contradicted"


def test_the_reported_pair_does_not_depend_on_what_the_paper_prints():
    near, precise = p3eft(lambda seed: 0.7 + NOISY[seed] / 9), p3eft(at(0.5), weight=0.3)
    told = verdict(claim(size=-0.3), plain(), near, precise)
    assert told.speaking.a.setting.params == '{"weight": 0.3}'


def test_a_pair_that_is_clear_without_correction_alone_decides_nothing():
    # p is about 0.03, which is clear by itself and not beside three others.
    luck = p3eft(lambda seed: 0.9 + (0.02, -0.02, -0.01)[seed], weight=0.2)
    alone = verdict(claim(), plain(), luck)
    assert alone.answer == "replicated"
    others = [p3eft(about(0.65), weight=weight) for weight in (0.01, 0.3, 0.5)]
    p = alone.differences[0].p
    assert 0.0125 < p < 0.05
    assert verdict(claim(), plain(), luck, *others).answer == "undecided"


def test_equality_is_replicated_inside_the_margin_alone():
    equal = claim(metric="utility", goal=None, expect="equal", margin=1)
    assert verdict(equal, plain(), p3eft(at(1.0), utility=at(0.902))).answer == "replicated"
    wide = lambda seed: 0.9 + (0.02, -0.02, 0.01)[seed]  # noqa: E731
    assert verdict(equal, plain(), p3eft(at(1.0), utility=wide)).answer == "undecided"
    far = verdict(equal, plain(), p3eft(at(1.0), utility=lambda s: 0.8 + s / 500))
    assert far.answer == "contradicted"


def test_the_papers_own_attacks_decide_where_they_are_named():
    def leaks(own, other):
        return lambda seed: [
            labels(own + seed / 1000, "spectral", Channel.ACTIVATIONS),
            labels(other, "unmix"),
        ]

    settings = [plain(leaks=leaks(1.0, 1.0)), p3eft(None, leaks=leaks(0.3, 1.0))]
    assert verdict(claim(), *settings).answer == "contradicted"
    by_authors = claim(metric="success", attacks=["spectral"])
    assert verdict(by_authors, *settings).answer == "replicated"
    elsewhere = claim(metric="success", attacks=["spectral"], channel="gradients")
    assert verdict(elsewhere, *settings).answer == "not measured"


def test_claims_of_one_breath_are_replicated_only_together():
    hides = claim(id="hides", group="both")
    free = claim(id="free", group="both", metric="utility", goal=None, expect="equal", margin=1)
    table = results_table([*plain(), *p3eft(at(0.5), utility=lambda s: 0.9 + NOISY[s] / 10)])
    found = claim_verdicts(table, [hides, free])
    assert [one.answer for one in found] == ["replicated", "undecided"]
    assert {one.whole for one in found} == {"undecided"}
    assert found[0].words()[3] == "replicated; with its other parts undecided"


@pytest.mark.parametrize(
    ("answers", "whole"),
    [
        (["replicated", "replicated"], "replicated"),
        (["replicated", "undecided"], "undecided"),
        (["replicated", "not measured"], "undecided"),
        (["undecided", "contradicted"], "contradicted"),
        (["not measured", "not measured"], "not measured"),
    ],
)
def test_parts_make_a_whole(answers, whole):
    assert joint_answer(answers) == whole


def test_what_is_far_below_the_printed_size_is_said_to_be_much_smaller():
    one = verdict(claim(size=-0.9), plain(), p3eft(at(0.9)))
    assert one.answer == "replicated"
    assert one.is_much_smaller
    assert one.words()[3] == "replicated in direction, much smaller"
    assert not verdict(claim(size=-0.15), plain(), p3eft(at(0.9))).is_much_smaller


def test_what_was_not_tuned_alike_is_not_measured_and_says_why():
    equal = claim(metric="utility", goal=None, expect="equal", margin=1)
    tuned = [
        one.model_copy(update={"provenance": one.provenance.model_copy(update={"trials": ("a",)})})
        for one in p3eft(at(1.0))
    ]
    one = verdict(equal, plain(), tuned)
    assert one.answer == "not measured"
    assert "they were not tuned alike" in one.reason
    assert one.words()[2] == one.reason


def test_perplexities_are_compared_seed_by_seed():
    def with_perplexity(records, level):
        return [
            one.model_copy(
                update={
                    "measures": {
                        "perplexity per token": one.utility.model_copy(
                            update={"value": level + one.cell.seed / 10}
                        )
                    }
                }
            )
            for one in records
        ]

    raises = claim(metric="perplexity", goal=None, expect="more", size=6.1)
    one = verdict(raises, with_perplexity(plain(), 14.0), with_perplexity(p3eft(at(1.0)), 20.0))
    assert one.answer == "replicated"
    assert one.speaking.mean.value == pytest.approx(6.0)


def test_a_difference_too_small_to_matter_contradicts_a_claim_of_one():
    equal = verdict(claim(size=-0.9), plain(), p3eft(at(1.0)))
    assert (equal.answer, equal.is_negligible) == ("contradicted", True)
    assert equal.words()[3] == "contradicted: less than 0.05"
    assert equal.speaking is not None
    # Clear in direction, and still too small; a larger one is replicated, and a wide interval is open.
    small = verdict(claim(), plain(), p3eft(lambda seed: 0.97 - seed / 1000))
    assert small.speaking.verdict == "less"
    assert (small.answer, small.is_negligible) == ("contradicted", True)
    assert verdict(claim(), plain(), p3eft(at(0.9))).answer == "replicated"
    assert verdict(claim(), plain(), p3eft(about(0.65))).answer == "undecided"


def test_one_pair_that_leaves_room_keeps_a_claim_open():
    assert verdict(claim(), plain(), p3eft(at(1.0)), p3eft(about(0.65), 0.3)).answer == "undecided"


def test_what_matters_is_the_printed_size_if_that_is_smaller():
    dearer = {"metric": "utility", "goal": None, "expect": "less", "task": ["sst2"]}
    slight = [*plain()], [*p3eft(at(1.0), utility=at(0.893))]
    assert claim(**dearer).least == 1.0
    assert verdict(claim(**dearer), *slight).answer == "contradicted"
    assert verdict(claim(**dearer, size=-0.5), *slight).answer == "replicated"


def test_attacks_that_read_nothing_show_no_equality():
    blind = claim(a={"defense": "p3eft"}, b={"defense": "dc"}, metric="success")
    nothing = [cells("dc", {"weight": 0.5}, at(0.0)), p3eft(at(0.0))]
    assert verdict(blind, *nothing).answer == "undecided"


def test_a_claim_may_name_a_model():
    about_minilm = claim(a={"defense": "p3eft", "model": "minilm"})
    about_mpnet = claim(a={"defense": "p3eft", "model": "mpnet"})
    records = [*plain(), *p3eft(at(0.5))]
    assert {one.cell.model for one in records} == {"minilm"}
    assert verdict(about_minilm, records).answer == "replicated"
    assert verdict(about_mpnet, records).answer == "not measured"
