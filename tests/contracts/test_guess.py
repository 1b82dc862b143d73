"""Guesses in whatever an attack computes with become the arrays that scoring reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Guess


def guess(rows, values, lengths=None) -> Guess:
    return Guess(Goal.INVERSION, Channel.REPRESENTATIONS, "train", rows, values, lengths)


FORMS = {
    "lists": list,
    "arrays": np.array,
    "small arrays": lambda values: np.array(values, np.uint8),
    "tensors": torch.tensor,
    "small tensors": lambda values: torch.tensor(values, dtype=torch.int32),
    "ranges": lambda values: values if len(set(values)) == 1 else tuple(values),
}


@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_of_any_form_become_int64(form):
    take = FORMS[form]
    made = guess(take([2, 0, 1]), take([7, 8, 9, 9]), take([1, 2, 1]))
    for found, meant in (
        (made.rows, [2, 0, 1]),
        (made.values, [7, 8, 9, 9]),
        (made.lengths, [1, 2, 1]),
    ):
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.int64
        assert found.tolist() == meant


def test_real_numbers_that_rank_keep_their_precision():
    values = np.random.default_rng(0).standard_normal(5)
    assert guess([0, 1, 2, 3, 4], values).values is values
    assert guess(range(5), torch.from_numpy(values)).values.tolist() == values.tolist()
    halves = torch.tensor([0.5, 1.5], dtype=torch.bfloat16)
    assert guess([0, 1], halves).values.tolist() == [0.5, 1.5]


def test_a_tensor_with_a_graph_is_taken_without_it():
    values = torch.ones(2, requires_grad=True) * 2
    assert guess([0, 1], values).values.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (([0.0, 1.0], [1, 2]), "Guess.rows must be whole numbers"),
        (([[0], [1]], [1, 2]), "Guess.rows must be whole numbers"),
        ((["a"], [1]), "Guess.rows must be whole numbers"),
        ((None, [1]), "Guess.rows must be whole numbers"),
        (([0], ["a"]), "Guess.values must be numbers"),
        (([0], [[1], [2, 3]]), "Guess.values must be numbers"),
        (([0], [1], [1.0]), "Guess.lengths must be whole numbers"),
    ],
)
def test_what_is_no_number_is_told_with_its_field(fields, told):
    with pytest.raises(LeakboardError, match=told):
        guess(*fields)
