"""Arrays as the contracts name them, and the one way by which ids, rows and labels become such."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts.errors import LeakboardError

Ints = NDArray[np.int64]
HALVES = ("torch.bfloat16", "torch.float16", "float16")
"""Types that float32 holds without loss; numpy knows no bfloat16."""


def as_ints(
    value: Any, name: str, *, dims: int = 1, length: int | None = None, least: int | None = None
) -> Ints:
    """Whole numbers as int64, from a list, an array of any integer type, or a torch tensor anywhere.

    What is such an array already comes back as it is.

    Args:
        name: of the argument, for messages.
        length: of the first dimension, where only one will do.
        least: the smallest number allowed.

    Raises:
        LeakboardError: floats, truth values, other dimensions, another length, or smaller numbers.
    """
    array, given = _plain(value), form(value)
    sizes = ["n" if length is None else str(length), *("…" for _ in range(dims - 1))]
    expected = f"{name} must be whole numbers [{', '.join(sizes)}]"
    if array is None:
        raise LeakboardError(f"{expected}, got {given}")
    if not array.size and not hasattr(value, "dtype"):
        array = array.astype(np.int64)  # an empty list has no type
    fits = array.ndim == dims and length in (None, len(array))
    if array.dtype.kind not in "iu" or not fits:
        raise LeakboardError(f"{expected}, got {given}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise LeakboardError(f"{name}: {array.max()} is larger than any int64")
    if least is not None and array.size and array.min() < least:
        raise LeakboardError(f"{name} must be whole numbers from {least}, got {array.min()}")
    return array.astype(np.int64, copy=False)


def as_numbers(value: Any, name: str) -> NDArray[Any]:
    """Numbers as an array: whole ones as int64, half precision as float32; from what `as_ints` takes.

    Raises:
        LeakboardError: text, objects, or lists of different lengths.
    """
    array = _plain(value)
    if array is None or array.dtype.kind not in "iufb":
        raise LeakboardError(f"{name} must be numbers, got {form(value)}")
    return array.astype(np.int64, copy=False) if array.dtype.kind in "iu" else array


def form(value: Any) -> str:
    """Type and shape of whatever was given, for messages."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {list(value.shape)}"
    array = _plain(value)
    if array is None or isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return f"{type(value).__name__} {value!r:.40}"
    return f"{type(value).__name__} of {array.dtype} {list(array.shape)}"


def _plain(value: Any) -> NDArray[Any] | None:
    """As numpy holds it; None where it holds it as text or objects only."""
    half = str(getattr(value, "dtype", "")) in HALVES
    if hasattr(value, "detach"):  # a tensor; torch need not be there for anything else
        value = value.detach().cpu()
        array = (value.float() if half else value).numpy()
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):  # such as lists of different lengths
            return None
        array = array.astype(np.float32) if half else array
    return None if array.dtype.kind in "OSU" else array
