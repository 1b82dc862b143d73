"""Each claim follows from the records by its rule, and from nothing else."""

from __future__ import annotations

import dataclasses

import pytest
from claims import CHANCE, OPEN, PLAIN, TWIN, cells, found, labels
from records import estimate, leak, record

from leakboard.bench.contracts.threat import Channel, Claim, Goal
from leakboard.defenses.jft import JFT
from leakboard.defenses.rapt import RAPT
from leakboard.defenses.redacted import Redacted
from leakboard.defenses.sap import SAP
from leakboard.leaderboards.findings import overview
from leakboard.leaderboards.findings.every import RULES, findings
from leakboard.leaderboards.findings.finding import listed, protects
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.verdicts import Verdict


def test_what_leaks_at_every_setting_of_a_defense_that_is_made_against_something_else_is_told():
    mild = cells("sap", {"eta": 100.0}, [labels(0.95)])
    strong = cells("sap", {"eta": 50.0}, [labels(0.8)])
    (one,) = found("elsewhere", PLAIN, mild, strong)
    assert one.claim == (
        "On reviews with minilm, sap, made to hide inputs and attributes, gives away labels at each of 2 "
        "settings: where least is found, at sap η=50, spectral reaches 0.800 [0.800, 0.800] (token "
        "accuracy; guessing 0.500)."
    )
    assert (one.figure, one.attack, one.n, one.seeds) == (0.8, "spectral", 400, 2)
    assert set(one.keys) == {r.key for r in [*mild, *strong]}
    # Where one setting hides them, that is no claim about all.
    assert found("elsewhere", PLAIN, mild, cells("sap", {"eta": 25.0}, [labels(0.5)])) == []
    # What it is made against is not elsewhere.
    inputs = cells("sap", {"eta": 50.0}, [leak(0.8, chance=CHANCE)])
    assert found("elsewhere", PLAIN, inputs) == []


def test_the_answer_counts_defenses_and_says_where_the_untuned_model_may_be_as_useful():
    strong = cells("sap", {"eta": 75.0}, [leak(0.2, chance=CHANCE)], (0.8, 0.8))
    open_ = cells("dc", {"weight": 0.1}, [leak(0.99, chance=CHANCE)])

    def answer(untuned):
        told = found(
            "overview", PLAIN, TWIN, strong, open_, cells("untuned", {}, [], (untuned,) * 2)
        )
        (one,) = [one for one in told if one.claim.startswith("Inputs on reviews (minilm)")]
        return one.claim

    assert (
        "1 of 2 defenses protects them, 1 leaks them; most is kept by sap η=75, 1.000 ["
        in answer(0.6)
    )
    assert answer(0.6).endswith("of their privacy, for 10.0 [10.0, 10.0] points of utility.")
    assert answer(0.8).endswith(" points of utility, while the untuned model may be as useful.")


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (0.1, "1 of 2 defenses protects them, 1 leaks them; most is kept by sap η=75, 1.000 ["),
        (
            0.3,
            "none of 2 defenses protects them, 1 partly, 1 leaks them; most is kept by sap η=75, 0.875 [",
        ),
        (
            0.97,
            "none of 2 defenses protects them, 2 leak them; even of sap η=75 eia-map reaches 0.970 [",
        ),
    ],
)
def test_what_is_read_of_a_setting_in_another_comparison_counts_in_the_answer(read, told):
    here = [cells("sap", {"eta": 75.0}, [leak(0.2, chance=CHANCE)], (0.8, 0.8))]
    here.append(cells("dc", {"weight": 0.1}, [leak(0.99, chance=CHANCE)]))
    more = {"limit": 4000}  # another comparison, of fewer defenses
    strong = [leak(read, "eia-map", chance=CHANCE), leak(0.2, chance=CHANCE)]
    open_ = [*OPEN, leak(0.99, "eia-map", chance=CHANCE)]
    there = [
        cells("none", {}, open_, undefended=True, **more),
        cells("sap", {"eta": None}, open_, undefended=True, **more),
        cells("sap", {"eta": 75.0}, strong, **more),
    ]
    claims = {one.claim: one for one in found("overview", PLAIN, TWIN, *here, *there)}
    (claim,) = [claim for claim in claims if claim.startswith("Inputs on reviews (minilm)")]
    assert claim.removeprefix("Inputs on reviews (minilm): ").startswith(told)
    elsewhere = read > 0.2
    assert ("at most 4,000 examples per split" in claim) == ("per split" in claim) == elsewhere
    assert ({r.key for r in there[-1]} <= {*claims[claim].keys}) == elsewhere


