"""The device on which a model computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from leakboard.bench.contracts import LeakboardError


def device_of(name: str) -> str:
    """Device by name; `auto` is a CUDA GPU if there is one, else the CPU.

    Raises:
        LeakboardError: unknown name, or a device that is not available.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = str(name).partition(":")
    if name not in ("cpu", "cuda", "mps") and not (kind == "cuda" and number.isdecimal()):
        known = (
            f"torch has a device '{kind}', Leakboard does not support it: " if _has(kind) else ""
        )
        raise LeakboardError(
            f"device: {known}expected cpu, cuda, cuda:N, mps or auto, got '{name}'"
        )
    if kind == "cuda" and not torch.cuda.is_available():
        raise LeakboardError("device: no CUDA device is available; use cpu")
    if number and int(number) >= (there := torch.cuda.device_count()):
        raise LeakboardError(f"device: no {name}; the last CUDA device here is cuda:{there - 1}")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise LeakboardError("device: no Apple GPU (mps) is available; use cpu")
    return str(name)


def _has(kind: str) -> bool:
    """True if torch names a type of device so."""
    try:
        return torch.device(kind).type not in ("cpu", "cuda", "mps")
    except RuntimeError:
        return False


def random_state(device: str) -> Tensor:
    """State of torch's random generator on a device."""
    if device.startswith("cuda"):
        return torch.cuda.get_rng_state(device)
    return torch.mps.get_rng_state() if device.startswith("mps") else torch.get_rng_state()


def set_random_state(state: Tensor, device: str) -> None:
    """Restores a state of torch's random generator."""
    if device.startswith("cuda"):
        torch.cuda.set_rng_state(state, device)
    elif device.startswith("mps"):
        torch.mps.set_rng_state(state)
    else:
        torch.set_rng_state(state)


@contextmanager
def one_thread() -> Iterator[None]:
    """Context in which torch uses one CPU thread, so that sums do not depend on the number of threads.

    Small layers gain little from more threads. On a busy machine, two threads were nine times slower than one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
