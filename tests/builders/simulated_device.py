"""A device of its own on a machine that has none: mixing its tensors with those of the CPU is an error.

torch leaves one backend (PrivateUse1) to others. Here every operation of that backend is computed on the CPU, by the
kernels that a CPU would take, so results are those of a CPU to the bit. What a GPU refuses is refused as well, and what
would make a program wait for a GPU is counted.

It has no memory limit, no streams, no errors that arrive late, and no speed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from paths import ROOT
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "simulated"
"""What torch calls the device."""
WAITING = {
    "aten::_local_scalar_dense": "item",
    "aten::nonzero": "mask",
    "aten::masked_select": "mask",
    "aten::equal": "item",
    "aten::_unique2": "mask",
    "aten::unique_dim": "mask",
    "aten::unique_consecutive": "mask",
    "aten::bincount": "mask",
    "aten::repeat_interleave": "mask",
}
"""Operations whose result a program needs before it can go on: a number, or a shape that depends on values."""
COPIES = {"aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize"}
INDEXED = {
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
}
"""Their second argument may be on the CPU."""
FOLDERS = ("bench/", "defenses/", "attacks/", "leaderboards/")
waits: Counter[tuple[str, str]] = Counter()
"""How often each line of Leakboard waited for the device: by (kind, file:line)."""


class MixedDevices(RuntimeError):
    """An operation was given tensors of two devices."""


class Simulated(Tensor):
    """A tensor of the device; its values are in `raw`, on the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> Simulated:
        if raw.dtype == torch.float64:
            raise TypeError(
                f"{NAME} has no float64, as Apple's GPUs have none: copy to the CPU first"
            )
        made = Tensor._make_wrapper_subclass(
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=f"{NAME}:0",
        )
        made.raw = raw
        return made

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(op, *args, **kwargs or {})

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, other: Tensor) -> None:
        if not isinstance(other, Simulated):
            raise MixedDevices(f"set_data: a tensor of {NAME} was given values of the CPU")
        Tensor.data.__set__(self, other)
        self.raw = other.raw

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            copied = self.detach().clone(memory_format=torch.preserve_format)
            copied.requires_grad_(self.requires_grad)
            copied.__dict__ |= {k: v for k, v in self.__dict__.items() if k != "raw"}
            memo[id(self)] = copied
        return memo[id(self)]

    def __getitem__(self, at: Any) -> Tensor:
        return super().__getitem__(_without_lists(at))

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(_without_lists(at), value)

    def data_ptr(self) -> int:
        return self.raw.data_ptr()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"a tensor of {NAME} has no numpy(): copy it to the CPU first")

    def __repr__(self, **_: Any) -> str:
        return f"{self.raw!r} on {NAME}"

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form else repr(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a tensor of {NAME} is not pickled: copy it to the CPU first")


def _without_lists(at: Any) -> tuple[Any, ...]:
    """An index in which tensors stand for lists, of which torch makes some in a way that passes Python backends by."""
    parts = at if isinstance(at, tuple) else (at,)
    return tuple(torch.tensor(one) if isinstance(one, list) else one for one in parts)


@torch.inference_mode(False)
def compute(op: Any, *args: Any, **kwargs: Any) -> Any:
    """An operation of which an argument, or the result, is on the device."""
    name = op._schema.name
    given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    here = any(isinstance(t, Simulated) for t in given)
    to_cpu = name == "aten::_to_copy" and here and _kind(kwargs.get("device")) == "cpu"
    if name not in COPIES:
        _refuse_mixture(name, args, given)
    if (here or _kind(kwargs.get("device")) == NAME) and kwargs.get("generator") is not None:
        raise MixedDevices(f"{name}: a generator of the CPU draws on {NAME}")
    _count(name, args, to_cpu)
    if name in ("aten::copy_", "aten::_copy_from"):
        if name == "aten::_copy_from":
            args = (args[1], args[0])
        if isinstance(args[1], Simulated) and not isinstance(args[0], Simulated):
            _note("cpu")
        _raw(args[0]).copy_(_raw(args[1]))
        return args[0]
    wrapped = here and not to_cpu
    if (target := kwargs.get("device")) is not None:
        wrapped = _kind(target) == NAME
        kwargs = kwargs | {"device": torch.device("cpu")}
    if name == "aten::_to_copy" and wrapped and not here and args[0].is_contiguous():
        return Simulated(_aligned_copy(args[0].to(kwargs.get("dtype") or args[0].dtype)))
    kernel = AS_A_CPU.get(name, op)
    out = kernel(*tree_map(_raw, args), **tree_map(_raw, kwargs))
    if op._schema.is_mutable:
        for t in given:
            if (
                isinstance(t, Simulated) and t.shape != t.raw.shape
            ):  # an output that was made to fit
                Tensor.data.__set__(t, Simulated(t.raw))
        same = {id(_raw(t)): t for t in given}
        return tree_map(lambda t: same.get(id(t), t), out)
    return tree_map(_wrap, out) if wrapped else out


def _wrap(value: Any) -> Any:
    return Simulated(value) if isinstance(value, Tensor) else value


def _raw(value: Any) -> Any:
    return value.raw if isinstance(value, Simulated) else value


def _aligned_copy(x: Tensor) -> Tensor:
    """A copy as far from a cache line as `x` is, on which depends how a CPU rounds sums of products."""
    size = x.element_size()
    room = torch.empty(x.numel() + 64 // size, dtype=x.dtype)
    skip = (x.data_ptr() - room.data_ptr()) % 64 // size
    return room[skip : skip + x.numel()].view(x.shape).copy_(x)


def _kind(device: Any) -> str:
    return "" if device is None else torch.device(device).type


def _refuse_mixture(name: str, args: Any, given: list[Tensor]) -> None:
    if name in INDEXED:  # indices may lie on the CPU, but not the other way round
        indices = [t for t in args[1] if t is not None]
        given = [args[0], *(t for t in args[2:3] if isinstance(t, Tensor))]
        if not isinstance(args[0], Simulated):
            given += [t for t in indices if isinstance(t, Simulated)]
    device = [tuple(t.shape) for t in given if isinstance(t, Simulated)]
    cpu = [tuple(t.shape) for t in given if not isinstance(t, Simulated) and t.dim()]
    if device and cpu:
        raise MixedDevices(f"{name}: {cpu} of the CPU with {device} of {NAME}")


def _count(name: str, args: Any, to_cpu: bool) -> None:
    if to_cpu:
        _note("cpu")
    elif name in INDEXED and isinstance(args[0], Simulated):
        if any(isinstance(t, Simulated) and t.dtype == torch.bool for t in args[1]):
            _note("mask")
    elif kind := WAITING.get(name):
        _note(kind)


def _note(kind: str) -> None:
    """Counts for the innermost line of Leakboard."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if path := _in_package(frame.f_code.co_filename):
            waits[kind, f"{path}:{frame.f_lineno}"] += 1
            return
        frame = frame.f_back
    waits[kind, "elsewhere"] += 1


def _in_package(file: str) -> str | None:
    """Where a file of the package lies in the checkout, in which an environment with torch may lie as well."""
    if not Path(file).is_relative_to(ROOT):
        return None
    # The package `leakboard` links to its folders.
    path = Path(file).relative_to(ROOT).as_posix().removeprefix("leakboard/")
    return path if path.startswith(FOLDERS) else None


@contextmanager
def as_on_a_cpu() -> Iterator[None]:
    """Computes attention by the one kernel that every device has; weights that are shared stay so when they are moved,
    as on a GPU."""
    with sdpa_kernel(SDPBackend.MATH), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Module, "_apply", _moved)
        yield


@contextmanager
def numbers_arrive() -> Iterator[None]:
    """Lets `torch.tensor` make tensors of the device, which it does in a way that passes Python backends by.

    Not while a model is loaded: transformers then no longer fills its buffers.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "tensor", _tensor)
        yield


def _moved(module: Any, *how: Any, apply: Any = torch.nn.Module._apply, **more: Any) -> Any:
    places = [(each._parameters, name) for each in module.modules() for name in each._parameters]
    before = [parameters[name] for parameters, name in places]
    apply(module, *how, **more)
    now: dict[int, Any] = {}
    for (parameters, name), old in zip(places, before, strict=True):
        parameters[name] = now.setdefault(id(old), parameters[name])
    return module


def _tensor(data: Any, *, device: Any = None, tensor: Any = torch.tensor, **kwargs: Any) -> Tensor:
    """Numbers go to the device in two steps: torch's own way passes its Python backends by."""
    if _kind(device) != NAME:
        return tensor(data, device=device, **kwargs)
    return tensor(data, **kwargs).to(device)


def _dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """As a CPU computes dropout: the mask is scaled before it is applied."""
    if not train or p == 0:
        return x.clone(), torch.ones_like(x)
    mask = torch.empty_like(x).bernoulli_(1 - p).div_(1 - p)
    return x * mask, mask


AS_A_CPU: dict[str, Callable[..., Any]] = {
    "aten::native_dropout": _dropout,
    "aten::native_dropout_backward": lambda gradient, mask, scale: gradient * mask,
}
"""Operations that torch computes by other kernels on a device than on a CPU."""


def _register() -> list[torch.library.Library]:
    _setup_privateuseone_for_python_backend(NAME)
    torch.get_device_module(NAME).get_amp_supported_dtype = lambda *_: [torch.bfloat16]
    library = torch.library.Library("_", "IMPL")
    library.fallback(lambda op, *args, **kwargs: compute(op, *args, **kwargs), "PrivateUse1")
    library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    kernels = torch.library.Library("aten", "IMPL")
    # On a backend without a kernel of its own, torch computes it from others, and rounds otherwise.
    kernels.impl(
        "silu_backward",
        lambda *given: compute(torch.ops.aten.silu_backward.default, *given),
        "PrivateUse1",
    )
    return [library, kernels]


# torch knows one accelerator: beside this one, no backward pass on a GPU would run.
_registered = [] if torch.cuda.is_available() else _register()