def test_the_answer_is_in_words_for_one_defense_and_for_many():
    strong = cells("sap", {"eta": 75.0}, [leak(0.2, chance=CHANCE)], (0.8, 0.8))
    other = cells("dpnr", {"epsilon": 2.0}, [leak(0.2, chance=CHANCE)], (0.8, 0.8))
    open_ = [
        cells(name, params, [leak(0.99, chance=CHANCE)])
        for name, params in (("dc", {"weight": 0.1}), ("frozen", {}))
    ]

    def answer(*defended):
        told = found("overview", PLAIN, TWIN, *defended)
        (one,) = [one for one in told if one.claim.startswith("Inputs on reviews (minilm)")]
        return one.claim.removeprefix("Inputs on reviews (minilm): ")

    assert answer(strong).startswith("the one defense there protects them; sap η=75 keeps 1.000 [")
    assert answer().startswith("the one defense there leaks them; of sap η=none eia-nn reaches ")
    assert answer(*open_).startswith("none of 3 defenses protects them, 3 leak them; even of ")
    assert answer(strong, other, *open_).startswith(
        "1 of 4 defenses protects them, 2 leak them, 1 not shown; most is kept by sap η=75, "
    )
    hidden = [Verdict.PROTECTS, Verdict.LEAKS, Verdict.PROTECTS, Verdict.PARTLY]
    assert overview._counted(hidden, "it") == ("2 of 4 defenses protect it, 1 partly, 1 leaks it")


def test_a_setting_says_what_happens_to_what_it_is_made_to_hide_alone():
    both = [leak(0.5, chance=CHANCE), labels(0.95)]
    (one,) = found("setting", PLAIN, TWIN, cells("sap", {"eta": 75.0}, both))
    assert "lowers the leak of inputs: eia-nn reaches 0.500" in one.claim
    assert protects("sap") == {Goal.INVERSION, Goal.ATTRIBUTE}
    assert protects("frozen") == {Goal.LABEL}
    assert protects("dpsgd") == protects("redacted") == {Goal.MEMORISATION, Goal.MEMBERSHIP}
    assert protects("not-known-here") == set(Goal)


def test_what_the_untrained_model_tells_is_no_leak_of_a_defense():
    told = labels(0.8).model_copy(update={"floor": estimate(0.85, 0.5)})
    assert found("elsewhere", PLAIN, cells("sap", {"eta": 50.0}, [told])) == []
    told = labels(0.9).model_copy(update={"floor": estimate(0.85, 0.5)})
    (one,) = found("elsewhere", PLAIN, cells("sap", {"eta": 50.0}, [told]))
    assert "guessing 0.500, the untrained model 0.850)" in one.claim


