"""Conversion of ids, rows, labels and numbers to NumPy arrays, with checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts.errors import LeakboardError

Ints = NDArray[np.int64]
HALF_TYPES = ("torch.bfloat16", "torch.float16", "float16")
"""Half-precision types, which become float32; NumPy has no bfloat16."""


def as_ints(
    value: Any, name: str, *, dims: int = 1, length: int | None = None, least: int | None = None
) -> Ints:
    """Converts a list, an array of any integer type, or a torch tensor on any device to int64.

    An int64 array is returned without a copy.

    Args:
        name: of the argument, for error messages.
        dims: required number of dimensions.
        length: required length of the first dimension, if any.
        least: smallest allowed number, if any.

    Raises:
        LeakboardError: floats or booleans, wrong dimensions or length, or a number that is too small.
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
    """Converts numbers to an array: integers to int64, half precision to float32; input as for `as_ints`.

    Raises:
        LeakboardError: text, objects, or lists of different lengths.
    """
    array = _plain(value)
    if array is None or array.dtype.kind not in "iufb":
        raise LeakboardError(f"{name} must be numbers, got {form(value)}")
    return array.astype(np.int64, copy=False) if array.dtype.kind in "iu" else array


def form(value: Any) -> str:
    """Type and shape of a value, for error messages."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {list(value.shape)}"
    array = _plain(value)
    if array is None or isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return f"{type(value).__name__} {value!r:.40}"
    return f"{type(value).__name__} of {array.dtype} {list(array.shape)}"


def _plain(value: Any) -> NDArray[Any] | None:
    """The value as a NumPy array; None if it contains text or objects."""
    half = str(getattr(value, "dtype", "")) in HALF_TYPES
    if hasattr(value, "detach"):  # a tensor; torch is not imported for other values
        value = value.detach().cpu()
        array = (value.float() if half else value).numpy()
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):  # such as lists of different lengths
            return None
        array = array.astype(np.float32) if half else array
    return None if array.dtype.kind in "OSU" else array
