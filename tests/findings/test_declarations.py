"""Every declaration speaks where its rows are clearly apart, and is silent where they are not."""

import json
import re
from dataclasses import replace

import pytest
from records import leak, record

from leakboard.bench.contracts import Channel, Goal
from leakboard.bench.methods import registry
from leakboard.bench.records.frame import canonical_json
from leakboard.bench.scoring import twin_settings
from leakboard.leaderboards.findings.engine import USEFUL, Contrast, Level
from leakboard.leaderboards.findings.rules import RULES, TITLES
from leakboard.leaderboards.tables.compare import ANY_VALUE, Rows
from leakboard.leaderboards.tables.leakage import ALL, Reader
from leakboard.leaderboards.tables.results import results_table

SEEDS = range(4)
VALUES = {"eta": 75.0, "epsilon": 3.0, "emulator": 2}
ATTACKS = {
    Goal.INVERSION: ("eia-nn", Channel.REPRESENTATIONS, 0.05),
    Goal.REIDENTIFICATION: ("retrieval", Channel.REPRESENTATIONS, 0.001),
    Goal.LABEL: ("unmix", Channel.GRADIENTS, 0.5),
    Goal.ATTRIBUTE: ("aia-mlp", Channel.REPRESENTATIONS, 0.5),
    Goal.MEMORISATION: ("canary-exposure", Channel.MODEL, 0.0),
    Goal.MEMBERSHIP: ("membership", Channel.MODEL, 0.5),
    Goal.MODEL: ("keep-emulator", Channel.EMULATOR, 0.5),
}
NOISY = (0.35, -0.35, 0.3, -0.25)
"""By the seed, more than any two means differ."""


def value_of(wanted, name, default):
    if wanted == ANY_VALUE:
        return VALUES.get(name, default)
    return wanted[0] if isinstance(wanted, tuple) else wanted


def spec_of(rows: Rows):
    """A defense and parameters that a selection admits, and whether that is without protection."""
    name = rows.defense[-1] if isinstance(rows.defense, tuple) else rows.defense or "sap"
    cls = registry.defense(name)
    params = {key: field.default for key, field in cls.model_fields.items()}
    params |= {key: value_of(wanted, key, params[key]) for key, wanted in rows.params.items()}
    if rows.undefended:
        params[cls.knob] = None
    off = name == "none" or (cls.knob is not None and params[cls.knob] is None)
    return name, params, off


def attacked(goal, share, reader: Reader = ALL):
    """A leak of a goal that lies at a share of the way from guessing to all."""
    attack, channel, chance = ATTACKS[goal]
    attack = reader.names[0] if reader.names else attack
    channel = Channel(reader.channels[0]) if reader.channels else channel
    fields = {"attribute": "gender"} if goal == Goal.ATTRIBUTE else {}
    return leak(
        chance + share * (1 - chance),
        attack,
        goal,
        chance,
        dict(reader.params),
        channel=channel,
        **fields,
    )


def cells(rows: Rows, leaks, utility=lambda seed: 0.9):
    """Records of a setting that a selection admits, and of its undefended twin, on which all is read."""
    name, params, off = spec_of(rows)
    task = rows.task[0] if isinstance(rows.task, tuple) else rows.task or "sst2"
    cut = rows.cut[0] if isinstance(rows.cut, tuple) else rows.cut or 0
    fields = {"task": task, "cut": cut, "precision": rows.train.get("precision", "float32")}
    made = []
    for seed in SEEDS:
        own = [one if off is False else full(one) for one in leaks(seed)]
        made.append(record(name, params, seed, utility(seed), own, undefended=off, **fields))
        for twin, given in twin_settings((name, canonical_json(params))) or [("none", "{}")]:
            parameters = json.loads(given)
            everything = [full(one) for one in leaks(seed)]
            made.append(record(twin, parameters, seed, 0.9, everything, undefended=True, **fields))
        made.append(
            record(
                "none",
                {"head": None},
                seed,
                0.9,
                [full(one) for one in leaks(seed)],
                undefended=True,
                **fields,
            )
        )
    return made