def test_cells_that_differ_in_precision_alone_are_paired_seed_by_seed_leak_by_leak():
    def sap(precision, utilities, gap=0.0, **fields):
        return [
            record(
                "sap",
                {"eta": 75.0},
                seed,
                utility,
                [leak(0.4 + gap * (2 * seed + 1)), labels(0.7)],
                precision=precision,
                **fields,
            )
            for seed, utility in enumerate(utilities)
        ]

    plain, short = sap("float32", (0.9, 0.8)), sap("bf16", (0.88, 0.78), gap=0.01)
    twins = [*PLAIN, *cells("none", {}, OPEN, undefended=True, precision="bf16")]
    changed, same = sorted(found("precision", twins, plain, short), key=lambda one: -one.figure)
    assert changed.claim == (
        "On reviews with minilm, sap η=75 in bf16 instead of float32 loses 2.000 [2.000, 2.000] points of "
        "accuracy, paired over 2 seeds; of 2 leaks 1 is the same, the largest difference of a success is "
        "0.020 [-0.107, 0.147] (eia-nn on representations), and none of the differences is clear of 0."
    )
    assert set(changed.keys) == {r.key for r in [*plain, *short]}
    assert same.claim.endswith("points of accuracy, paired over 2 seeds; all 2 leaks are the same.")
    # What differs in anything else, too, says nothing about the precision.
    longer = sap("bf16", (0.5, 0.5), epochs=9)
    assert found("precision", PLAIN, plain, longer) == []
    untuned = [record("untuned", {}, 0, 0.5, [], precision=one) for one in ("float32", "bf16")]
    (alone,) = found("precision", twins, untuned)
    assert ", none in bf16 instead of float32" in alone.claim


def test_attacks_that_read_clearly_more_than_those_of_the_authors_are_told_where_they_do_most():
    def p3eft(weight, theirs, unmix):
        return cells("p3eft", {"weight": weight}, [labels(theirs), labels(unmix, "unmix")])

    (one,) = found("authors", PLAIN, p3eft(0.1, 0.8, 1.0), p3eft(0.3, 0.6, 1.0))
    assert one.settings == ("p3eft weight=0.3",)
    assert "keeps 0.80 of the privacy of labels that guessing leaves, by the attacks" in one.claim
    assert "(spectral), and 0.00 by the strongest: unmix reaches 1.000" in one.claim
    assert found("authors", PLAIN, p3eft(0.1, 0.8, 0.8)) == []


def test_a_refined_defense_is_compared_seed_by_seed_at_equal_parameters():
    def pair(eta, plain, refined):
        return [
            *cells("sap", {"eta": eta}, [leak(0.5)], plain),
            *cells("sap-cti", {"eta": eta, "share": 0.01}, [leak(0.5)], refined),
        ]

    # Paired, both seeds gain two points, however far apart they are.
    sure = pair(90.0, (0.80, 0.90), (0.82, 0.92))
    unsure = pair(75.0, (0.70, 0.80), (0.75, 0.78))
    (one,) = found("variants", PLAIN, sure, unsure)
    assert "+2.0 [+2.0, +2.0] at η = 90 (inputs read +0.0 [+0.0, +0.0]) and +1.5 [" in one.claim
    assert one.claim.endswith("points of accuracy: a gain is clear at η = 90.")
    assert (one.figure, one.seeds, one.attack) == (pytest.approx(2.0), 2, "")
    assert one.settings == ("sap-cti η=90", "sap-cti η=75")
    (none,) = found("variants", PLAIN, unsure)
    assert none.claim.endswith("no gain is shown.")
    # Other noise is no pair, and one seed no interval.
    apart = [*cells("sap", {"eta": 60.0}, []), *cells("sap-cti", {"eta": 50.0}, [])]
    assert found("variants", PLAIN, apart) == []
    once = [r for r in sure if r.cell.seed == 0]
    assert found("variants", PLAIN, once) == []


def test_a_refined_defense_is_compared_with_what_was_trained_alike_else_with_the_plain_one_at_its_best():
    def sap(utility, epochs):
        return cells("sap", {"eta": 75.0}, [], (utility, utility), epochs=epochs)

    refined = cells("sap-cti", {"eta": 75.0, "share": 0.01}, [], (0.8, 0.8), epochs=2)
    (one,) = found("variants", PLAIN, sap(0.7, 2), sap(0.9, 9), sap(0.6, 1), refined)
    assert one.figure == pytest.approx(10.0)
    assert len(one.keys) == 4
    (one,) = found("variants", PLAIN, sap(0.9, 9), sap(0.6, 1), refined)
    assert one.figure == pytest.approx(-10.0)


