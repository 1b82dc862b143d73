"""The device on which a model computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from leakboard.bench.contracts import LeakboardError


def device_of(name: str) -> str:
    """The device of that name; `auto` is a CUDA GPU where there is one, and else the CPU.

    Raises:
        LeakboardError: another word, or a device that this machine has not.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = str(name).split(":")[0]
    if kind not in ("cpu", "cuda", "mps"):
        raise LeakboardError(f"device: expected cpu, cuda, cuda:N, mps or auto, got '{name}'")
    if kind == "cuda" and not torch.cuda.is_available():
        raise LeakboardError("device: no CUDA device is available here; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise LeakboardError("device: no GPU of Apple (mps) is available here; use cpu")
    return str(name)


def random_state(device: str) -> Tensor:
    """The state of torch's generator on a device."""
    if device.startswith("cuda"):
        return torch.cuda.get_rng_state(device)
    return torch.mps.get_rng_state() if device.startswith("mps") else torch.get_rng_state()


def set_random_state(state: Tensor, device: str) -> None:
    """Goes back to an earlier state."""
    if device.startswith("cuda"):
        torch.cuda.set_rng_state(state, device)
    elif device.startswith("mps"):
        torch.mps.set_rng_state(state)
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