def full(one):
    """The same leak where everything is read."""
    return one.model_copy(
        update={"success": one.success.model_copy(update={"value": 1.0, "low": 0.99, "high": 1.0})}
    )


def said(rule, records):
    unique = {one.key: one for one in reversed(records)}
    return list(rule.evaluate(results_table(list(unique.values())[::-1])))


def contrast(rule: Contrast, a, b):
    """What a contrast says where a and b have these shares of leakage, or utilities, by the seed."""
    goal = rule.goal or Goal.INVERSION
    shares = (lambda seed: 0.5, lambda seed: 0.5)
    utilities = (lambda seed: 0.9, lambda seed: 0.9)
    if rule.metric == "utility":
        utilities = (a, b)
    else:
        shares = (a, b)
    records = []
    # The rows of interest come last, for twins must not stand for them.
    for rows, share, utility in zip((rule.b, rule.a), shares[::-1], utilities[::-1], strict=True):
        records += cells(
            rows, lambda seed, s=share: [attacked(goal, s(seed), rule.reader)], utility
        )
    return said(rule, sorted(records, key=lambda one: one.undefended))


def at(level):
    return lambda seed: level + seed / 1000


def about(level):
    return lambda seed: level + NOISY[seed]


CONTRASTS = [one for one in RULES if isinstance(one, Contrast) and one.versus is None]
NAMES = [f"{i}-{one.name}" for i, one in enumerate(CONTRASTS)]


def is_read_whole(rows):
    return spec_of(rows)[2]


@pytest.mark.parametrize("rule", CONTRASTS, ids=NAMES)
def test_a_contrast_speaks_where_the_two_are_clearly_apart_and_in_that_direction(rule):
    for a, b, words in ((0.9, 0.5, rule.more), (0.5, 0.9, rule.less)):
        if is_read_whole(rule.b) and a > b and rule.metric != "utility":
            continue  # nothing leaks more than without protection
        found = contrast(rule, at(a), at(b))
        if not words:
            assert found == []
            continue
        (one,) = found
        assert re.match(re.escape(words.split("{")[0]), one.sentence)
        assert not re.search("[{}]", one.sentence)
        assert len(one.sentence.split()) <= 30
        assert one.keys
        assert one.rule in TITLES


@pytest.mark.parametrize("rule", CONTRASTS, ids=NAMES)
def test_a_contrast_is_silent_where_seeds_are_too_far_apart(rule):
    if rule.metric == "utility":
        assert contrast(rule, about(0.55), at(0.6)) == []
    else:
        assert contrast(rule, about(0.55), at(0.6 if not is_read_whole(rule.b) else 1.0)) == []


@pytest.mark.parametrize("rule", [one for one in CONTRASTS if one.same], ids=lambda one: one.name)
def test_a_contrast_says_that_two_are_alike_only_where_every_interval_excludes_the_margin(rule):
    (one,) = contrast(rule, at(0.501), at(0.5))
    assert re.match(re.escape(rule.same.split("{")[0]), one.sentence)
    assert contrast(rule, at(0.5 + rule.margin / 2), about(0.5)) == []


@pytest.mark.parametrize(
    "rule",
    [one for one in RULES if isinstance(one, Contrast) and one.versus],
    ids=lambda one: one.name,
)
def test_attacks_are_compared_on_the_same_transcripts(rule):
    first = Reader(rule.reader.names or ("unmix",), rule.reader.channels, rule.reader.params)

    def two(a, b):
        def leaks(seed):
            return [attacked(rule.goal, a(seed), first), attacked(rule.goal, b(seed), rule.versus)]

        return said(rule, cells(rule.a, leaks))

    for a, b, words in ((0.8, 0.4, rule.more), (0.4, 0.8, rule.less)):
        # Of all attacks the strongest counts, which the others cannot beat.
        if words:
            (one,) = two(at(a), at(b))
            assert len(one.sentence.split()) <= 30
    assert two(about(0.5), at(0.5)) == []


LEVELS = [one for one in RULES if isinstance(one, Level)]