def test_settings_of_a_refined_defense_that_the_plain_one_lacks_are_told_apart():
    def refined(share, utilities):
        reads = [leak(0.5 + share / 10), leak(0.4, "eia-map")]
        return cells("sap-cti", {"eta": 75.0, "share": share}, reads, utilities)

    plain = cells("sap", {"eta": 75.0}, [leak(0.5)], (0.70, 0.80))
    (one,) = found(
        "variants", PLAIN, plain, refined(0.1, (0.74, 0.84)), refined(0.01, (0.71, 0.81))
    )
    assert (
        "+1.0 [+1.0, +1.0] at η = 75, share = 0.01 (inputs read +0.1 [+0.1, +0.1]) and "
        "+4.0 [+4.0, +4.0] at η = 75, share = 0.1 (inputs read +1.0 [+1.0, +1.0]) points"
    ) in one.claim
    assert one.settings == ("sap-cti η=75, share=0.01", "sap-cti η=75, share=0.1")
    # Each share with the same two plain records.
    assert len(one.keys) == 8


def test_depth_is_told_by_the_cut_that_hides_most_without_noise():
    def cut(k, success):
        return cells("sap", {"eta": None}, [leak(success, "eia-optimise")], cut=k, undefended=True)

    (one,) = found("depth", cut(1, 0.99), cut(3, 0.9), cut(2, 0.95))
    assert "cut after block 1, 2 and 3: where the depth hides most, after block 3" in one.claim
    assert one.figure == pytest.approx(0.9)
    assert len(one.keys) == 6
    assert found("depth", cut(1, 0.99)) == []
    noisy = cells("sap", {"eta": 50.0}, [leak(0.2, "eia-optimise")], cut=4)
    assert "block 3," in found("depth", cut(1, 0.99), cut(3, 0.9), noisy)[0].claim


def test_bounds_on_epsilon_stand_beside_the_claims():
    def audited(epsilon, bound, ceiling=9.0, unit="example"):
        given = {"parameters": {"epsilon": epsilon}, "covers": "all", "unit": unit}
        claim = Claim(guarantee="dp", **given)
        audit = {"epsilon": bound, "epsilon_ceiling": ceiling}
        member = leak(0.6, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL, **audit)
        return cells("dpsgd", {"epsilon": epsilon}, [member], claim=claim)

    (one,) = found("audits", PLAIN, audited(8.0, 0.5), audited(3.0, 0.3))
    assert (
        "is 0.50 at ε = 8 and 0.30 at ε = 3 (means over 2 seeds): below every claim. "
        "A perfect attacker would prove 9.00." in one.claim
    )
    (one,) = found("audits", PLAIN, audited(8.0, 0.5, 4.5), audited(3.0, 0.3, 4.25))
    assert (
        "would prove 4.25 to 4.50, so that no violation of ε = 8 could have been found."
        in one.claim
    )
    assert (
        found("audits", PLAIN, audited(8.0, 0.5, 9, "label"), audited(3.0, 3.5, 9, "label")) == []
    )
    assert one.figure == pytest.approx(0.3)  # a tenth of its claim; the other a sixteenth
    (one,) = found("audits", PLAIN, audited(8.0, 0.5), audited(3.0, 3.5))
    assert "above the claim: a fault in the defense" in one.claim


