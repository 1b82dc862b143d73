"""What belongs to one curve."""

from __future__ import annotations

import pytest
from records import record

from leakboard.leaderboards.figures.curves import measured_curves, printed_curves
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.points import points
from leakboard.leaderboards.tables.printed import printed_points

pytestmark = pytest.mark.usefixtures("few_methods")


def test_a_curve_holds_what_differs_only_in_the_knob_in_its_order() -> None:
    made = [
        record("sap", {"eta": eta, "bottom": bottom})
        for eta in (100.0, 50.0)
        for bottom in ("frozen", "trainable")
    ]
    found = measured_curves(points(frame(made), "inversion"))
    assert [c.name for c in found] == ["sap (frozen)", "sap (trainable)"]
    assert [c.rows["knob_value"].tolist() for c in found] == [[50, 100], [50, 100]]
    assert found[0].look == found[1].look
    assert found[0].style != found[1].style


def test_models_and_data_limits_do_not_share_a_curve() -> None:
    made = [record("sap", {"eta": 1.0}, model=m, limit=n) for m in ("a", "b") for n in (10, None)]
    found = measured_curves(points(frame(made), "inversion"))
    assert [c.name for c in found] == [
        "sap (a, limit = 10)",
        "sap (a, all data)",
        "sap (b, limit = 10)",
        "sap (b, all data)",
    ]


def test_printed_points_are_hollow_and_say_where_they_stand() -> None:
    found = printed_curves(printed_points("SAP", ["Table 3"]))
    assert all(c.hollow and len(c.rows) == 6 for c in found)
    assert found[1].name == "sap (SAP, Table 3, roberta-large, trainable)"
    assert found[0].rows["label"].iloc[0] == "η = 45"


def test_no_noise_stands_at_the_far_end_of_a_printed_curve() -> None:
    found = printed_curves(printed_points("SAP", ["Table 4"]))
    assert [c.rows["label"].iloc[-1] for c in found] == ["η = none"] * 4
