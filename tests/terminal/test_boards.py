"""Leaderboards and the matrix on a terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from leakboard.bench.records import Store
from leakboard.leaderboards.tables import boards, matrices
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.terminal import board_tables, matrix_tables

MATRIX = Path(__file__).parents[2] / "results" / "published" / "matrix"


@pytest.fixture(scope="module")
def compared():
    return comparisons(Store(MATRIX).read_all())


def printed(parts: list, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    for part in parts:
        console.print(part)
    return console.file.getvalue()


def test_a_terminal_of_80_columns_cuts_no_word_of_a_board(compared):
    every = [board_tables(board) for board in boards(compared)]
    assert {"best-privacy", "matched", "front", "hypervolume", "cost"} == {
        board.name for board in boards(compared)
    }
    assert not [text for parts in every if "…" in (text := printed(parts))]


def test_what_stands_in_all_rows_is_said_once(compared):
    (board,) = (
        board for board in boards(compared) if (board.name, board.goal) == ("matched", "inversion")
    )
    text = printed(board_tables(board), 160)
    assert text.count("the reported figure") == 1
    assert "In all rows: seeds 3; matched on the reported figure." in " ".join(text.split())
    assert "uncertified-attack" in text  # of one row alone


def test_a_setting_stands_below_its_defense_and_no_interval_is_torn(compared):
    (board,) = (
        board for board in boards(compared) if (board.name, board.goal) == ("cost", "inversion")
    )
    lines = printed(board_tables(board)).splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("sap  ") and "0.074" in line)
    assert "0.074 [0.067, 0.082]" in lines[at]
    assert lines[at + 1].startswith("η = 110")


def test_points_lost_stand_with_their_interval_below(compared):
    (matrix, *_) = matrices(compared)
    lines = printed(matrix_tables(matrix)).splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("crt ε=3"))
    assert lines[at].split()[2] == "4.9"
    assert "[4.6, 5.2]!" in lines[at + 1]


def test_a_narrow_terminal_leaves_out_what_is_claimed_and_sent_and_says_so(compared):
    (matrix, *_) = matrices(compared)
    parts = matrix_tables(matrix)
    narrow, wide = printed(parts, 80), printed(parts, 100)
    assert "3,840" in wide
    assert "3,840" not in narrow
    assert "claims and MB/epoch stand beside it from 100 columns on" in narrow
    assert "stand beside it" not in wide
    assert "(10)" in narrow
    assert narrow.count("\n(10) ") == 1  # notes have one number in both
    assert "…" not in narrow + wide