def test_what_audits_is_what_proves_most_without_protection_and_whether_it_would_notice_is_told():
    def audited(params, bounds, right, claim=None):
        """Two attacks on 200 coins; of the ranking of each, whose guesses are right for so many of all."""
        member = [n % 2 for n in range(200)]
        leaks = []
        for (name, bound), share in zip(bounds.items(), right, strict=True):
            ranks = [
                2 * n + (1000 if told == (n % 100 < share) else 0) for n, told in enumerate(member)
            ]
            audit = {"epsilon": bound, "epsilon_ceiling": 9.0}
            audit["raw"] = {"twice_rank": ranks, "member": member}
            goal = (Goal.MEMBERSHIP, 0.5)
            leaks.append(leak(0.6, name, *goal, channel=Channel.MODEL, **audit))
        return cells("dpsgd", params, leaks, claim=claim, undefended=claim is None)

    def claiming(epsilon, rmia):
        given = {"parameters": {"epsilon": epsilon}, "covers": "all", "unit": "example"}
        claim = Claim(guarantee="dp", **given)
        bounds = {"membership": 0.2, "rmia": rmia}
        return audited({"epsilon": epsilon}, bounds, (50, 50), claim)

    def told(right):
        open_ = audited({"epsilon": None}, {"membership": 0.3, "rmia": 2.5}, (50, right))
        claims = [claiming(8.0, 0.0), claiming(1.0, 0.1)]
        (one,) = found("audits", PLAIN, open_, *claims)
        # Another that is not protected either, of which less is proven, changes nothing.
        less = audited({"epsilon": None, "clip": 2}, {"membership": 0.3, "rmia": 2.4}, (50, 50))
        assert found("audits", PLAIN, open_, less, *claims) == [one]
        assert one.attack == "rmia"
        assert "is 0.00 at ε = 8 and 0.10 at ε = 1 (means" in one.claim
        assert {r.key for r in open_} <= set(one.keys)
        return one.claim.split("Of a model that is not protected at all it proves ")[1]

    assert told(100).endswith(": missing noise would not be noticed at ε = 8.")
    # Half of its guesses are right.
    assert told(50) == "0.00 at ε = 8 and 0.00 at ε = 1: not even missing noise would be noticed."


def test_where_no_attack_works_without_protection_that_is_the_finding():
    def member(success):
        return leak(success, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)

    apart = [
        record("none", {}, seed, 0.9, [member(success)], undefended=True)
        for seed, success in enumerate((0.49, 0.6))
    ]
    (one,) = found("idle", apart)
    assert (
        "no attack here works yet on members. Even without protection membership reaches"
        in one.claim
    )
    (one,) = found("idle", cells("none", {}, [member(0.55)], undefended=True))
    assert "what attacks here find of members is too little to judge a defense by" in one.claim
    assert found("idle", cells("none", {}, [member(0.65)], undefended=True)) == []
    assert found("idle", cells("dpsgd", {}, [member(0.5)]), PLAIN) == []


def test_every_finding_names_its_records_and_every_rule_its_question():
    every = findings(comparisons([*PLAIN, *TWIN, *cells("sap", {"eta": 75.0}, [labels(0.9)])]))
    assert every
    keys = {r.key for r in PLAIN} | {r.key for r in TWIN}
    for one in every:
        assert one.keys
        assert not set(one.keys) <= keys  # what is not protected is no finding
        assert one.plain()["interval"] == list(one.interval)
    assert all(question[0].isupper() for _, question in RULES.values())


def test_an_interval_that_does_not_exist_is_null_in_data():
    made = cells("sap", {"eta": 75.0}, [labels(0.9)])
    (one,) = found("elsewhere", PLAIN, made)
    assert dataclasses.replace(one, interval=(float("nan"), 1.0)).plain()["interval"] is None


