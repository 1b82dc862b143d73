"""Success against the number of messages about a text, beside the guarantee of all of them."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Claim, Goal
from leakboard.leaderboards.figures.drawing import Request, plots
from leakboard.leaderboards.tables.record_set import RecordSet


def sent(defense, parameter, knob, epochs, success, fresh, claimed=None, goal=Goal.INVERSION):
    claim = Claim(guarantee="g", parameters={claimed or knob: parameter}, covers="a message")
    found = [leak(success, goal=goal)]
    return record(defense, {knob: parameter, **fresh}, leaks=found, epochs=epochs, claim=claim)


def measured():
    clear = record("sap", {"eta": None, "bottom": "frozen"}, leaks=[leak(1.0)], undefended=True)
    own = [
        sent("sap", 50.0, "eta", epochs, success, {"bottom": bottom})
        for bottom, epochs, success in (
            ("frozen", 3, 0.2), ("trainable", 20, 0.9), ("trainable", 5, 0.6),
        )
    ]  # fmt: skip
    alone = sent("sap", 25.0, "eta", 3, 0.1, {"bottom": "frozen"})
    return [clear, *own, alone]


def lines(panel):
    return {one.name: [(p.x.value, p.y.value) for p in one.points] for one in panel.series}


def test_a_text_that_is_kept_was_sent_once_and_the_guarantees_of_messages_add_up():
    (plot,) = plots(RecordSet.of(measured()), Request("sends")).values()
    success, composed = plot.panels
    assert lines(success) == {"SAP, η = 50": [(1, 0.2), (5, 0.6), (20, 0.9)]}
    assert lines(composed) == {"SAP, η = 50": [(1, 50), (5, 250), (20, 1000)]}
    assert [n for n, _ in success.x.ticks] == [1, 5, 20]


def test_a_claim_about_dimensions_is_that_of_one_dimension():
    own = [
        sent("dpnr", 1.0, "epsilon", epochs, 0.5, {"encoder": encoder}, "epsilon_per_dimension")
        for encoder, epochs in (("frozen", 3), ("trained", 20))
    ]
    (plot,) = plots(RecordSet.of(own), Request("sends")).values()
    assert lines(plot.panels[1]) == {"DPNR, ε = 1": [(1, 1), (20, 20)]}


def test_settings_with_one_number_of_messages_are_not_drawn_and_the_reason_says_so():
    with pytest.raises(
        LeakboardError, match="different numbers of times; the suite 'repeated-sends' does"
    ):
        plots(RecordSet.of(measured()[-1:]), Request("sends"))


def test_lines_that_have_different_chances_have_a_line_of_guessing_each():
    for chances, expected in (
        ((0.1, 0.1), ["guessing"]),
        ((0.1, 0.3), ["guessing (SAP, η = 50)", "guessing (SAP, η = 25)"]),
    ):
        own = [
            sent("sap", eta, "eta", epochs, 0.5, {"bottom": bottom}).model_copy(
                update={"leaks": [leak(0.5, chance=chance)]}
            )
            for eta, chance in zip((50.0, 25.0), chances, strict=True)
            for bottom, epochs in (("frozen", 3), ("trainable", 5))
        ]
        (plot,) = plots(RecordSet.of(own), Request("sends")).values()
        levels = plot.panels[0].references
        assert [level.label for level in levels] == expected
        assert [level.value for level in levels] == pytest.approx(sorted(set(chances)))