@pytest.mark.parametrize("rule", LEVELS, ids=lambda one: one.name)
def test_a_level_is_told_where_every_setting_is_clearly_on_its_side(rule):
    rows = rule.rows
    if rule.elsewhere:
        rows = replace(rows, defense="p3eft" if rule.goal == Goal.INVERSION else "sap")
    clear, unclear = at(0.995), at(0.9)

    def level(share):
        return said(rule, cells(rows, lambda seed: [attacked(rule.goal, share(seed))]))

    (one,) = level(clear)
    assert len(one.sentence.split()) <= 30
    if not is_read_whole(rows):
        assert level(unclear) == []
        assert level(about(0.6)) == []


def test_a_level_is_silent_where_one_setting_is_not_on_its_side():
    rule = Level("labels", Rows("dc", undefended=False), Goal.LABEL, "DC on {tasks}.", least=0.95)

    def settings(*shares):
        return [
            one
            for weight, share in zip((0.1, 0.5), shares, strict=True)
            for one in cells(
                replace(rule.rows, params={"weight": weight}),
                lambda seed, s=share: [attacked(Goal.LABEL, at(s)(seed))],
            )
        ]

    assert len(said(rule, settings(0.99, 0.99))) == 1
    assert said(rule, settings(0.99, 0.8)) == []


def test_what_leaks_without_a_defense_is_bounded_by_success():
    """A setting without a defense leaks 100 % of itself, however little is read from it."""
    (rule,) = (one for one in LEVELS if one.name == "depth")

    def read(share):
        found = [attacked(rule.goal, share)]
        off = {"eta": None, "bottom": "frozen"}
        return [
            record("sap", off, seed, 0.9, found, "sst2", cut=cut, undefended=True)
            for seed in SEEDS
            for cut in (3, 5)
        ]

    (one,) = said(rule, read(0.99))
    assert "behind 3 and 5 blocks, attacks read at least 99 %" in one.sentence
    assert said(rule, read(0.5)) == []


def test_a_clear_difference_below_the_margin_is_not_told():
    rule = Contrast(
        "variants", "leakage", Rows("sap-cti"), Rows("sap"), Goal.INVERSION, more="{a} leaks."
    )
    wide = replace(rule, margin=0.1)

    def two(rule, gap):
        # Seeds are far enough apart that the interval leaves the margin on one side.
        return contrast(
            rule, lambda seed: 0.5 + gap + (0.02, 0.0, -0.02, 0.0)[seed], lambda seed: 0.5
        )

    assert len(two(rule, 0.09)) == 1
    assert two(wide, 0.09) == []
    assert len(two(wide, 0.2)) == 1


def test_the_pair_with_most_trials_of_tuning_is_told_of_those_with_equal_seeds():
    rule = Contrast("variants", "utility", Rows("sap-cti"), Rows("sap"), **USEFUL, at=("eta",))

    def pair(eta, gap, trials):
        made = [
            record(name, {"eta": eta}, seed, 0.6 + seed * add / 1000 + add * gap / 100, task="sst2")
            for seed in SEEDS
            for name, add in (("sap", 0), ("sap-cti", 1))
        ]
        for one in made:
            yield one.model_copy(
                update={"provenance": one.provenance.model_copy(update={"trials": trials})}
            )

    (one,) = said(rule, [*pair(75.0, 30, ()), *pair(50.0, 10, ("a", "b"))])
    assert "10.1 points at η = 50" in one.sentence
    assert one.sentence.endswith("2 of 2 pairs).")
    (one,) = said(rule, [*pair(75.0, 30, ())])
    assert one.sentence.endswith("1 of 1 pair, not tuned).")


def test_one_training_under_several_circumstances_is_one_pair():
    """Without canaries, a model has the same utility whether a detector would find or miss them."""
    (rule,) = (
        one for one in CONTRASTS if one.name == "private-training" and one.metric == "utility"
    )
    made = [
        one
        for rows, utility in ((rule.a, 0.9), (rule.b, 0.5))
        for one_or_other in ({}, {"canaries": "masked"} if rows is rule.a else {})
        for one in cells(
            replace(rows, params={**rows.params, **one_or_other}),
            lambda seed: [attacked(Goal.MEMORISATION, 0.5)],
            lambda seed, u=utility: u + seed / 1000,
        )
    ]
    (one,) = said(rule, list({one.key: one for one in made}.values()))
    assert "1 of 1 pair" in one.sentence