def test_lists_read_as_one_writes_them():
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_what_public_text_is_worth_is_what_is_read_beyond_the_nearest_neighbour_seed_by_seed():
    def learner(success, kind, sentences):
        return leak(success, "eia-map", params={"auxiliary": kind, "sentences": sentences})

    def seed(number, plain):
        read = [learner(plain + 0.05, "own", 6000), learner(plain, "own", 600)]
        read += [learner(plain + 0.01 * number, "mnli", 600), leak(plain, "eia-nn")]
        return record("sap", {"eta": 75.0}, number, 0.9, read)

    cut = [seed(0, 0.5), seed(1, 0.6)]
    (one,) = found("public-text", PLAIN, cut)
    assert one.claim == (
        "On reviews with minilm, at sap, eia-map reads more tokens than eia-nn by so many points, paired "
        "over 2 seeds: +0.0 [+0.0, +0.0] with 600 public sentences, +5.0 [+5.0, +5.0] with 6,000 public "
        "sentences and +0.5 [-5.9, +6.9] with 600 of mnli."
    )
    assert one.figure == pytest.approx(5)
    assert set(one.keys) == {r.key for r in cut}
    alone = cells("sap", {"eta": 75.0}, [learner(0.9, "own", 600), leak(0.5, "eia-nn")])
    (one,) = found("public-text", PLAIN, alone)
    assert "+40.0 [+40.0, +40.0] with 600 public sentences." in one.claim
    assert found("public-text", PLAIN, alone[:1]) == []  # of one seed nothing is told


def test_who_sees_what_is_told_for_activations_alone_beside_no_protection():
    def p3eft(success, **seen):
        found = [labels(success), labels(1.0, "unmix", Channel.GRADIENTS)]
        return cells("p3eft", {"weight": 0.3, "sigma": 5.0} | seen, found)

    one, apart = p3eft(0.92, servers="one"), p3eft(0.7, servers="per-adapter")
    turns = p3eft(0.9, servers="one", alternating=True)
    other = cells("p3eft", {"weight": 0.1, "sigma": 5.0, "servers": "one"}, [labels(0.95)])
    (said,) = found("servers", PLAIN, one, apart, turns, other)
    assert said.claim == (
        "On reviews with minilm (at most 2,000 examples per split, 2 epochs, 2 seeds), what is read of "
        "labels in activations under p3eft weight=0.3: with one server 0.920 [0.920, 0.920] (spectral), one for "
        "each adapter 0.700 [0.700, 0.700] (spectral) and one server, two that take turns, 0.900 [0.900, 0.900] (spectral) "
        "(token accuracy; guessing 0.500; without protection 0.950 [0.950, 0.950] (spectral))."
    )
    assert (said.figure, said.attack) == (0.7, "spectral")
    assert set(said.keys) == {r.key for r in [*one, *apart, *turns, *PLAIN]}
    assert found("servers", PLAIN, one, other) == []


def test_what_a_secret_mixture_hides_is_told_along_its_adapters_and_along_sigma():
    def p3eft(success, utility, **mixed):
        params = {"weight": 0.3, "servers": "one", "adapters": 2, "sigma": 5.0} | mixed
        return cells("p3eft", params, [labels(success)], (utility, utility))

    usual = p3eft(0.92, 0.8)
    more, many = p3eft(0.93, 0.81, adapters=10), p3eft(0.94, 0.82, adapters=3)
    equal = p3eft(0.7, 0.6, sigma=0.0)
    apart = p3eft(0.5, 0.8, servers="per-call", adapters=3)
    adapters, sigma = found("mixing", PLAIN, more, usual, equal, many, apart)
    assert (
        "under p3eft one, σ=5: with adapters = 2 (0.800 of accuracy) 0.920 [0.920, 0.920] (spectral), "
        "adapters = 3 (0.820 of accuracy) 0.940 [0.940, 0.940] (spectral) and adapters = 10 (0.810 "
    ) in adapters.claim
    assert "σ = 0 (0.600 of accuracy) 0.700 [0.700, 0.700] (spectral) and σ = 5 (" in sigma.claim
    assert (sigma.figure, sigma.settings[0]) == (
        0.7,
        "p3eft adapters=2, one, σ = 0 (0.600 of accuracy)",
    )
    assert found("mixing", PLAIN, usual, apart) == []


