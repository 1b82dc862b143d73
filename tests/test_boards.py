"""Comparisons, ranks, boards and the matrix say what the records say, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from records import estimate, leak, record
from test_cli import run

from bench.contracts.channels import Channel
from bench.contracts.settings import TrainSettings
from bench.contracts.threat import Goal
from bench.records.store import Store
from leaderboards.tables.beside import beside
from leaderboards.tables.boards import boards
from leaderboards.tables.comparisons import comparisons, paired
from leaderboards.tables.frame import frame
from leaderboards.tables.matrix import matrices
from leaderboards.tables.published import published
from leaderboards.tables.ranks import Contender, clearly_better, ranks, spelled

CHANCE = 0.2


def cell(defense, seed=0, utility=0.9, success=0.5, params=None, **fields):
    """A record with one inversion at a chance level of 0.2; 'none' is undefended."""
    found = [leak(success, chance=CHANCE)] if success is not None else []
    found += fields.pop("more", [])
    fields = {"undefended": defense == "none"} | fields
    return record(defense, params, seed, utility, found, **fields)


def seeds(defense, utilities, successes, **fields):
    pairs = zip(utilities, successes, strict=True)
    return [cell(defense, s, u, x, **fields) for s, (u, x) in enumerate(pairs)]


def the_board(records, name):
    (found,) = [board for board in boards(comparisons(records)) if board.name == name]
    return found.rows


def contender(*values):
    return Contender(dict(enumerate(values)), 0.0, 0.0)


def test_pairing_seeds_tells_apart_what_bands_would_not():
    # All seeds move together: bands overlap, differences do not.
    a, b = contender(0.50, 0.70, 0.90), contender(0.48, 0.68, 0.88)
    assert a.band[0] < b.band[1]
    assert clearly_better(a, b)
    assert not clearly_better(b, a)
    assert not clearly_better(contender(0.50, 0.70, 0.90), contender(0.60, 0.55, 0.90))
    assert not clearly_better(a, a)
    # t = 3.46 with 2 degrees of freedom: 7 %.
    assert not clearly_better(contender(0.51, 0.72, 0.93), contender(0.50, 0.70, 0.90))


def test_a_lone_seed_is_compared_by_the_intervals_inside_its_cells():
    def lone(value, half):
        return Contender({0: value}, value - half, value + half)

    assert clearly_better(lone(0.9, 0.1), lone(0.7, 0.05))
    assert not clearly_better(lone(0.9, 0.1), lone(0.75, 0.1))


def test_ties_hold_all_the_ranks_between():
    field = [
        contender(0.9, 0.91, 0.92), contender(0.5, 0.6, 0.55),
        contender(0.6, 0.5, 0.56), contender(0.1, 0.11, 0.12),
    ]  # fmt: skip
    assert ranks(field) == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert [spelled(*place) for place in ranks(field)] == ["1", "2–3", "2–3", "4"]
    assert ranks([]) == []


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


def test_what_was_trained_differently_is_not_compared():
    short = [cell("none"), cell("sap", params={"eta": 75.0})]
    long = [cell("none", epochs=5), cell("sap", params={"eta": 50.0}, epochs=5)]
    full = []
    for one in short:
        tuned = one.cell.model_copy(update={"train": TrainSettings(epochs=2, tune="full")})
        full.append(one.model_copy(update={"cell": tuned, "key": tuned.key}))
    found = comparisons([*short, *long, *full])
    assert [len(one.records) for one in found] == [2, 2, 2]
    assert len({one.words for one in found}) == 3
    # Without an undefended cell nobody knows what was lost.
    assert comparisons([cell("sap", params={"eta": 75.0})]) == []


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


def test_matrix_stands_at_the_setting_that_keeps_most_within_the_budget():
    plain = cell("none", utility=0.90, success=1.0)
    mild = cell("sap", utility=0.89, success=0.8, params={"eta": 110.0})
    middle = cell("sap", utility=0.88, success=0.5, params={"eta": 90.0})
    strong = cell("sap", utility=0.70, success=0.2, params={"eta": 50.0})
    records = [plain, mild, middle, strong]

    def sap(budget):
        (found,) = matrices(comparisons(records), budget)
        (line,) = [line for line in found.lines if line.defense == "sap"]
        return line

    assert (sap(3.0).label, sap(3.0).within, sap(3.0).others) == ("η = 90", True, 2)
    assert sap(100.0).label == "η = 50"
    # Where nothing keeps the budget the least loss is shown, and said to exceed it.
    assert (sap(0.5).label, sap(0.5).within) == ("η = 110", False)
    shield = sap(3.0).shields["inversion", ""]
    assert shield.kept == pytest.approx(0.5 / 0.8)
    assert shield.row["attack"] == "eia-nn"


def test_a_defense_with_its_protection_off_does_not_stand_for_it():
    plain = cell("none", utility=0.9, success=1.0)
    off = cell("sap", utility=0.9, success=0.3, params={"eta": None}, undefended=True)
    on = cell("sap", utility=0.6, success=0.3, params={"eta": 50.0})
    (found,) = matrices(comparisons([plain, off, on]))
    labels = {line.defense: (line.label, line.within, line.others) for line in found.lines}
    assert labels == {"none": ("none", True, 0), "sap": ("η = 50", False, 0)}


def test_what_befalls_a_defense_is_no_choice_of_its_user():
    plain = cell("none", utility=0.9, success=1.0)
    masked = cell("redacted", success=0.2, params={"canaries": "masked"})
    missed = cell("redacted", success=0.9, params={"canaries": "missed"})
    (found,) = matrices(comparisons([plain, masked, missed]))
    (line,) = [line for line in found.lines if line.defense == "redacted"]
    assert line.shields["inversion", ""].kept == pytest.approx(0.1 / 0.8)
    # Of two detectors the one whose bad luck is smaller.
    steady = [
        cell("redacted", success=x, params={"detector": "exact", "canaries": c})
        for x, c in ((0.6, "masked"), (0.7, "missed"))
    ]
    (found,) = matrices(comparisons([plain, masked, missed, *steady]))
    (line,) = [line for line in found.lines if line.defense == "redacted"]
    assert line.shields["inversion", ""].kept == pytest.approx(0.3 / 0.8)
    rows = the_board([plain, *steady], "hypervolume").set_index("defense")
    assert rows.loc["redacted", "hypervolume"] == f"{0.3 / 0.8:.3f}"


def test_matrix_says_why_a_goal_was_not_tried():
    label = leak(0.9, "spectral", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)
    skipped = leak(
        None, "xgboost", Goal.LABEL, status="skipped", reason="too few rows", channel=None
    )
    member = leak(0.6, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)
    records = [
        cell("none", success=1.0, more=[label, member]),
        cell("dpsgd", success=None, params={"epsilon": 3.0}, more=[member]),
        cell("sap", success=0.5, params={"eta": 75.0}, more=[skipped]),
        cell("p3eft", success=0.5),
    ]
    (found,) = matrices(comparisons(records))
    why = {
        (line.defense, goal): shield.why
        for line in found.lines
        for (goal, _), shield in line.shields.items()
    }
    assert why["dpsgd", "label"] == "nothing but the trained model leaves the owner"
    assert why["sap", "membership"] == "no trained model is handed out"
    assert why["sap", "label"] == "too few rows"
    assert why["p3eft", "label"] == "not measured"
    assert why["none", "label"] == ""
    notes = {}
    shields = next(line.shields for line in found.lines if line.defense == "dpsgd")
    assert shields["label", ""].remarks(notes) == " (1)"
    # That the attack works at all was shown nowhere.
    assert shields["membership", ""].remarks(notes) == " (2)"
    assert [text.split(":")[0] for text in notes][1] == "uncertified-attack"
    certified = member.model_copy(update={"certificate": True})
    (found,) = matrices(comparisons([cell("none", success=1.0, more=[certified]), *records[1:]]))
    shields = next(line.shields for line in found.lines if line.defense == "dpsgd")
    assert shields["membership", ""].remarks({}) == ""


def test_authors_attack_stands_beside_the_strongest():
    stronger = leak(0.9, "eia-map", chance=CHANCE)
    records = [
        cell("none", success=1.0),
        cell("sap", success=0.5, params={"eta": 75.0}, more=[stronger]),
    ]
    (found,) = matrices(comparisons(records))
    (line,) = [line for line in found.lines if line.defense == "sap"]
    shield = line.shields["inversion", ""]
    assert (shield.row["attack"], shield.authors) == ("eia-map", pytest.approx(0.5))
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
    assert rows.loc["sap", "lost"].startswith("0.0 [")


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


def test_the_command_shows_the_matrix_and_the_boards(folder, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "board", str(folder))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    (sap,) = [line for line in lines if line.startswith("sap η=90")]
    assert code == 0
    assert "!" in sap  # five points lost, three granted
    assert "0.62 eia-nn" in sap
    code, out, _ = run(monkeypatch, capsys, "board", str(folder), "--question", "front")
    assert (code, "improve on" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--question", "fronts"], "--question: unknown 'fronts'. Did you mean 'front'?"),
        (["--attack", "eia-n"], "no result of an attack 'eia-n'. Did you mean 'eia-nn'?"),
    ],
)
def test_the_command_tells_what_is_wrong(folder, monkeypatch, capsys, words, message):
    words = ["--question", "front", *words] if "--question" not in words else words
    code, _, err = run(monkeypatch, capsys, "board", str(folder), *words)
    assert code == 2
    assert message in " ".join(err.split())


def test_one_defense_alone_is_no_board(tmp_path, monkeypatch, capsys):
    store = Store(tmp_path / "mine")
    store.write(cell("sap", params={"eta": 90.0}))
    code, _, err = run(monkeypatch, capsys, "board", str(store.folder))
    assert code == 2
    assert "a board needs two defenses" in " ".join(err.split())


def test_papers_numbers_stand_beside_what_their_own_attacks_found_here():
    stated = {"eta": 50.0, "bottom": "frozen"}
    stronger = leak(0.9, "eia-map", chance=CHANCE)
    ours = cell("sap", success=0.4, params=stated, cut=4, task="sst2", more=[stronger])
    other = cell("sap", success=0.3, params=stated, cut=3, task="sst2")
    rows = beside(frame([ours, other]), published("SAP", ["Table 4"]))
    (row,) = rows.to_dict("records")
    assert row["setting"] == "η = 50, cut 4"
    assert row["ep printed"] == "0.385"
    assert row["ep here"].startswith("0.600")  # eia-map is not the paper's
    label = [leak(0.7, "kmeans", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    label += [leak(1.0, "spectral", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)]
    label += [leak(0.9, "xgboost", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    baseline = cell("none", success=None, task="sst2", more=label)
    rows = beside(frame([baseline]), published("P3EFT", ["later submission table"], "llama-2-7b"))
    (row,) = rows.to_dict("records")
    # Baselines are measured as the paper measures them: its attacks, on activations.
    assert (row["ep printed"], row["ep here"][:5]) == ("0.007", "0.300")


def test_the_command_lays_ours_beside_the_papers(tmp_path, monkeypatch, capsys):
    store = Store(tmp_path / "sap-table4")
    store.write(
        cell("sap", success=0.4, params={"eta": 50.0, "bottom": "frozen"}, cut=4, task="sst2")
    )
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(monkeypatch, capsys, "board", str(store.folder), "--question", "papers")
    assert code == 0
    assert "0.385" in out
    assert "0.600" in out