def test_leakage_of_models_that_learned_nearly_nothing_is_not_compared():
    (rule,) = (one for one in CONTRASTS if one.name == "twin" and one.a.defense == "p3eft")

    def leakage(utility):
        found = cells(rule.a, lambda seed: [attacked(rule.goal, 0.5)], lambda seed: utility)
        return [*found, *(record("untuned", {}, seed, 0.4, [], "sst2") for seed in SEEDS)]

    assert len(said(rule, leakage(0.6))) == 1
    assert said(rule, leakage(0.45)) == []


def test_one_attack_on_two_channels_is_named_with_both():
    rule = next(
        one for one in RULES if isinstance(one, Contrast) and one.name == "authors" and one.versus
    )

    def both(seed):
        one = attacked(rule.goal, 0.9, Reader(("spectral",), ("gradients",)))
        return [one, attacked(rule.goal, 0.4, Reader(("spectral",), ("activations",)))]

    (one,) = said(rule, cells(rule.a, both))
    assert "`spectral` on activations scores 70 %, `spectral` on gradients 95 %" in one.sentence


def test_a_level_says_where_no_model_learned():
    (rule,) = (one for one in LEVELS if one.name == "text")

    def settings(utility):
        found = cells(rule.rows, lambda seed: [attacked(rule.goal, 0.999)], lambda seed: utility)
        return [*found, *(record("untuned", {}, seed, 0.6, [], "dialogues") for seed in SEEDS)]

    assert said(rule, settings(0.8))[0].sentence.endswith("(1 setting).")
    assert said(rule, settings(0.6))[0].sentence.endswith("(1 setting, none learned).")


def test_what_is_clear_only_without_correction_is_not_told():
    rule = Contrast(
        "variants", "utility", Rows("sap-cti"), Rows("sap"), more="SAP-CTI gains on {task}."
    )

    def pair(eta, gap):
        made = []
        for seed in SEEDS:
            off = gap[seed] / 100
            for name, utility in (("sap", 0.8), ("sap-cti", 0.8 + off)):
                params = {"eta": eta, "bottom": "frozen", "head": "vendor"}
                made.append(record(name, params, seed, utility, task="sst2"))
        return made

    luck = pair(75.0, (1.0, 3.2, 2.0, 1.2))
    nothing = [
        one for eta in (50.0, 60.0, 90.0, 100.0) for one in pair(eta, (-0.2, 0.2, -0.1, 0.1))
    ]
    assert len(said(rule, luck)) == 1
    assert said(rule, luck + nothing) == []


def test_of_clear_pairs_the_one_of_most_seeds_is_told():
    rule = Contrast(
        "variants", "utility", Rows("sap-cti"), Rows("sap"), more="It gains {d} on {task}."
    )

    def pair(eta, gaps):
        return [
            record(name, {"eta": eta, "bottom": "frozen", "head": "vendor"}, seed, u, task="sst2")
            for seed, gap in enumerate(gaps)
            for name, u in (("sap", 0.6), ("sap-cti", 0.6 + gap / 100))
        ]

    # Two seeds that happen to agree have the smaller p.
    (one,) = said(rule, pair(75.0, (20.0, 20.001)) + pair(50.0, (2.5, 3.0, 3.5, 3.0)))
    assert one.sentence == "It gains 3.0 on SST-2."


def test_what_was_not_tuned_alike_is_not_compared_by_utility():
    rule = next(one for one in CONTRASTS if one.name == "variants" and one.metric == "utility")
    found = contrast(rule, at(0.9), at(0.5))
    assert found

    def tuned(one):
        if one.cell.defense.name != "sap-cti":
            return one
        provenance = one.provenance.model_copy(update={"trials": ("a", "b")})
        return one.model_copy(update={"provenance": provenance})

    records = cells(rule.a, lambda seed: [attacked(Goal.INVERSION, 0.5)], at(0.9))
    records += cells(rule.b, lambda seed: [attacked(Goal.INVERSION, 0.5)], at(0.5))
    assert said(rule, records)
    assert said(rule, [tuned(one) for one in records]) == []


