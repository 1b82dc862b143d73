"""Leakage: cross-fitted, against the undefended twin, and missing where nothing is certified."""

import numpy as np
import pytest
from records import estimate, leak, record

from leakboard.bench.contracts import Channel, Goal
from leakboard.bench.contracts.record import Point
from leakboard.leaderboards.tables.leakage import (
    CERTIFIED,
    EXACT,
    NOT_CERTIFIED,
    Reader,
    cross_fitted,
    readings,
)
from leakboard.leaderboards.tables.results import results_table

OFF, ON = {"eta": None}, {"eta": 75.0}


def point(step, value, chance=0.5, n=94):
    return Point(step=step, part=0, recipient="vendor", success=estimate(value, chance=chance, n=n))


def label_leak(values, chance=0.5, floor=None, attack="spectral", n=94):
    """The worst moment with its curve, and the last one, as they stand on a record."""
    points = [point(step, value, chance, n) for step, value in enumerate(values)]
    worst = int(np.argmax(values))
    shared = {
        "attack": attack,
        "goal": Goal.LABEL,
        "channel": Channel.ACTIVATIONS,
        "chance": chance,
        "floor": None if floor is None else estimate(floor, n=n),
    }
    return [
        leak(values[worst], view="worst", step=worst, curve=points, **shared),
        leak(values[-1], view="last", step=len(values) - 1, **shared),
    ]


def defended(success, seed=0, **fields):
    return record("sap", ON, seed, leaks=[leak(success)], **fields)


def twin(success=1.0, seed=0, **fields):
    return record("sap", OFF, seed, leaks=[leak(success)], undefended=True, **fields)


def rows(*records):
    return {(r.defense, r.setting.params): r for r in results_table(records)}


def the_row(*records):
    return next(r for r in results_table(records) if not r.setting.undefended)


def test_leakage_is_the_advantage_over_that_of_the_undefended_twin():
    cells = [defended(0.5, seed) for seed in range(3)] + [twin(0.9, seed) for seed in range(3)]
    row = the_row(*cells)
    assert row.leakage.value == pytest.approx((0.5 - 0.05) / (0.9 - 0.05))
    assert row.certification == CERTIFIED
    assert row.twin_success.value == pytest.approx(0.9)


def test_a_perfect_attack_is_not_the_scale():
    """A twin from which little is read makes the same success a larger leak."""
    strong = the_row(*(c for s in range(3) for c in (defended(0.4, s), twin(1.0, s))))
    weak = the_row(*(c for s in range(3) for c in (defended(0.4, s), twin(0.45, s))))
    assert strong.leakage.value < 0.4 < 0.8 < weak.leakage.value


def test_the_floor_is_the_baseline_where_it_lies_above_chance():
    on = [
        record("dc", {"weight": 0.5}, s, leaks=label_leak([0.7, 0.7], floor=0.6)) for s in range(3)
    ]
    off = [
        record("none", {}, s, leaks=label_leak([0.9, 0.9], floor=0.6), undefended=True)
        for s in range(3)
    ]
    row = the_row(*on, *off)
    assert row.baseline == pytest.approx(0.6)
    assert row.leakage.value == pytest.approx((0.7 - 0.6) / (0.9 - 0.6))


def test_the_floor_of_the_last_moment_is_that_of_a_curve():
    worst, last = label_leak([0.9, 0.8], floor=0.7)
    last = last.model_copy(update={"floor": estimate(0.6)})
    cells = [record("dc", {"weight": 0.5}, s, leaks=[worst, last]) for s in range(3)]
    assert the_row(*cells).success.value == pytest.approx(0.9)
    assert the_row(*cells).baseline == pytest.approx(0.6)


def test_the_floor_is_the_baseline_of_an_attack_at_one_moment():
    reads = {"goal": Goal.LABEL, "channel": Channel.ACTIVATIONS, "chance": 0.5}
    one = leak(0.7, "logreg", floor=estimate(0.6), **reads)
    assert the_row(record("dc", {"weight": 0.5}, leaks=[one])).baseline == 0.6


def test_no_leakage_where_no_attack_works_without_the_defense():
    row = the_row(*(c for s in range(3) for c in (defended(0.1, s), twin(0.15, s))))
    assert row.certification == NOT_CERTIFIED
    assert row.leakage.is_missing
    assert "no attack has an advantage clearly above 0.2" in row.reason
    assert row.success.value == pytest.approx(0.1)  # what was read stands beside it


def test_certification_asks_for_an_advantage_that_is_clearly_above_a_fifth():
    wide = [twin(success, s) for s, success in enumerate((0.1, 0.3, 0.6))]
    row = the_row(*[defended(0.2, s) for s in range(3)], *wide)
    assert row.twin_advantage.value > 0.2
    assert row.certification == NOT_CERTIFIED


def test_without_a_twin_there_is_no_number():
    row = the_row(defended(0.3))
    assert row.certification == NOT_CERTIFIED
    assert row.reason == "no attack ran on this defense with its protection off"


def test_an_attack_that_recovers_everything_needs_no_twin():
    row = the_row(*[defended(1.0, s) for s in range(2)])
    assert (row.certification, row.leakage.value) == (EXACT, 1.0)


