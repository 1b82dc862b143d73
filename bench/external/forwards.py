"""Wrapping of a module's `forward`, which also sees loops that call it without the module's hooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

from torch import nn

Around = Callable[[Callable[..., Any], Any, Any], Any]
"""Function (forward, args, kwargs) → the output."""


def around_forward(module: nn.Module, around: Around) -> Callable[[], None]:
    """Let `around` run each forward pass of a module, and return a function that ends this.

    The wrapper is a method of the module, so that a copy of the module runs its own `forward`, unobserved. Others may
    wrap it again; it then stays in their chain and does nothing after the end.
    """
    before, original = module.__dict__.get("forward"), module.forward
    function = getattr(original, "__func__", None)
    observed = True

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if self is module and observed:
            return around(original, args, kwargs)
        own = self is module or function is None
        return (original if own else MethodType(function, self))(*args, **kwargs)  # type: ignore[arg-type]

    # Without `__wrapped__`, by which accelerate would unwrap it. Trainers read the signature.
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signature = inspect.signature(original)
    forward.__signature__ = signature.replace(parameters=[me, *signature.parameters.values()])  # type: ignore[attr-defined]
    wrapper = MethodType(forward, module)
    module.forward = wrapper

    def end() -> None:
        nonlocal observed
        observed = False
        if module.__dict__.get("forward") is not wrapper:
            return
        del module.forward
        if before is not None:
            module.forward = before

    return end
