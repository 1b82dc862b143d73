"""The argument by which functions of transformers take a cache: release 5.24 renamed it."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import Any


def cache_argument(value: Any) -> dict[str, Any]:
    """A cache, or None, as the keyword argument that the installed transformers asks for."""
    return {_name(): value}


@cache
def _name() -> str:
    from transformers.masking_utils import create_causal_mask

    parameters = signature(create_causal_mask).parameters
    return "cache" if "cache" in parameters else "past_key_values"
