"""Styles and parameters of defenses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from few_methods import FEW

from leakboard.bench.methods import registry
from leakboard.leaderboards.tables import defenses

pytestmark = pytest.mark.usefixtures("few_methods")


def test_a_new_method_shifts_no_style(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [defenses.style_of(name) for name in ("sap", "mine")]
    more = {
        "aaa": SimpleNamespace(
            colour="#111111",
            marker="x",
            knob="k",
            measured_by={},
            measured_on=(),
            measured_worst=False,
            formerly=(),
        ),
        **FEW,
    }
    monkeypatch.setattr(registry, "defenses", lambda: more)
    assert [defenses.style_of(name) for name in ("sap", "mine")] == before
    assert before[0] == defenses.Style("#0072b2", "o")
    assert before[1].colour in defenses.PALETTE


def test_parameters_read_as_words() -> None:
    assert (
        defenses.format_parameters('{"eta": 75.0, "k": null, "m": 2}', ["eta", "k"])
        == "η = 75, k = none"
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("servers", "one", "servers = one"),
        ("backprop", "combined", "backprop = combined"),
        ("tune", "head", "tune = head"),
        ("bottom", "trainable", "trainable"),
        ("canaries", "masked", "masked"),
        ("detector", "high-entity", "high-entity"),
        ("head", "private", "private head"),
    ],
)
def test_a_word_has_the_name_of_its_parameter_unless_it_says_enough(
    name: str, value: str, words: str
) -> None:
    assert defenses.format_parameter(name, value) == words


def test_training_of_a_first_phase_is_named_only_where_nothing_else_distinguishes() -> None:
    light, direct = '{"phase1": "light-noise"}', '{"phase1": "direct", "phase1_epochs": 6}'
    assert defenses.varying_names([light, direct]) == ["phase1"]
    longer = '{"phase1": "direct", "phase1_epochs": 9}'
    assert defenses.varying_names([light, direct, longer]) == ["phase1", "phase1_epochs"]
    assert defenses.varying_names([light, direct], but="phase1") == []
