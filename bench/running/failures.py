"""How an attack or a cell fails without taking the others along."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Callable
from typing import TypeVar

import torch

from leakboard.bench.contracts import (
    Leak,
    LeakboardError,
    Status,
)
from leakboard.bench.methods import spec_of
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.scoring import BadGuess

T = TypeVar("T")
EXHAUSTED = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""What a RuntimeError without a type of its own says: torch's on the CPU; CUDA's, also from FAISS; and
cuBLAS's."""


def failed(pairing: Pairing, status: Status, reason: str) -> list[Leak]:
    """The leaks of an attack that could find nothing, one per goal."""
    spec = spec_of(pairing.attack)
    return [
        Leak(attack=spec, status=status, reason=reason, goal=goal) for goal in sorted(pairing.goals)
    ]


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on the device or in this process."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in EXHAUSTED)
    )


def give_back(device: str) -> None:
    """What a cell held of a GPU on which memory ran out, to the others on it. Its error has to be gone."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def isolated(call: Callable[[], T]) -> T:
    """Runs an attack on a stack of its own, so that no frame above it holds the truth."""
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(call())
        except BaseException as error:  # handed to the caller, whatever it is
            failure.append(error)

    thread = threading.Thread(target=work, name="attack", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def told(error: BaseException) -> str:
    """One line about an error: what and where."""
    if isinstance(error, LeakboardError | BadGuess):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
