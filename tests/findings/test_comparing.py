"""Rules that lay settings beside each other say which is more only where intervals lie apart."""

from __future__ import annotations

import pytest
from claims import CHANCE, PLAIN, cells, found, labels
from records import COST, estimate, leak, record

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.threat import Channel, Claim, Goal
from leakboard.bench.scoring import GAINED
from leakboard.bench.tasks.planting import CEILING, planted_view
from leakboard.defenses.dpnr import DPNR
from leakboard.defenses.offsite import OffsiteTuning
from leakboard.defenses.sap import SAP


def remembering(defense, params, copies, bits, half=1.0, **fields):
    """Two seeds in which secrets planted so often gained so many bits, and others none."""

    def gained(value, view):
        n = 10 if view != "never planted" else 110
        own = leak(0.5, "canary-exposure", Goal.MEMORISATION, channel=Channel.MODEL, view=view)
        told = {"metric": GAINED, "ceiling": CEILING, "success": estimate(value, 0.0, half, n)}
        return own.model_copy(update=told)

    made = []
    for seed, shift in enumerate((-half, half)):
        leaks = [gained(bits + shift / 13, planted_view(copies)), gained(0.0, "never planted")]
        one = record(defense, params, seed, 0.9, leaks, **fields)
        plant = Plant(canaries=("My ID is {digits}",), copies=(copies,), each=10)
        cell = one.cell.model_copy(update={"plant": plant})
        made.append(one.model_copy(update={"cell": cell, "key": cell.key}))
    return made


def test_what_secrets_gain_is_told_by_number_of_copies_and_ordered_where_intervals_lie_apart():
    def suite(none, dpsgd, redacted):
        every = []
        for copies in (0, 10, 100):
            share = copies / 100
            every += remembering("none", {}, copies, none * share, undefended=True)
            every += remembering("dpsgd", {"epsilon": 3.0}, copies, dpsgd * share)
            every += remembering("redacted", {"detector": "patterns"}, copies, redacted * share)
        return every

    records = suite(18.0, 0.2, 17.5)
    plain, private, redacted, tenth, hundredth = found("memory", records)
    assert plain.claim == (
        "On reviews with minilm, training under none adds to the exposure of secrets, of 19.9 bits, 0.000 "
        "[-0.977, 0.977] never planted, 1.800 [0.823, 2.777] planted 10 times and 18.000 [17.023, 18.977] "
        "planted 100 times (means over 2 seeds of 10 secrets each): a gain is clear for those planted 10 "
        "times and planted 100 times."
    )
    assert (plain.figure, len(plain.keys)) == (pytest.approx(18.0), 6)
    assert private.claim.endswith("no gain is shown.")
    assert hundredth.claim.endswith(
        "clear is that none and redacted patterns is more than dpsgd ε=3; what stands together is not "
        "told apart."
    )
    assert tenth.claim.endswith("no order is shown.")
    assert redacted.settings == ("redacted patterns",)
    # Of what was never planted there may be more, and the most that chance adds.
    assert "(means over 2 seeds of 10 secrets each)" in found("memory", suite(18, -0.2, 9))[1].claim
    (*_, turned) = found("memory", suite(1.0, 18.0, 9.0))
    assert (
        "clear is that dpsgd ε=3 is more than redacted patterns is more than none;" in turned.claim
    )
    # What was never planted gains by chance, even where its whole interval does.
    lucky = remembering("none", {}, 0, 3.0, undefended=True)
    (one,) = found("memory", [*lucky, *remembering("none", {}, 10, 0.2, undefended=True)])
    assert "3.000 [2.023, 3.977]" in one.claim
    assert one.claim.endswith("no gain is shown.")
    # Trained in another way it is another setting, whose company changes the name and not the line.
    faster = []
    for one in remembering("none", {}, 100, 18.0, undefended=True):
        train = one.cell.train.model_copy(update={"learning_rate": 5e-3})
        cell = one.cell.model_copy(update={"train": train})
        faster.append(one.model_copy(update={"cell": cell, "key": cell.key}))
    plain = [*lucky, *remembering("none", {}, 100, 9.0, undefended=True)]
    told = [one.claim for one in found("memory", [*plain, *faster])]
    assert "under none learning rate=0.001 adds" in told[0]
    assert "never planted and 9.000 [8.023, 9.977] planted 100 times" in told[0]
    assert len(told) == 2  # and the order of both at 100
    # That nothing is found of secrets that are not there says nothing of the attack.
    assert [one.figure for one in found("idle", suite(0.1, 0.1, 0.1))] == pytest.approx([0.01, 0.1])
    # One setting alone, at one number, is nothing to lay beside.
    assert found("memory", remembering("none", {}, 10, 5.0, undefended=True)) == []


