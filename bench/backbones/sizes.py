"""How large a model a configuration describes, found out without building it."""

from __future__ import annotations

from typing import Any

import torch

SPARE = 2**24
"""Numbers that a model may hold beyond those of its files: an output layer, tables of positions."""


def too_large(config: Any, loader: Any, numbers: int) -> int | None:
    """How many numbers a model asks for, where those are far more than its files hold; else None.

    Args:
        loader: the class of transformers that builds it.
        numbers: in the files.
    """
    with torch.device("meta"):  # shapes alone, without memory
        # An automatic class builds by another name than the model's own.
        empty = getattr(loader, "from_config", loader)(config)
    asked = sum(each.numel() for each in [*empty.parameters(), *empty.buffers()])
    return asked if asked > 2 * numbers + SPARE else None