@pytest.mark.parametrize("metric", ["utility", "leakage"])
def test_kinds_of_jft_are_compared_with_the_best_training_that_each_has_for_its_first_phase(metric):
    (rule,) = (
        one for one in CONTRASTS if one.name == "jft" and one.metric == metric and one.differ
    )
    own = {
        "light-noise": {"phase1_epochs": 12, "phase1_learning_rate": 0.01, "phase1_batch_size": 64},
        "direct": {"phase1_epochs": 6, "phase1_learning_rate": 0.003, "phase1_batch_size": 16},
    }
    tuned = {
        side: replace(rows, params=rows.params | own[rows.params["phase1"]])
        for side, rows in (("a", rule.a), ("b", rule.b))
    }
    records = [
        one
        for rows, value in ((tuned["a"], 0.5), (tuned["b"], 0.9))
        for one in cells(rows, lambda seed, v=value: [attacked(Goal.MEMORISATION, v)], at(value))
    ]
    (one,) = said(rule, records)
    assert ("50 % leak, not 90 %" if metric == "leakage" else "1 of 1 pair") in one.sentence


def test_a_sentence_keeps_the_records_of_both_sides():
    rule = next(one for one in CONTRASTS if one.name == "trainable")
    records = cells(rule.a, lambda seed: [attacked(Goal.INVERSION, 0.9 + seed / 1000)])
    records += cells(rule.b, lambda seed: [attacked(Goal.INVERSION, 0.5 + seed / 1000)])
    (one,) = said(rule, records)
    protected = {r.key for r in records if not r.undefended}
    assert set(one.keys) == protected
    assert one.plain()["interval"] is not None
    assert str(one) == one.sentence


@pytest.mark.parametrize("channel", [Channel.MODEL, Channel.LOGITS])
def test_what_weak_attacks_leave_is_no_finding(channel):
    """A reader of the same channel that takes all without a defense shows how weak the others are."""
    rule = next(
        one for one in RULES if one.name == "private-training" and one.goal == Goal.MEMBERSHIP
    )
    made = []
    for seed in SEEDS:
        for name, params, share in (("none", {}, 0.3), ("dpsgd", {"epsilon": 3.0}, 0.0)):
            leaks = [attacked(Goal.MEMBERSHIP, share + seed / 1000)]
            made.append(record(name, params, seed, leaks=leaks, undefended=name == "none"))
        strong = attacked(Goal.MEMBERSHIP, 0.9).model_copy(update={"channel": channel})
        made.append(record("none", {}, seed, leaks=[strong], undefended=True, limit=500))
    assert len(said(rule, made)) == (channel != Channel.MODEL)


def test_what_a_model_leaks_that_learned_nothing_is_no_merit():
    rule = next(
        one for one in RULES if one.name == "private-training" and one.goal == Goal.MEMORISATION
    )

    def noisy(utility):
        made = []
        for seed in SEEDS:
            leaks = [attacked(rule.goal, 0.2 + seed / 1000)]
            own = record("dpsgd", {"epsilon": 3.0}, seed, utility + seed / 1000, leaks)
            open_ = [attacked(rule.goal, 0.9)]
            made += [
                own,
                record("none", {}, seed, 0.9, open_, undefended=True),
                record("untuned", {}, seed, 0.5, []),
            ]
        return said(rule, made)

    assert len(noisy(0.8)) == 1
    assert noisy(0.5) == []


def test_what_all_settings_leak_is_told_beside_the_clearest():
    rule = next(
        one for one in RULES if one.name == "private-training" and one.goal == Goal.MEMBERSHIP
    )
    made = []
    for seed in SEEDS:
        made.append(
            record("none", {}, seed, leaks=[attacked(Goal.MEMBERSHIP, 1.0)], undefended=True)
        )
        for epsilon, share in ((8.0, 0.7), (1.0, 0.1)):
            leaks = [attacked(Goal.MEMBERSHIP, share + seed / 1000)]
            made.append(record("dpsgd", {"epsilon": epsilon}, seed, leaks=leaks))
    (one,) = said(rule, made)
    assert one.sentence.endswith("(2 settings, 10 to 70 %).")