def test_what_adapters_remember_is_not_ordered_among_whole_models_and_every_number_of_seeds_is_told():
    whole = [
        *remembering("none", {}, 10, 9.0, undefended=True),
        *remembering("dpsgd", {"epsilon": 3.0}, 10, 0.2)[:1],
    ]
    adapters = []
    for one in whole:
        train = one.cell.train.model_copy(update={"tune": "full"})
        cell = one.cell.model_copy(update={"train": train})
        adapters.append(one.model_copy(update={"cell": cell, "key": cell.key}))
    told = found("memory", [*whole, *adapters])
    assert [one.claim.count(" under ") for one in told] == [2, 2]
    assert [sum("full" in name for name in one.settings) for one in told] in ([0, 2], [2, 0])
    assert all("(means over 1 or 2 seeds of 10 secrets each)" in one.claim for one in told)


def test_the_plug_in_is_laid_beside_what_the_customer_holds_and_beside_full_tuning():
    def offsite(plug_in, held):
        params = OffsiteTuning(emulator=2).params
        model = {"goal": Goal.MODEL, "chance": 0.5, "channel": Channel.EMULATOR}
        return [
            record("offsite-tuning", params, seed, own, [leak(kept, "keep-emulator", **model)])
            for seed, (own, kept) in enumerate(zip(plug_in, held, strict=True))
        ]

    kept = offsite((0.80, 0.81), (0.60, 0.61))
    (one,) = found("offsite", PLAIN, kept)
    assert one.claim == (
        "On reviews with minilm (at most 2,000 examples per split, 2 epochs, 2 seeds), under offsite-tuning "
        "emulator=2, of accuracy over 2 seeds: the plug-in reaches 0.805 [0.741, 0.869], what the customer "
        "holds without the vendor 0.605 [0.541, 0.669], +20.0 [+20.0, +20.0] points between them: the vendor "
        "keeps something; full tuning reaches 0.900 [0.900, 0.900], +9.5 [+3.1, +15.9] points more than the "
        "plug-in: hiding the model costs utility; 1 MB go to the vendor and 0.002 MB come from it."
    )
    assert (COST.bytes_up, one.figure) == (1_000_000, pytest.approx(20))
    assert set(one.keys) == {r.key for r in [*kept, *PLAIN]}
    (one,) = found("offsite", PLAIN, offsite((0.90, 0.80), (0.85, 0.87)))
    assert "points between them: not told apart; full tuning reaches" in one.claim
    assert "points more than the plug-in: not told apart;" in one.claim
    (one,) = found("offsite", PLAIN, offsite((0.80, 0.81), (0.85, 0.86)))
    assert "the customer is better off without the vendor" in one.claim


def pooled(epsilon, words, gender, certified=True, dropout=0.0):
    """A setting of DPNR, and what is read of it; without noise it is the twin that certifies."""
    claim = epsilon and Claim(
        guarantee="local differential privacy",
        parameters={"epsilon_per_dimension": epsilon, "epsilon_per_vector": 384 * epsilon},
        covers="one dimension, or the vector",
        unit="vector",
    )
    about = {"channel": Channel.ACTIVATIONS}
    author = {"goal": Goal.ATTRIBUTE, "chance": 0.5, "attribute": "gender", **about}
    leaks = [leak(words, "pooled-inversion", chance=CHANCE, **about)]
    leaks += [leak(gender, "aia-mlp", **author)]
    params = DPNR(epsilon=epsilon, dropout=dropout).params
    open_ = {"undefended": True} if epsilon is None and certified else {}
    return cells("dpnr", params, leaks, claim=claim, **open_)


def test_what_a_vector_leaves_of_words_and_author_stands_beside_utility_and_both_claims():
    twin, mild, strong = pooled(None, 0.9, 0.9), pooled(10.0, 0.5, 0.5), pooled(0.1, 0.2, 0.8)
    (one,) = found("pooled", PLAIN, twin, mild, strong)
    assert one.claim == (
        "On reviews with minilm (at most 2,000 examples per split, 2 epochs, 2 seeds), what one vector per "
        "text leaves under dpnr: at ε = 10 (claimed: ε = 10 a dimension and 3,840 the vector) 0.900 [0.900, "
        "0.900] of accuracy, words 0.500 [0.500, 0.500] (guessing 0.200), attributes (gender) 0.500 [0.500, "
        "0.500] (guessing 0.500); at ε = 0.1 (claimed: ε = 0.1 a dimension and 38.4 the vector) 0.900 [0.900, "
        "0.900] of accuracy, words 0.200 [0.200, 0.200] (guessing 0.200), attributes (gender) 0.800 [0.800, "
        "0.800] (guessing 0.500). words are read beyond guessing at ε = 10 and are not shown to be at ε = "
        "0.1; attributes (gender) are read beyond guessing at ε = 0.1 and are not shown to be at ε = 10."
    )
    assert (one.figure, one.attack) == (0.2, "pooled-inversion")
    assert set(one.keys) == {r.key for r in [*mild, *strong]}
    # An attack that nobody has seen work shows nothing where it fails.
    (one,) = found("pooled", PLAIN, strong, pooled(None, 0.2, 0.5))
    assert "words not shown, attributes (gender) 0.800" in one.claim
    assert "words are" not in one.claim


