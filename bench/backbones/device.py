"""The device on which a model computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from leakboard.bench.contracts import LeakboardError


def device_of(name: str) -> str:
    """The device of that name; `auto` is a GPU where there is one.

    Raises:
        LeakboardError: another word, or a GPU where there is none.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = str(name).split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise LeakboardError(f"device: expected cpu, cuda, cuda:N or auto, got '{name}'")
    if kind == "cuda" and not torch.cuda.is_available():
        raise LeakboardError("device: no CUDA device is available here; use cpu")
    return str(name)


def random_state(device: str) -> Tensor:
    """The state of torch's generator on a device."""
    return torch.cuda.get_rng_state(device) if device.startswith("cuda") else torch.get_rng_state()


def set_random_state(state: Tensor, device: str) -> None:
    """Goes back to an earlier state."""
    if device.startswith("cuda"):
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


@contextmanager
def one_thread() -> Iterator[None]:
    """With one thread the sums on a CPU, and so the weights, do not depend on how many a user allows.

    Small layers gain little from more, and on a busy machine threads wait for each other: two were
    measured nine times slower than one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
