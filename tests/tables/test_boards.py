"""Boards and ranks say what the records say, ties included."""

from __future__ import annotations

import pytest
from boards import CHANCE, cell, seeds, the_board
from records import estimate, leak

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.records.store import Store
from leakboard.leaderboards.tables.boards import boards
from leakboard.leaderboards.tables.comparisons import comparisons

pytestmark = pytest.mark.usefixtures("certified")


def test_best_privacy_grants_one_point_and_orders_by_what_is_kept():
    plain = seeds("none", (0.9, 0.91, 0.92), (1.0, 1.0, 1.0))
    mild = seeds("sap", (0.895, 0.905, 0.915), (0.7, 0.71, 0.72), params={"eta": 110.0})
    other = seeds("sap-cti", (0.895, 0.905, 0.915), (0.4, 0.41, 0.42), params={"eta": 110.0})
    strong = seeds("sap", (0.7, 0.7, 0.7), (0.2, 0.2, 0.2), params={"eta": 50.0})
    rows = the_board([*plain, *mild, *other, *strong], "best-privacy")
    assert list(zip(rows["rank"], rows["defense"], strict=True)) == [
        ("1", "sap-cti"), ("2", "sap"), ("3", "none"),
    ]  # fmt: skip
    # EP 0.59 of the 0.8 that guessing leaves.
    assert rows["privacy"][0].startswith(f"{0.59 / 0.8:.3f}")


def test_front_names_what_is_beaten_and_what_is_not_told_apart():
    plain = seeds("none", (0.9, 0.9, 0.9), (1.0, 1.0, 1.0))
    good = seeds("sap", (0.88, 0.88, 0.88), (0.5, 0.5, 0.5), params={"eta": 90.0})
    beaten = seeds("sap-cti", (0.80, 0.81, 0.80), (0.6, 0.61, 0.6), params={"eta": 90.0})
    close = seeds("dc", (0.87, 0.89, 0.879), (0.5, 0.52, 0.49), params={"weight": 1.0})
    rows = the_board([*plain, *good, *beaten, *close], "front").set_index("defense")
    assert rows["on the front"].to_dict() == {
        "none": "yes", "sap": "yes", "sap-cti": "no", "dc": "not told apart",
    }  # fmt: skip


def test_hypervolume_is_the_area_under_the_steps():
    plain = cell("none", utility=0.9, success=1.0)  # chance 0.5: fine-tuning gains 0.4
    mild = cell("sap", utility=0.8, success=0.6, params={"eta": 90.0})  # u 0.75, kept 0.5
    strong = cell("sap", utility=0.6, success=0.2, params={"eta": 50.0})  # u 0.25, kept 1
    useless = cell("sap", utility=0.55, success=0.7, params={"eta": 20.0})  # under the steps
    rows = the_board([plain, mild, strong, useless], "hypervolume").set_index("defense")
    assert rows.loc["sap", "hypervolume"] == f"{0.75 * 0.5 + 0.25 * 0.5:.3f}"
    assert rows.loc["none", "hypervolume"] == "0.000"
    assert rows.loc["sap", "rank"] == "–"  # one seed tells nothing about ranks


def test_a_goal_that_no_undefended_cell_has_leaves_no_hypervolume():
    member = leak(0.6, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)
    plain = cell("none", success=1.0)
    released = [
        cell(name, success=None, params={"epsilon": 3.0}, more=[member])
        for name in ("dpsgd", "crt")
    ]
    found = {(board.name, board.goal) for board in boards(comparisons([plain, *released]))}
    assert ("front", "membership") in found
    assert ("hypervolume", "membership") not in found


def test_a_board_by_the_papers_attack_names_it_where_another_is_stronger():
    stronger = leak(0.9, "eia-map", chance=CHANCE)
    records = [
        cell("none", success=1.0),
        cell("sap", success=0.5, params={"eta": 75.0}, more=[stronger]),
    ]
    assert "eia-map" in set(the_board(records, "front")["attack"])
    rows = next(b for b in boards(comparisons(records), "paper") if b.name == "front").rows
    assert set(rows["attack"]) == {"eia-nn"}


def test_estimates_outside_what_is_possible_stay_inside_a_board():
    plain = cell("none", success=1.0)
    lucky = cell("sap", success=0.1, params={"eta": 50.0})  # below the level of guessing
    lucky = lucky.model_copy(update={"utility": estimate(0.9, chance=0.5)})
    rows = the_board([plain, lucky], "front").set_index("defense")
    assert rows.loc["sap", "privacy"].startswith("1.000")


def test_what_rounds_to_nothing_lost_has_no_sign():
    plain = cell("none", utility=0.9, success=1.0)
    lucky = cell("sap", utility=0.9002, success=0.5)
    rows = the_board([plain, lucky], "best-privacy").set_index("defense")
    assert rows.loc["sap", "cost"].startswith("0.0 [")


@pytest.fixture
def folder(tmp_path):
    store = Store(tmp_path / "mine")
    plain = cell("none", utility=0.90, success=1.0)
    mild = cell("sap", utility=0.85, success=0.5, params={"eta": 90.0})
    member = leak(0.6, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)
    released = cell("dpsgd", utility=0.89, success=None, params={"epsilon": 3.0}, more=[member])
    for one in (plain, mild, released):
        store.write(one)
    return store.folder