def test_prompt_tuning_is_laid_beside_the_same_mechanism_and_beside_itself_without_reconstruction():
    def rapt(eta, utilities, reconstruction=True):
        params = RAPT(eta=eta, rate=0.02, reconstruction=reconstruction).params
        return cells("rapt", params, [leak(0.5)], utilities)

    def sap(eta, utilities, **more):
        return cells("sap", SAP(eta=eta, **more).params, [leak(0.5)], utilities)

    mine = [*rapt(75.0, (0.60, 0.70)), *rapt(60.0, (0.50, 0.60))]
    theirs = [*sap(75.0, (0.80, 0.90)), *sap(60.0, (0.51, 0.58)), *sap(90.0, (0.1, 0.1))]
    trainable = sap(75.0, (0.1, 0.1), bottom="trainable")
    plain = rapt(75.0, (0.55, 0.65), reconstruction=False)
    beside, own, without = found("prompts", PLAIN, mine, theirs, trainable, plain)
    assert (
        "rapt rate=0.02 gains over sap, of the same mechanism, paired over 2 seeds" in beside.claim
    )
    assert "-20.0 [-20.0, -20.0] at η = 75 and +0.5 [" in beside.claim
    assert beside.claim.endswith("points of accuracy: a loss is clear at η = 75.")
    assert set(beside.keys) == {r.key for r in [*mine, *theirs[:4]]}
    assert "rapt rate=0.02 gains over itself without it" in own.claim
    assert own.claim.endswith(
        "+5.0 [+5.0, +5.0] at η = 75 points of accuracy: a gain is clear at η = 75."
    )
    assert "rapt without reconstruction rate=0.02 gains over sap" in without.claim
    (same,) = found("prompts", PLAIN, rapt(75.0, (0.6, 0.7)), sap(75.0, (0.59, 0.71)))
    assert same.claim.endswith("no difference is shown.")
    assert found("prompts", PLAIN, mine, sap(100.0, (0.8, 0.9))) == []


def test_a_changed_part_of_prompt_tuning_is_laid_beside_the_whole_trained_at_the_same_rate():
    def rapt(utilities, rate=0.02, eta=75.0, **changed):
        params = RAPT(eta=eta, rate=rate, **changed).params
        return cells("rapt", params, [leak(0.5)], utilities)

    whole, fast = rapt((0.6, 0.7)), rapt((0.9, 0.9), rate=0.5)
    narrow, prompt = rapt((0.55, 0.65), width=12), rapt((0.6, 0.71), kind="prompt", length=20)
    told = found("prompts", PLAIN, whole, fast, narrow, prompt)
    claims = {one.claim.split("3 epochs, 2 seeds) ")[-1]: one for one in told}
    assert len(told) == 2
    for words, claim in zip(("rapt rate=0.02 width=12", "rapt kind=prompt"), claims, strict=True):
        assert words in claim
        assert "gains over itself as in the paper, paired over 2 seeds" in claim
    assert "-5.0 [-5.0, -5.0] at η = 75" in next(iter(claims))
    assert set(next(iter(claims.values())).keys) == {r.key for r in [*whole, *narrow]}
    # Another η, or without reconstruction, is no changed part.
    other = rapt((0.5, 0.5), eta=60.0, width=12), rapt((0.5, 0.5), width=12, reconstruction=False)
    assert found("prompts", PLAIN, whole, *other) == []


