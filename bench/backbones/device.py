"""The device on which a model computes."""

from __future__ import annotations

import torch

from bench.contracts import LeakboardError


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
