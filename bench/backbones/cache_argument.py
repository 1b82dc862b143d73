"""Name of the cache argument of transformers, which release 5.24 changed."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import Any


def cache_argument(value: Any) -> dict[str, Any]:
    """A cache, or None, as the keyword argument of the installed transformers."""
    return {_name(): value}


@cache
def _name() -> str:
    from transformers.masking_utils import create_causal_mask

    parameters = signature(create_causal_mask).parameters
    return "cache" if "cache" in parameters else "past_key_values"
