"""Only what is certified is shown as protection: by a number, a rank, a colour or a recommendation."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.findings.every import findings
from leakboard.leaderboards.tables.boards import boards
from leakboard.leaderboards.tables.choosing import choose
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.deciding import deciding
from leakboard.leaderboards.tables.evidence import evidence
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.matrix import matrices
from leakboard.leaderboards.tables.points import pareto, per_setting, points
from leakboard.leaderboards.tables.standing import standings, told
from leakboard.leaderboards.tables.strongest import strongest
from leakboard.leaderboards.tables.sweeps import swept

CHANCE = 0.2


def cells(defense, params, success, utility=0.9, seeds=2, more=(), **fields):
    return [
        record(defense, params, seed, utility, [leak(success, chance=CHANCE), *more], **fields)
        for seed in range(seeds)
    ]


PLAIN = cells("none", {}, 0.95, undefended=True)
TWIN = cells("sap", {"eta": None}, 0.95, undefended=True)
HIDDEN = cells("sap", {"eta": 50.0}, CHANCE, 0.895)
LEAKY = cells("sap", {"eta": 100.0}, 0.5, 0.9)


def found(records, name):
    (one,) = [board for board in boards(comparisons(records)) if board.name == name]
    return one.rows.set_index("setting" if name != "hypervolume" else "defense")


def shield(records, defense="sap", aim=("inversion", "")):
    (matrix,) = matrices(comparisons(records))
    (line,) = [line for line in matrix.lines if line.defense == defense]
    return line.shields[aim]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([*HIDDEN, *TWIN], "certified"),
        ([*LEAKY, *TWIN], "certified"),
        ([*LEAKY], "proven"),
        ([*HIDDEN], "not shown"),
        ([*HIDDEN, *PLAIN], "not shown"),  # not just any undefended cell
        ([*PLAIN], "certified"),  # its own twin
    ],
)
def test_a_result_is_certified_by_its_twin_or_proven_by_what_it_finds(records, expected):
    table = frame(records)
    assert standings(table[table["key"] == records[0].key]).tolist() == [expected]


def test_a_certificate_below_a_fifth_of_the_advantage_is_none():
    # chance 0.2, so that 0.37 ± 0.01 is an advantage of at least 0.2, and 0.36 of less
    weak = [cells("sap", {"eta": None}, x, undefended=True) for x in (0.371, 0.369)]
    told_ = [standings(frame([*HIDDEN, *twin])).iloc[0] for twin in weak]
    assert told_ == ["certified", "not shown"]


def test_what_is_not_shown_has_no_number_and_a_bound_says_so():
    assert told("0.500", "certified") == "0.500"
    assert told("0.500", "proven") == "≤ 0.500"
    assert told("0.500", "not shown") == "not shown"


def test_matrix_shows_colours_where_a_certificate_stands_behind_them_only():
    sure = shield([*PLAIN, *TWIN, *HIDDEN])
    assert (sure.number, sure.coloured, sure.kept) == ("1.00", True, pytest.approx(1.0))
    hidden = shield([*PLAIN, *HIDDEN])
    assert (hidden.number, hidden.coloured, hidden.kept) == ("not shown", False, None)
    assert "eia-nn: the attack found nothing clear" in hidden.why
    leaky = shield([*PLAIN, *LEAKY])
    assert (leaky.number, leaky.coloured) == ("≤ 0.62", False)


def test_matrix_shows_no_number_of_what_may_not_be_the_defenses_doing():
    # As little is found without protection.
    idle = shield([*cells("none", {}, CHANCE, 0.95, undefended=True), *TWIN, *HIDDEN])
    assert (idle.verdict, idle.number, idle.coloured) == ("not shown", "not shown", False)
    assert idle.why == "eia-nn finds nothing clear, and it is not shown that the defense is why"


def test_matrix_chooses_the_setting_that_is_shown_to_keep_most():
    told = cells("sap", {"eta": 75.0, "bottom": "trainable"}, CHANCE)  # without a twin of its own
    (matrix,) = matrices(comparisons([*PLAIN, *TWIN, *LEAKY, *told]))
    (line,) = [line for line in matrix.lines if line.defense == "sap"]
    assert line.label.startswith("η = 100")


def test_a_column_in_which_the_undefended_model_keeps_most_says_that_nothing_works_yet():
    def member(success):
        return leak(success, "membership", Goal.MEMBERSHIP, 0.5, channel=Channel.MODEL)

    def idle(success):
        plain = cells("none", {}, 0.95, undefended=True, more=[member(success)])
        (matrix,) = matrices(comparisons([*plain, *cells("dpsgd", {}, 0.5, more=[member(0.5)])]))
        return matrix.idle

    assert idle(0.55) == {("membership", "")}
    assert idle(0.65) == frozenset()


def test_an_attack_that_is_not_shown_to_work_decides_nothing_where_another_is():
    # By luck the blind one stands a little above the other, whose failure is evidence.
    blind = leak(0.205, "eia-optimise", chance=CHANCE)
    records = [*TWIN, *cells("sap", {"eta": 50.0}, CHANCE, more=[blind])]
    assert set(deciding(frame(records))["attack"]) == {"eia-nn"}
    # What it clearly finds counts all the same.
    seen = leak(0.3, "eia-optimise", chance=CHANCE)
    records = [*TWIN, *cells("sap", {"eta": 50.0}, CHANCE, more=[seen])]
    table = deciding(frame(records))
    assert set(table[~table["undefended"]]["attack"]) == {"eia-optimise"}


def test_boards_rank_what_is_certified_and_name_the_rest():
    records = [*PLAIN, *TWIN, *HIDDEN, *cells("frozen", {}, CHANCE), *cells("blackout", {}, 0.5)]
    rows = found(records, "best-privacy")
    assert rows.loc["η = 50", "rank"] == "1–2"
    assert rows["rank"].tolist()[-1] == "–"
    assert (rows.loc["blackout", "rank"], rows.loc["blackout", "privacy"][:2]) == ("–", "≤ ")
    # `frozen` is certified by `none`; without it nothing is.
    assert rows.loc["frozen", "privacy"].startswith("1.000")
    blind = [*PLAIN, *HIDDEN, *cells("blackout", {}, CHANCE)]
    rows = found(blind, "best-privacy")
    told = rows.loc[["η = 50", "blackout"], ["rank", "privacy", "EP"]]
    assert set(told.to_numpy().ravel()) == {"–", "not shown"}
    front = found(blind, "front")
    assert front.loc["none", "on the front"] == "yes"
    assert front.loc["blackout", "on the front"] == "–"
    area = found(blind, "hypervolume")
    assert (area.loc["sap", "rank"], area.loc["sap", "hypervolume"]) == ("–", "not shown")


def test_nothing_is_recommended_without_a_certificate():
    assert choose(comparisons([*PLAIN, *TWIN, *HIDDEN]), "reviews", "inputs", 0.02)
    blind = choose(comparisons([*PLAIN, *HIDDEN, *LEAKY]), "reviews", "inputs", 0.02)
    assert not blind
    assert blind.nearest is None
    assert blind.front == ()
    assert "not shown: no attack on inputs is certified there" in blind.why


def test_no_finding_praises_what_is_not_certified_and_a_leak_is_told_all_the_same():
    (told,) = findings(comparisons([*PLAIN, *HIDDEN, *LEAKY]))
    assert told.settings == ("sap η=100",)
    assert "does not hide" in told.claim
    every = findings(comparisons([*PLAIN, *TWIN, *HIDDEN, *LEAKY]))
    assert sorted(one.rule for one in every) == ["overview", "setting", "setting"]


def test_evidence_carries_the_strength_of_the_certificate():
    (one,) = evidence(comparisons([*PLAIN, *TWIN, *HIDDEN]), Goal.INVERSION)
    assert one.strength == pytest.approx((0.94 - CHANCE) / 0.8)
    assert one.certified


def test_curves_leave_out_what_is_not_shown_and_name_bounds():
    table = points(frame([*PLAIN, *HIDDEN, *LEAKY]), "inversion").set_index("label")
    assert table["ep"].isna().to_dict() == {"none": False, "η = 50": True, "≤ η = 100": False}
    assert table["success"].isna().sum() == 1
    assert pareto(table)["defense"].tolist() == ["none"]
    means = swept(frame([*PLAIN, *HIDDEN, *LEAKY]), "inversion", "eta")
    assert means.set_index("x")["ep"].isna().to_dict() == {50.0: True, 100.0: False}


def test_tables_of_settings_say_what_is_not_shown():
    rows = per_setting(frame([*PLAIN, *HIDDEN]))
    told = rows.set_index("defense")[["standing", "paper_standing"]]
    assert told.loc["sap"].tolist() == ["not shown", "not shown"]
    records = [*PLAIN, *HIDDEN, *LEAKY]
    table = strongest(frame(records), comparisons(records)).set_index("setting")
    assert table["standing"].to_dict() == {
        "none": "certified",
        "sap η=100": "proven",
        "sap η=50": "not shown",
    }
    assert table["ep"].isna().sum() == 1
    shown = repr(strongest(frame(records), comparisons(records)))
    assert "not shown" in shown
    assert "≤ 0.500" in shown