def test_the_command_shows_the_matrix_and_the_boards(folder, leakboard):
    code, out, _ = leakboard("board", str(folder))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    (at,) = [n for n, line in enumerate(lines) if line.startswith("sap η=90")]
    assert code == 0
    assert "0.62 eia-nn" in lines[at]
    assert "!" in lines[at + 1]  # five points lost, three granted
    code, out, _ = leakboard("board", str(folder), "--question", "front")
    assert (code, "improve on" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--question", "fronts"], "--question: unknown 'fronts'. Did you mean 'front'?"),
        (["--attack", "eia-n"], "no result of an attack 'eia-n'. Did you mean 'eia-nn'?"),
    ],
)
def test_the_command_tells_what_is_wrong(folder, leakboard, words, message):
    words = ["--question", "front", *words] if "--question" not in words else words
    code, _, err = leakboard("board", str(folder), *words)
    assert code == 2
    assert message in " ".join(err.split())


def test_one_defense_alone_is_no_board(tmp_path, leakboard):
    store = Store(tmp_path / "mine")
    store.write(cell("sap", params={"eta": 90.0}))
    code, _, err = leakboard("board", str(store.folder))
    assert code == 2
    assert "a board needs two defenses" in " ".join(err.split())


def at(defense, points, kept, **params):
    """A setting that loses so many points of utility in each of three seeds, and keeps so much."""
    loss = points / 100
    utilities = [u - loss for u in (0.9, 0.88, 0.92)]
    leaks = [1 - kept * (1 - CHANCE)] * 3
    return seeds(defense, utilities, leaks, params=params)


def matched(*settings):
    rows = the_board([*at("none", 0, 0), *(one for own in settings for one in own)], "matched")
    return {str(row["defense"]): row for row in rows.to_dict("records")}


def test_what_is_compared_at_the_same_utility_lies_within_a_point_of_no_protection():
    found = matched(
        at("sap", 0.4, 0.3, eta=110.0),
        at("sap", 0.9, 0.5, eta=90.0),
        at("sap", 5.0, 0.9, eta=60.0),
        at("dc", 0.2, 0.2, weight=0.1),
    )
    assert (found["sap"]["rank"], found["sap"]["setting"]) == ("1", "η = 90")
    assert found["dc"]["rank"] == "2"


def test_a_defense_without_a_setting_there_is_not_matched_and_has_no_rank():
    found = matched(at("sap", 0.4, 0.3, eta=110.0), at("dc", 3.0, 0.9), at("p3eft", -2.0, 0.9))
    assert found["sap"]["rank"] == "1"
    assert found["dc"]["rank"] == found["p3eft"]["rank"] == "not matched"


def test_settings_on_both_sides_of_no_protection_are_within_a_point_of_each_other():
    # A point and a half lies between the two: only one of them can be compared.
    found = matched(at("sap", 0.8, 0.3, eta=110.0), at("dc", -0.7, 0.9, weight=0.1))
    assert sorted(row["rank"] for row in found.values()) == ["1", "not matched", "–"]
    found = matched(at("sap", 0.4, 0.3, eta=110.0), at("dc", -0.5, 0.9, weight=0.1))
    assert {found["sap"]["rank"], found["dc"]["rank"]} == {"1", "2"}


def test_settings_are_matched_on_held_out_trials_where_the_records_tell_of_all():
    def chosen(defense, points, kept, tried, **params):
        """A setting, and held-out examples under its own training, and under another.

        With protection there is one more of its own, on other examples, which are harder.
        """
        mine, trials = at(defense, points, kept, **params), []
        misleading = {0.0: 0.9, 5.0: 0.95, 0.5: 0.8}[tried]
        own = [(0.9 - tried / 100, 2, 7), (misleading, 9, 7), (0.6, 2, 8)]
        for utility, epochs, seed in own if tried else own[:2]:
            trial = cell(defense, seed, utility, None, params, epochs=epochs)
            other = trial.cell.model_copy(update={"evaluate": "held-out"})
            trials.append(trial.model_copy(update={"cell": other, "key": other.key}))
        return [*mine, *trials]

    def board(*settings):
        every = [one for own in settings for one in own]
        here = [one for one in comparisons(every) if "sap" in set(one.rows["defense"])]
        (told,) = {one.words for one in here if one.records[0].cell.evaluate != "held-out"}
        (found,) = [b for b in boards(here) if (b.name, b.words) == ("matched", told)]
        return {str(row["defense"]): row for row in found.rows.to_dict("records")}

    # On what is reported the milder one of each is as good as no protection, on held-out examples the other.
    settings = [chosen("none", 0, 0, 0.0)]
    for name, knob in (("sap", "eta"), ("dc", "weight")):
        settings.append(chosen(name, 0.5, 0.3, 5.0, **{knob: 0.1}))
        settings.append(chosen(name, 5.0, 0.9, 0.5, **{knob: 0.7}))
    found = board(*settings)
    assert found["sap"]["setting"] == "η = 0.7"
    assert {row["matched on"] for row in found.values()} == {"held-out trials"}
    costs = {name: row["held-out cost"] for name, row in found.items()}
    assert costs == {"none": "0.00", "sap": "0.50", "dc": "0.50"}
    # A setting of which no trial tells is left out.
    short = [cell("none", seed, 0.8 + seed / 1000, 0.9, epochs=1) for seed in (0, 1, 2)]
    more = board(short, *settings, at("dc", 0.1, 0.95, weight=0.2))
    assert [more[name] for name in ("sap", "dc")] == [found[name] for name in ("sap", "dc")]
    # A defense of which none tells, and all are matched on what is reported.
    untold = [one for own in settings[:-2] for one in own]
    untold += at("dc", 0.5, 0.3, weight=0.1) + at("dc", 5.0, 0.9, weight=0.7)
    found = board(untold)
    assert (found["sap"]["setting"], found["dc"]["setting"]) == ("η = 0.1", "weight = 0.1")
    assert {row["matched on"] for row in found.values()} == {"the reported figure"}
    assert all("held-out cost" not in row for row in found.values())
