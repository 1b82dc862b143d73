"""Threads of torch: one in tests, and those of the machine in benchmarks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

ALL, VARIABLE = torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")


def take_one() -> None:
    """One thread, in this process and in those that it starts."""
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"


def take_all() -> None:
    """As many threads as there were before `take_one`."""
    torch.set_num_threads(ALL)
    del os.environ["OMP_NUM_THREADS"]
    os.environ |= {"OMP_NUM_THREADS": VARIABLE} if VARIABLE else {}


@contextmanager
def threads(number: int) -> Iterator[None]:
    """A number of threads for torch, and the earlier number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
