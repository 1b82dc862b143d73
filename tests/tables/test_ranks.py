"""Ranks: what cannot be told apart is tied."""

from __future__ import annotations

from leakboard.leaderboards.tables.ranks import Contender, clearly_better, ranks, spelled


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


def test_what_shows_the_same_is_a_tie_at_zero_and_elsewhere():
    nothing, next_to_nothing = contender(0.0, 0.0, 0.0), contender(0.0002, 0.0003, 0.0002)
    assert ranks([nothing, next_to_nothing, nothing]) == [(1, 3)] * 3
    assert not clearly_better(contender(0.4004, 0.4104, 0.4204), contender(0.4, 0.41, 0.42))
    assert clearly_better(contender(0.401, 0.411, 0.421), contender(0.4, 0.41, 0.42))


def test_ties_hold_all_the_ranks_between():
    field = [
        contender(0.9, 0.91, 0.92), contender(0.5, 0.6, 0.55),
        contender(0.6, 0.5, 0.56), contender(0.1, 0.11, 0.12),
    ]  # fmt: skip
    assert ranks(field) == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert [spelled(*place) for place in ranks(field)] == ["1", "2–3", "2–3", "4"]
    assert ranks([]) == []
