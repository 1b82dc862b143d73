"""What is not shown has no colour and no number, in figures and on the terminal."""

from __future__ import annotations

import io
from math import isnan

import pytest
from matplotlib.colors import to_hex
from records import estimate, leak, record
from rich.console import Console

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.record import Point
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.figures.kinds.bars import bars
from leakboard.leaderboards.figures.kinds.goals import MAP, goals
from leakboard.leaderboards.figures.kinds.sensitivity import sensitivity
from leakboard.leaderboards.figures.kinds.tradeoff import tradeoff
from leakboard.leaderboards.figures.kinds.training import training
from leakboard.leaderboards.figures.label_leak import leaks
from leakboard.leaderboards.figures.legend import GREY
from leakboard.leaderboards.figures.notes import note
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.looks import look
from leakboard.leaderboards.tables.matrix import matrices
from leakboard.leaderboards.tables.points import points
from leakboard.leaderboards.terminal.boards import matrix_tables

CHANCE = 0.2


def cells(defense, params, success, **fields):
    member = leak(0.52, "membership", Goal.MEMBERSHIP, 0.5)
    leaks = [leak(success, chance=CHANCE), member]
    return [record(defense, params, seed, 0.9, leaks, **fields) for seed in (0, 1)]


RECORDS = [
    *cells("none", {}, 0.95, undefended=True),
    *cells("sap", {"eta": 50.0}, CHANCE),
    *cells("frozen", {}, 0.5),
    *cells("blackout", {}, 0.5),
]


def test_the_matrix_is_hatched_or_white_where_no_certificate_stands_behind_a_field(
    saved_by, tmp_path
):
    drawn = saved_by("kinds.goals")
    (matrix,) = matrices(comparisons(RECORDS))
    goals([matrix], tmp_path / "x", "title")
    _, ax = (ax for top in drawn[0].subfigs for part in top.subfigs for ax in part.axes)
    x = list(matrix.aims).index(("inversion", ""))
    inside = {line.defense: y for y, line in enumerate(matrix.lines)}

    def field(defense):
        y = inside[defense]
        (patch,) = [p for p in ax.patches if p.get_bbox().contains(x, y)]
        texts = [t.get_text() for t in ax.texts if round(t.get_position()[0]) == x]
        own = [t.get_text() for t in ax.texts if tuple(map(round, t.get_position())) == (x, y)]
        assert set(own) <= set(texts)
        return patch, own

    hidden, words = field("sap")
    assert (bool(hidden.get_hatch()), words) == (True, ["not shown"])
    bound, words = field("blackout")
    assert bound.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert words[0] == "≤ 0.62"
    sure, words = field("frozen")
    assert sure.get_facecolor() == pytest.approx(MAP(0.05 + 0.9 * 0.625))
    assert words[0] == "0.62"
    heads = [label.get_text().replace("\n", " ") for label in ax.get_xticklabels()]
    assert heads[matrix.aims.index(("membership", ""))] == "membership (no attack here works yet)"
    assert "works yet" not in heads[x]


def test_the_matrix_on_the_terminal_has_the_same_words():
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="standard")
    (matrix,) = matrices(comparisons(RECORDS))
    for part in matrix_tables(matrix):
        console.print(part)
    told = console.file.getvalue()
    green, yellow = "\x1b[32m", "\x1b[33m"
    assert "not shown" in told
    assert "no attack here works yet" in told
    assert f"{green}1.00" not in told
    assert f"{yellow}0.62" in told  # certified
    assert f"{yellow}≤ 0.62" not in told
    assert "≤ 0.62" in told
    assert "≤ at most so much" in told


def test_a_curve_says_how_many_points_it_leaves_out_and_which_are_bounds(tmp_path):
    table = points(frame(RECORDS), "inversion")
    told = note(table)
    assert "Not shown: 1 point without a certified attack." in told
    assert "attack: eia-nn." in told
    (bound,) = table[table["standing"] == "proven"]["label"]
    assert bound == "≤ blackout"
    with pytest.raises(LeakboardError, match="none of the points is shown"):
        tradeoff(points(frame(RECORDS[2:4]), "inversion"), tmp_path / "x", "title")


