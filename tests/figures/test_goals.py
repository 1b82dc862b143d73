"""The figure of the matrix: each field says what the matrix says."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from records import leak, record
from typer.testing import CliRunner

from leakboard.bench.cli import app
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Claim, Goal
from leakboard.bench.records.store import Store
from leakboard.leaderboards.figures.kinds.goals import goals
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.matrix import matrices

pytestmark = pytest.mark.usefixtures("certified")

EPSILON = Claim(guarantee="dp", parameters={"epsilon": 3.0}, covers="texts")


def records():
    found = []
    for seed in range(3):
        label = leak(0.9, "spectral", Goal.LABEL, 0.5)
        found += [
            record("none", {}, seed, 0.9, [leak(1.0), label], undefended=True),
            record("sap", {"eta": 90.0}, seed, 0.89, [leak(0.6), label], claim=EPSILON),
            record("sap", {"eta": 50.0}, seed, 0.7, [leak(0.1), label]),
            record("frozen", {}, seed, 0.6, [leak(0.7)]),
        ]
    return found


@pytest.fixture
def drawn(saved_by) -> list[Figure]:
    return saved_by("kinds.goals")


def test_each_field_holds_what_is_kept_and_what_found_the_rest(drawn, tmp_path):
    (matrix,) = matrices(comparisons(records()))
    goals([matrix], tmp_path / "x", "title")
    costs, cells = (ax for top in drawn[0].subfigs for part in top.subfigs for ax in part.axes)
    texts = {(round(t.get_position()[0]), round(t.get_position()[1])): [] for t in cells.texts}
    for text in cells.texts:
        x, y = text.get_position()
        texts[round(x), round(y)].append(text.get_text())
    assert len(texts) == len(matrix.lines) * len(matrix.aims)
    for y, line in enumerate(matrix.lines):
        for x, aim in enumerate(matrix.aims):
            shield, found = line.shields[aim], texts[x, y]
            if shield.kept is None:
                assert found == ["–"]
                continue
            assert found[0].split()[0] == f"{shield.kept:.2f}"
            assert found[1].startswith(shield.row["attack"])
    names = [label.get_text() for label in costs.get_yticklabels()]
    assert names == ["none", "sap η=90\nclaims ε = 3", "(frozen)"]
    points = [line.get_xydata()[0, 0] for line in costs.lines if len(line.get_xydata()) == 1]
    assert points == pytest.approx([0.0, 1.0, 30.0])


def test_no_text_is_wider_than_its_field(drawn, tmp_path):
    """Many goals, long names of attacks, and intervals beside them."""
    found = []
    for seed in range(3):
        aims = [
            (Goal.INVERSION, "eia-transposed-of-the-whole-batch-with-all-that-is-known"),
            (Goal.LABEL, "p3eft-drift"),
        ]
        aims += [(Goal.MEMBERSHIP, "lira"), (Goal.MODEL, "emulator-without-the-vendor")]
        for name, most in (("none", 1.0), ("sap", 0.6 + 0.05 * seed)):
            leaks = [leak(most, attack, goal, 0.2) for goal, attack in aims]
            found.append(record(name, {}, seed, 0.9, leaks, undefended=name == "none"))
    (matrix,) = matrices(comparisons(found))
    goals([matrix], tmp_path / "x", "title")
    _, cells = (ax for top in drawn[0].subfigs for part in top.subfigs for ax in part.axes)
    fields = [one.get_window_extent().width for one in cells.patches]
    texts = [text for text in cells.texts if text.get_text()]
    assert len(texts) == 2 * len(fields) == 16
    for text in texts:
        assert text.get_window_extent().width <= min(fields), text.get_text()
    for number, what in zip(texts[::2], texts[1::2], strict=True):
        assert number.get_window_extent().y0 > what.get_window_extent().y1 - 2, what.get_text()
    # A name that fits keeps its line and its size.
    (short,) = {t.get_fontsize() for t in texts if t.get_text().startswith("lira")}
    assert short == 5.2
    assert min(text.get_fontsize() for text in texts) < 5.2


def test_nothing_to_compare_is_an_error(tmp_path):
    alone = record("none", {}, 0, 0.9, [leak(1.0)])
    with pytest.raises(LeakboardError, match="compares several defenses"):
        goals(matrices(comparisons([alone])), tmp_path / "x", "title")


def test_the_command_draws_it(tmp_path):
    store = Store(tmp_path / "matrix")
    for one in records():
        store.write(one)
    words = ["plot", "goals", str(tmp_path / "matrix"), "--out", str(tmp_path / "plots")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for suffix in ("png", "svg", "pdf"):
        assert (tmp_path / "plots" / f"matrix-goals.{suffix}").stat().st_size > 5000