def test_the_attack_is_chosen_on_the_other_seeds():
    lucky = {0: (0.9, 0.5), 1: (0.4, 0.5), 2: (0.4, 0.5)}
    cells = [
        record("sap", ON, s, leaks=[leak(a, "eia-nn"), leak(b, "eia-bayes")])
        for s, (a, b) in lucky.items()
    ]
    row = the_row(*cells, *[twin(1.0, s) for s in range(3)])
    # On seeds 1 and 2 eia-bayes is the stronger one, so that the luck of eia-nn on seed 0 is not reported.
    assert row.success_by_seed[0] == 0.5
    # Seen from seeds 1 and 2, eia-nn is (0.9 and 0.4 on the mean): it is reported as it is there.
    assert row.success_by_seed[1] == row.success_by_seed[2] == 0.4


def test_the_moment_is_chosen_on_the_other_seeds():
    curves = {0: [0.9, 0.6, 0.5], 1: [0.5, 0.7, 0.5], 2: [0.5, 0.7, 0.5]}
    by_seed = {
        s: readings(record("dc", {"weight": 0.5}, s, leaks=label_leak(v)))[Goal.LABEL, ""]
        for s, v in curves.items()
    }
    chosen = cross_fitted(by_seed)
    assert chosen[0].success.value == 0.6  # the second moment, on which the other seeds agree
    assert chosen[0].candidate[3] == 25  # half of training


def test_the_worst_moment_of_each_run_is_read_only_where_it_is_asked_for():
    curves = {0: [0.9, 0.6, 0.5], 1: [0.5, 0.7, 0.5], 2: [0.5, 0.7, 0.5]}
    cells = [record("dc", {"weight": 0.5}, s, leaks=label_leak(v)) for s, v in curves.items()]
    table = results_table(cells)
    assert [one.success_by_seed for one in table] == [{0: 0.6, 1: 0.5, 2: 0.5}]
    (row,) = table.under(Reader(("spectral",), worst=True))
    assert row.success_by_seed == {0: 0.9, 1: 0.7, 2: 0.7}


def test_what_is_read_while_the_tuned_model_answers_counts_as_a_moment():
    floor = estimate(0.5)

    def leaks(in_training, in_use):
        views = {"train": in_training, "dev": in_training, "dev, answered": in_use}
        return [
            leak(success, view=view, floor=floor if view == "train" else None)
            for view, success in views.items()
        ]

    seeds = range(3)
    off = [record("sap", OFF, s, leaks=leaks(1.0, 1.0), undefended=True) for s in seeds]
    row = the_row(*off, *(record("sap", ON, s, leaks=leaks(0.55, 0.95)) for s in seeds))
    # In use, the baseline is guessing (0.05): the floor was measured on the texts of training.
    assert row.success.value == pytest.approx(0.95)
    assert row.leakage.value == pytest.approx((0.95 - 0.05) / (1.0 - 0.05))
    assert row.attack_title == "eia-nn in use"
    row = the_row(*off, *(record("sap", ON, s, leaks=leaks(0.95, 0.55)) for s in seeds))
    assert (row.success.value, row.attack_title) == (pytest.approx(0.95), "eia-nn")


def test_moments_of_seeds_with_other_numbers_of_steps_are_the_same():
    def curve(seed, stretch, values):
        worst, last = label_leak(values)
        points = [p.model_copy(update={"step": p.step * stretch}) for p in worst.curve]
        leaks = [worst.model_copy(update={"curve": points}), last]
        return readings(record("dc", {"weight": 0.5}, seed, leaks=leaks))[Goal.LABEL, ""]

    by_seed = {
        0: curve(0, 44, [0.9, 0.6, 0.5]),
        1: curve(1, 45, [0.5, 0.7, 0.5]),
        2: curve(2, 46, [0.5, 0.7, 0.5]),
    }
    assert cross_fitted(by_seed)[0].success.value == 0.6


def test_an_older_version_of_an_attack_does_not_speak():
    cells = [record("sap", ON, 0, leaks=[leak(0.9, version=1), leak(0.2, version=2)])]
    assert the_row(*cells, twin()).success.value == pytest.approx(0.2)


def test_versions_of_an_attack_that_are_mixed_are_said():
    def mixed(*versions):
        cells = [record("sap", ON, s, leaks=[leak(0.5, version=v)]) for s, v in enumerate(versions)]
        return the_row(*cells, twin()).attack_title

    assert mixed(1, 1) == "eia-nn"
    assert mixed(1, 2) == "eia-nn, versions 1 and 2"
    assert mixed(2, 2) == "eia-nn, versions 1 and 2"  # the twin was not attacked again


def test_an_attack_that_reads_nothing_is_no_attack():
    cells = [record("sap", ON, 0, leaks=[leak(0.9, "prior", channel=None), leak(0.3)])]
    assert the_row(*cells, twin()).attack == "eia-nn"