def label_cells(defense, params, utility, **successes):
    """Cells of a defense, and what each attack finds of the labels in what was sent."""

    def one(attack, success):
        curve = [
            Point(step=step, part=0, recipient="vendor", success=estimate(success, CHANCE))
            for step in (0, 9)
        ]
        where = {"channel": Channel.ACTIVATIONS, "view": "worst", "step": 0, "curve": curve}
        return leak(success, attack, Goal.LABEL, CHANCE, **where)

    own = [one(attack, success) for attack, success in successes.items()]
    off = {"undefended": defense == "none", "loss": [1.0, 0.5]}
    return [record(defense, params, seed, utility, own, **off) for seed in (0, 1)]


LABELS = [
    *label_cells("none", {}, 0.95, spectral=0.9),
    # k-means ran without a certificate, and finds no more than luck would.
    *label_cells("frozen", {}, 0.6, spectral=CHANCE, kmeans=CHANCE + 0.005),
    *label_cells("p3eft", {"weight": 1.0}, 0.8, kmeans=0.5),
    *label_cells("p3eft", {"weight": 3.0}, 0.7, kmeans=CHANCE),
]


def words_of(figure):
    return " ".join(
        " ".join(text.get_text() for part in figure.subfigs for text in part.texts).split()
    )


def test_the_leak_that_is_told_is_of_an_attack_that_works():
    told = leaks(frame(LABELS)).set_index("label")
    assert told["standing"].to_dict() == {
        "none": "certified",
        "frozen": "certified",
        "≥ weight = 1": "proven",
        "weight = 3": "not shown",
    }
    assert told.loc["frozen", "success"] == pytest.approx(CHANCE)
    assert (
        told.loc[["weight = 3"], ["success", "success_low", "success_high"]].isna().to_numpy().all()
    )


def test_bars_are_hatched_where_no_attack_is_certified(saved_by, tmp_path):
    drawn = saved_by("kinds.bars")
    bars(frame(LABELS), None, tmp_path / "x", "t")
    ax = drawn[0].subfigs[0].axes[1]
    names = [label.get_text() for label in ax.get_xticklabels()]
    hidden = names.index("p3eft\nweight=3")
    whole = [bar for bar in ax.patches if bar.get_height() > 0]
    colour = {round(bar.get_center()[0]): to_hex(bar.get_facecolor()) for bar in whole}
    hatched = [bar for bar in whole if bar.get_hatch()]
    assert [round(bar.get_center()[0]) for bar in hatched] == [hidden]
    bottom, top = ax.get_ylim()
    assert (hatched[0].get_y(), hatched[0].get_height()) == pytest.approx((bottom, top - bottom))
    assert colour[hidden] != look("p3eft").colour == colour[names.index("p3eft\nweight=1")]
    told = {round(text.get_position()[0]): text.get_text() for text in ax.texts}
    assert told == {hidden: "not shown", names.index("p3eft\nweight=1"): "≥"}
    about = words_of(drawn[0])
    assert "Not shown: the leak of 1 point without a certified attack." in about
    assert "≥: at least so much" in about


def test_a_line_of_utility_against_leak_lacks_the_points_that_are_not_shown(saved_by, tmp_path):
    drawn = saved_by("kinds.sensitivity")
    sensitivity(frame(LABELS), tmp_path / "x", "t")
    ax = drawn[0].subfigs[0].axes[0]
    (across,) = [line for line in ax.lines if line.get_color() == GREY]
    assert across.get_ydata() == [0.7, 0.7]
    coloured = [line for line in ax.lines if line.get_color() == look("p3eft").colour]
    seen = [x for line in coloured for x in line.get_xdata() if not isnan(x)]
    assert seen == pytest.approx([0.5])
    told = [text.get_text() for text in ax.texts]
    assert "p3eft, weight = 3: not shown" in told
    assert "≥ 1" in told
    assert "Not shown: the leak of 3 points" in words_of(drawn[0])  # one in each panel


def test_no_curve_over_training_falls_where_no_attack_is_certified(saved_by, tmp_path):
    drawn = saved_by("kinds.training")
    training(LABELS, tmp_path / "x", "t")
    activations, _, loss = drawn[0].subfigs[0].axes
    curves = [line for line in activations.lines if len(line.get_xdata()) == 2]
    heights = sorted(float(line.get_ydata()[0]) for line in curves if line.get_color() != GREY)
    assert heights == pytest.approx([CHANCE, 0.5, 0.9])
    assert [text.get_text() for text in activations.texts] == ["not shown: p3eft weight = 3"]
    assert len(loss.lines) == 4
    assert "not shown where none of them" in words_of(drawn[0])
