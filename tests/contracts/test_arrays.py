"""Ids, rows and labels from lists, arrays and tensors, and what is none of these."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from leakboard.bench.contracts.arrays import as_ints, as_numbers
from leakboard.bench.contracts.errors import LeakboardError

KINDS = {
    "list": [3, 1, 2],
    "tuple": (3, 1, 2),
    "of tensors": [torch.tensor(3), torch.tensor(1), torch.tensor(2)],
    "uint8": np.array([3, 1, 2], np.uint8),
    "int32": np.array([3, 1, 2], np.int32),
    "uint64": np.array([3, 1, 2], np.uint64),
    "big-endian": np.array([3, 1, 2], ">i4"),
    "tensor": torch.tensor([3, 1, 2]),
    "tensor of int16": torch.tensor([3, 1, 2], dtype=torch.int16),
    "tensor with gaps": torch.tensor([3, 9, 1, 9, 2])[::2],
}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_become_int64_whatever_they_come_in(kind):
    found = as_ints(KINDS[kind], "rows", length=3, least=1)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int64
    assert found.tolist() == [3, 1, 2]


def test_what_is_such_an_array_is_not_copied_and_an_empty_list_is_one():
    rows = np.arange(3)
    assert as_ints(rows, "rows") is rows
    assert as_ints([], "rows").dtype == np.int64


WRONG = {
    "floats": ([0.5], "rows must be whole numbers [n], got list of float64 [1]"),
    "a tensor of floats": (torch.rand(20), "got torch.float32 [20]"),
    "truth values": ([True], "got list of bool [1]"),
    "a tensor of truth values": (torch.tensor([True]), "got torch.bool [1]"),
    "two dimensions": (torch.zeros(4, 2, dtype=torch.int64), "got torch.int64 [4, 2]"),
    "one number": (5, "got int 5"),
    "nothing": (None, "got NoneType None"),
    "text": ("12", "got str '12'"),
    "lists of two lengths": ([[1], [1, 2]], "got list [[1], [1, 2]]"),
    "negative": ([0, -2], "rows must be whole numbers from 0, got -2"),
    "beyond int64": (np.array([2**63], np.uint64), "is larger than any int64"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_are_no_rows_is_refused_by_name_type_and_shape(case):
    value, message = WRONG[case]
    with pytest.raises(LeakboardError, match=re.escape(message)):
        as_ints(value, "rows", least=0)


def test_another_length_is_refused():
    with pytest.raises(
        LeakboardError, match=re.escape("rows must be whole numbers [5], got torch")
    ):
        as_ints(torch.arange(20), "rows", length=5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.ones(2, dtype=torch.bfloat16), np.float32),
        (np.ones(2, np.float16), np.float32),
        (torch.ones(2, requires_grad=True), np.float32),
        (torch.ones(2, dtype=torch.float64), np.float64),
        (torch.ones(2, dtype=torch.int32), np.int64),
        ([1, 2], np.int64),
        ([1.5, 2], np.float64),
    ],
    ids=str,
)
def test_numbers_keep_their_type_but_for_halves_and_short_integers(value, expected):
    assert as_numbers(value, "values").dtype == expected


@pytest.mark.parametrize("value", [["a"], None, [None], [[1], [1, 2]], {"a": 1}], ids=str)
def test_what_are_no_numbers_is_refused(value):
    with pytest.raises(LeakboardError, match="values must be numbers, got"):
        as_numbers(value, "values")


def test_the_converter_does_without_torch():
    code = "import sys; from leakboard.bench.contracts import as_ints; as_ints([1], 'x'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