def halved(hits, attack):
    """A leak with raw guesses: right on the even units with one share, on the odd ones with another."""
    even, odd = hits
    rng = np.random.default_rng(0)
    n = 400
    right = np.where(np.arange(n) % 2 == 0, rng.random(n) < even, rng.random(n) < odd)
    return leak(
        float(right.mean()),
        attack,
        raw={"hits": right.astype(int).tolist(), "tokens": [1] * n},
    )


def test_with_one_seed_the_choice_is_made_on_one_half_and_reported_on_the_other():
    leaks = [halved((0.9, 0.1), "eia-nn"), halved((0.1, 0.9), "eia-bayes")]
    row = the_row(record("sap", ON, 0, leaks=leaks), twin())
    # Each half chooses the attack that is lucky there, and it fails on the other half.
    assert row.success.value < 0.2


def test_with_one_seed_the_worst_moment_is_not_picked():
    leaks = label_leak([0.95, 0.6])
    leaks[1] = leaks[1].model_copy(
        update={"raw": {"guess": [0, 1] * 50, "truth": [0, 1] * 30 + [1, 0] * 20}}
    )
    found = cross_fitted({0: readings(record("dc", {"weight": 0.5}, leaks=leaks))[Goal.LABEL, ""]})
    assert found[0].success.value == pytest.approx(0.6)


def test_randomised_response_is_reported_at_its_law():
    """Over 200 runs of three seeds and twenty windows: the mean is the law's, the largest window is not."""
    law, rng = 0.881, np.random.default_rng(0)
    reported, largest = [], []
    for _ in range(200):
        by_seed = {}
        for seed in range(3):
            values = rng.binomial(94, law, size=20) / 94
            leaks = label_leak([float(v) for v in values])
            found = readings(record("randomised-response", {"epsilon": 2.0}, seed, leaks=leaks))
            by_seed[seed] = found[Goal.LABEL, ""]
            largest.append(values.max())
        reported += [one.success.value for one in cross_fitted(by_seed).values()]
    error = np.std(reported) / np.sqrt(len(reported))
    assert abs(np.mean(reported) - law) < 4 * error < 0.01
    assert np.mean(largest) > law + 0.04


def test_the_interval_is_paired_over_seeds():
    """Where an attack's luck moves the defended and the undefended cell alike, the share hardly moves."""
    luck = (0.0, 0.1, -0.1)
    cells = [
        c for s, d in enumerate(luck) for c in (defended(0.4 * (1 + d), s), twin(0.8 * (1 + d), s))
    ]
    row = the_row(*cells)
    assert row.leakage.high - row.leakage.low < 0.1
    assert row.success.high - row.success.low > 0.15


def test_failed_cells_give_no_row():
    bad = [record("sap", ON, s, utility=None, leaks=[], status="failed") for s in range(3)]
    assert not [r for r in results_table(bad) if r.is_certified]


LUCK = {0: (0.9, 0.5), 1: (0.8, 0.5), 2: (0.4, 0.5), 3: (0.4, 0.6), 4: (0.4, 0.6)}
"""Success of two attacks by seed: the first is the stronger one on the first seeds, the second over all."""


def lucky(params, seeds, luck=LUCK, **fields):
    return [
        record("sap", params, s, leaks=list(map(leak, luck[s], ("eia-nn", "eia-bayes"))), **fields)
        for s in seeds
    ]


def lucky_twin(seeds):
    luck = {seed: (nearest + 0.01 * seed, 0.8) for seed, (nearest, _) in LUCK.items()}
    luck[1] = luck[0]
    return lucky(OFF, seeds, luck, undefended=True)


def test_twin_and_setting_are_read_on_the_seeds_that_they_share():
    """Further seeds of one side change no leakage, nor on which seeds an attack is chosen."""
    few = the_row(*lucky(ON, range(2)), *lucky_twin(range(2)))
    of_twin = the_row(*lucky(ON, range(2)), *lucky_twin(range(5)))
    own = the_row(*lucky(ON, range(5)), *lucky_twin(range(2)))
    assert few.twin_success.value == 0.9
    assert few.leakage == of_twin.leakage == own.leakage
    assert few.twin_success == of_twin.twin_success == own.twin_success
    assert own.leakage_by_seed.keys() == {0, 1}
    assert own.success_by_seed.keys() == set(range(5))


def test_without_a_common_seed_each_is_read_on_all_of_its_own():
    row = the_row(*lucky(ON, (0, 1)), *lucky_twin((2, 3, 4)))
    assert row.leakage_by_seed.keys() == {0, 1}
    assert row.twin_success.value == pytest.approx(0.8)


def test_a_row_read_on_some_seeds_knows_nothing_of_the_others():
    """With all seeds, `eia-bayes` is chosen for the first one; among the first two, it is `eia-nn`."""
    every = the_row(*lucky(ON, range(5)), *[twin(1.0, s) for s in range(5)])
    few = the_row(*lucky(ON, range(2)), *[twin(1.0, s) for s in range(2)])
    assert every.success_by_seed[0] == 0.5
    read = every.on({0, 1})
    assert read.success_by_seed == few.success_by_seed == {0: 0.9, 1: 0.8}
    assert (read.leakage, read.twin_advantage) == (few.leakage, few.twin_advantage)
    assert every.on(set(range(9))).success == every.success
