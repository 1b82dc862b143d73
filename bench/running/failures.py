"""How an attack or a cell fails without stopping the others."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Callable
from typing import TypeVar

import torch

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.scoring import BadGuess

T = TypeVar("T")
OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Messages of a plain RuntimeError: of torch on the CPU; of CUDA, also from FAISS; and of cuBLAS."""


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory ran out, on the device or in this process."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )


def free_memory(device: str) -> None:
    """Returns unused GPU memory to other processes; call it after the error is out of scope."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device.startswith("mps"):
        torch.mps.empty_cache()


def run_isolated(call: Callable[[], T]) -> T:
    """Runs an attack on a thread of its own, so that no frame above it holds the truth."""
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


def error_line(error: BaseException) -> str:
    """One line about an error: its type, its message, and the line of code that raised it."""
    if isinstance(error, LeakboardError | BadGuess):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