def test_fine_tuning_twice_is_laid_beside_redaction_detector_by_detector():
    def jft(utilities, detector, **more):
        params = JFT(epsilon=3, detector=detector, **more).params
        return cells("jft", params, [leak(0.5)], utilities)

    def redacted(utilities, detector, **more):
        return cells("redacted", Redacted(detector=detector, **more).params, [leak(0.5)], utilities)

    once = [*redacted((0.70, 0.80), "patterns"), *redacted((0.50, 0.60), "high-entity")]
    twice = [*jft((0.68, 0.78), "patterns"), *jft((0.60, 0.70), "high-entity")]
    noisy = jft((0.1, 0.1), "high-entity", phase1="light-noise", light=0.5)
    alone = jft((0.1, 0.1), "low-entity")
    (one,) = found("twice", PLAIN, once, twice, noisy, alone)
    assert one.claim.endswith(
        "jft ε=3 gains over redacted, paired over 2 seeds, -2.0 [-2.0, -2.0] at patterns and "
        "+10.0 [+10.0, +10.0] at high-entity points of accuracy: a gain is clear at high-entity and a loss is "
        "clear at patterns."
    )
    assert set(one.keys) == {r.key for r in [*once, *twice]}
    missed = {"canaries": "missed"}
    told = found("twice", PLAIN, once, twice, jft((0.3, 0.4), "patterns", **missed), noisy)
    assert told == [one]
    both = found(
        *("twice", PLAIN, once, twice, jft((0.3, 0.4), "patterns", **missed)),
        redacted((0.3, 0.4), "patterns", **missed),
    )
    assert [each.claim.split(" gains")[0].split(") ")[-1] for each in both] == [
        "jft ε=3",
        "jft ε=3, canaries missed",
    ]
    head = {"train": once[0].cell.train.model_copy(update={"tune": "head"})}
    other = [
        r.model_copy(update={"cell": (cell := r.cell.model_copy(update=head)), "key": cell.key})
        for r in twice
    ]
    (same,) = found("twice", PLAIN, once, twice, other)
    assert same.keys == one.keys
    assert found("twice", PLAIN, once, other) == []


def read(success, channel, input_=None):
    text = leak(success, "token-gradient", Goal.LABEL, 0.07, channel=channel)
    return [text] if input_ is None else [text, leak(input_, chance=0.07)]


def test_text_that_is_read_at_every_noise_stands_beside_what_is_read_of_the_input():
    up, other = Channel.LOGIT_GRADIENTS, Channel.GRADIENTS
    plain = cells("none", {"head": "vendor"}, read(1.0, up), undefended=True)
    open_ = cells("sap", {"eta": None}, read(1.0, up, 1.0), undefended=True)
    mild = cells("sap", {"eta": 60.0}, read(0.999, up, 0.8))
    strong = cells("sap", {"eta": 25.0}, read(0.998, up, 0.2))
    (one,) = found("text", plain, open_, mild, strong)
    assert one.claim == (
        "On reviews with minilm, output layer at the vendor, sap gives away the text, which is its own labels, at "
        "each of 3 settings: token-gradient reads at least 0.998 [0.998, 0.998] of it (guessing 0.070), eia-nn of "
        "the input 1.000 at η = none, 0.800 at η = 60 and 0.200 at η = 25."
    )
    assert set(one.keys) == {r.key for r in [*open_, *mild, *strong]}
    # Another holder is another claim, and where a setting tells no more than guessing there is none.
    customer = [
        *cells("sap", {"eta": 60.0, "head": "customer"}, read(0.9, other, 0.8)),
        *cells("sap", {"eta": 25.0, "head": "customer"}, read(0.07, other, 0.2)),
    ]
    assert found("text", plain, open_, mild, strong, customer) == [one]
    (held,) = found("text", plain, open_, customer[:2])
    assert found("text", plain, open_, customer[:2], mild) == [
        *found("text", plain, open_, mild),
        held,
    ]
    assert held.claim.startswith(
        "On reviews with minilm, output layer at the customer, sap gives away the text"
    )
    assert held.claim.endswith("eia-nn of the input 0.800 at η = 60.")
    assert held.settings == ("sap η=60, head at customer",)
    # A private layer is the customer's, too, and goes up with the same noise.
    private = cells("sap", {"eta": 60.0, "head": "private"}, read(0.95, other, 0.8))
    (held,) = found("text", plain, open_, customer[:2], private)
    assert set(held.settings) == {"sap η=60, head at customer", "sap η=60, private head"}
    assert held.claim.endswith("eia-nn of the input 0.800 at η = 60.")