def test_a_guess_by_frequency_is_laid_beside_the_nearest_neighbour_and_the_bound():
    def read(eta, nearest, bayes, bound=0.75):
        leaks = [leak(nearest, "eia-nn"), leak(bayes, "eia-bayes", bound=bound)]
        return cells("sap", SAP(eta=eta).params, leaks)

    clear, none, worse = read(60.0, 0.2, 0.25), read(75.0, 0.5, 0.5, None), read(90.0, 0.9, 0.8)
    (one,) = found("posterior", PLAIN, worse, none, clear)
    assert one.claim == (
        "On reviews with minilm (at most 2,000 examples per split, 2 epochs, 2 seeds), eia-bayes reads more "
        "tokens than eia-nn by so many points, paired over 2 seeds: -10.0 [-10.0, -10.0] at sap η=90, 0.800 of "
        "at most 0.750, +0.0 [+0.0, +0.0] at sap η=75 and +5.0 [+5.0, +5.0] at sap η=60, 0.250 of at most "
        "0.750: a gain is clear at sap η=60 and a loss is clear at sap η=90."
    )
    assert one.figure == pytest.approx(5)
    assert set(one.keys) == {r.key for r in [*clear, *none, *worse]}
    assert (
        found("posterior", PLAIN, none) == []
    )  # where the two never differ nothing is known of it
    first, second = read(75.0, 0.5, 0.5, None), read(75.0, 0.5, 0.6, None)
    (one,) = found("posterior", PLAIN, [first[0], second[1]])
    assert one.claim.endswith("no difference is shown.")
    assert (
        found("posterior", PLAIN, cells("sap", SAP(eta=60.0).params, [leak(0.2, "eia-nn")])) == []
    )


def hiding(defense, weight, utilities, successes):
    """A setting whose labels were found so far in each seed."""
    pairs = zip(utilities, successes, strict=True)
    return [
        record(defense, {"weight": weight}, seed, utility, [labels(success)])
        for seed, (utility, success) in enumerate(pairs)
    ]


def test_defenses_made_against_one_goal_are_compared_where_they_keep_as_much_utility():
    def against(dc, utilities=(0.895, 0.905)):
        p3eft = hiding("p3eft", 0.3, (0.9, 0.9), (0.6, 0.62))
        return found("matched", PLAIN, p3eft, hiding("dc", 0.7, utilities, dc))

    (one,) = against((0.9, 0.9))
    assert one.claim.startswith(
        "On reviews with minilm (at most 2,000 examples per split, 2 epochs, 2 seeds), of the privacy of "
        "labels at the same utility, within 1 point of no protection by the reported figure: "
    )
    assert one.claim.endswith("p3eft weight=0.3 keeps more than dc weight=0.7.")
    assert "dc weight=0.7 keeps 0.20 [0.20, 0.20] (spectral, 2 seeds), losing 0.0 [" in one.claim
    assert (one.figure, one.metric) == (pytest.approx(0.78), "privacy kept")
    (one,) = against((0.61, 0.61))
    assert one.claim.endswith("nothing is told apart.")
    (one,) = against((0.9, 0.9), (0.85, 0.85))
    assert "dc weight=0.7 is not matched: it loses 5.0 [5.0, 5.0] points:" in one.claim
    assert one.claim.endswith("since their utility is not the same.")


def test_a_setting_that_is_not_matched_is_told_by_what_decides():
    def tried(records, utility):
        """They tell of trials on held-out examples, of their own training."""
        held = [one.cell.model_copy(update={"evaluate": "held-out"}) for one in records]
        shown = records[0].utility.model_copy(update={"value": utility})
        trials = [
            one.model_copy(update={"cell": cell, "key": cell.key, "utility": shown, "leaks": []})
            for one, cell in zip(records, held, strict=True)
        ]
        named = {"trials": tuple(one.key for one in trials)}
        told = records[0].provenance.model_copy(update=named)
        return [*(one.model_copy(update={"provenance": told}) for one in records), *trials]

    one, *_ = found(
        "matched",
        tried(PLAIN, 0.85),
        # Worse on what is reported, and better on what was held out.
        tried(hiding("p3eft", 0.3, (0.87, 0.88), (0.6, 0.62)), 0.87),
        tried(hiding("dc", 0.7, (0.85, 0.85), (0.6, 0.62)), 0.844),
    )
    assert (
        "p3eft weight=0.3 is not matched: on held-out trials it is 2.00 points above" in one.claim
    )
    assert "points (0.60 points below no protection on held-out trials)" in one.claim


def test_what_is_proven_alone_is_not_said_to_keep_more():
    # Without a twin that certifies, what is found is the most that is kept.
    open_ = cells("none", {}, [labels(0.5)], undefended=True)
    p3eft, dc = (hiding(name, 0.3, (0.9, 0.9), (x, x)) for name, x in (("p3eft", 0.6), ("dc", 0.9)))
    (one,) = found("matched", open_, p3eft, dc)
    assert "p3eft weight=0.3 keeps ≤ 0.80" in one.claim
    assert one.claim.endswith("nothing is told apart.")
