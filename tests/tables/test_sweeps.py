"""Lines against one swept parameter."""

from __future__ import annotations

import pytest
from records import leak, record
from sweeps import deep, told

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.record import Record
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.printed import printed_points
from leakboard.leaderboards.tables.sweeps import printed_sweep, swept

pytestmark = pytest.mark.usefixtures("certified")


def test_a_line_is_what_differs_in_nothing_but_the_swept_parameter_and_the_seed():
    means = swept(frame(deep()), "inversion", "cut")
    assert dict(means.groupby("line")["x"].agg(sorted)) == {
        "η = none": [0, 2, 4],
        "η = 50": [0, 2, 4],
    }
    open_line = means[means["line"] == "η = none"].set_index("x")
    assert open_line.loc[2, "ep"] == pytest.approx(1 - 0.705)
    assert set(means["n_seeds"]) == {2}


def test_of_an_attacks_parameter_the_strongest_is_chosen_at_each_value():
    means = swept(frame(told()), "attribute", "labelled").set_index("x")
    assert means["success"].to_dict() == {0.01: 0.5, 0.1: 0.65, 0.5: 0.8}
    assert means["attack"].tolist() == ["aia-mlp", "aia-finetune", "aia-finetune"]
    named = swept(frame(told()), "attribute", "labelled", "paper").set_index("x")
    assert named["success"].to_dict() == {0.01: 0.4, 0.1: 0.65, 0.5: 0.8}


def public(seed: int) -> Record:
    """An attack that learns from more or less public text of two kinds, and one that does not."""
    found = [
        leak(base + 0.1 * i, attack="eia-map", params={"auxiliary": kind, "sentences": n})
        for kind, base in (("own", 0.5), ("reviews", 0.45))
        for i, n in enumerate((600, 6000))
    ]
    return record("sap", {"eta": 75.0}, seed, leaks=[*found, leak(0.48, attack="eia-nn")])


def test_other_parameters_of_the_one_attack_that_is_asked_for_tell_lines_apart():
    rows = frame([public(0), public(1)])
    means = swept(rows, "inversion", "sentences", "eia-map")
    lines = {
        name: dict(zip(own["x"], own["success"], strict=True))
        for name, own in means.groupby("line")
    }
    assert lines == {
        "sap, text of the task": {600: 0.5, 6000: pytest.approx(0.6)},
        "sap, text of reviews": {600: 0.45, 6000: pytest.approx(0.55)},
        "sap, eia-nn": {600: 0.48, 6000: 0.48},
    }
    assert set(means["n_seeds"]) == {2}
    assert means.groupby("line")["value"].nunique().tolist() == [1, 1, 1]
    assert means["value"].nunique() == 3
    strongest = swept(rows, "inversion", "sentences")
    assert set(strongest["line"]) == {"sap", "sap, eia-nn"}


def test_an_unknown_parameter_is_told_the_nearest_one():
    with pytest.raises(LeakboardError, match=r"no parameter 'labeled'.*Did you mean 'labelled'"):
        swept(frame(told()), "attribute", "labeled")


def test_a_goal_without_results_is_told():
    with pytest.raises(LeakboardError, match="no attack of the goal 'label' has an ok result"):
        swept(frame(told()), "label", "cut")


def test_printed_cuts_are_points_of_the_lines_of_their_eta():
    means = swept(frame(deep()), "inversion", "cut")
    known = printed_sweep(printed_points("SAP", ["Table 4"]), "cut", means)
    assert len(known) == 28
    line = known[known["line"] == "η = 25"].set_index("x")
    assert line["ep"].to_dict() == pytest.approx({2: 0.2397, 4: 0.4184, 6: 0.7014, 8: 0.8478})
    # Table 3 has one cut, which is no sweep; and no paper prints inversion as attribute inference.
    assert printed_sweep(printed_points("SAP", ["Table 3"]), "cut", means).empty
    attributes = swept(frame(told()), "attribute", "cut")
    assert printed_sweep(printed_points("SAP", ["Table 4"]), "cut", attributes).empty
