"""What is not shown has no colour and no number, in figures and on the terminal."""

from __future__ import annotations

import io

import pytest
from records import leak, record
from rich.console import Console

from bench.contracts.errors import LeakboardError
from bench.contracts.threat import Goal
from leaderboards.figures.kinds.goals import MAP, goals
from leaderboards.figures.kinds.tradeoff import tradeoff
from leaderboards.figures.notes import note
from leaderboards.tables.comparisons import comparisons
from leaderboards.tables.frame import frame
from leaderboards.tables.matrix import matrices
from leaderboards.tables.points import points
from leaderboards.terminal.boards import matrix_tables

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
