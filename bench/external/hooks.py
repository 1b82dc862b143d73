"""Hooks that observe the forward passes of a model at a cut, without changing them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.external.cut_point import CutPoint
from leakboard.bench.external.forwards import around_forward
from leakboard.bench.external.passes import Pass
from leakboard.bench.external.rows import IDS, MASK
from leakboard.bench.external.token_layout import TokenLayout
from leakboard.bench.external.visibility import check_pass

EMBEDS = "inputs_embeds"


class CutHooks:
    """Hooks on a model. Hooks at the cut are registered again in each pass, so that they run after all others.

    A pass begins before the first hook of the model, or in `forward` itself if a loop calls that directly. The
    arguments are those that arrive at `forward` of the entrance.

    Args:
        on_end: called at the end of each pass.

    Attributes:
        passes: number of passes that began.
    """

    def __init__(self, place: CutPoint, on_end: Callable[[Pass], None]) -> None:
        self._place, self._on_end = place, on_end
        self._undo: list[Callable[[], None]] = []
        self._in_pass: list[RemovableHandle] = []
        self._now: Pass | None = None
        self._looked_up: Tensor | None = None
        self._running = self._called = self._hidden = False
        self.passes = 0

    def start(self) -> None:
        place, entrance = self._place, self._place.entrance
        handles = [place.model.register_forward_pre_hook(self._call)]
        handles += [table.register_forward_pre_hook(self._look_up) for table in place.words()]
        if place.name:
            module = place.model.get_submodule(place.name)
            handles.append(module.register_forward_pre_hook(self._recompute))
        self._undo = [handle.remove for handle in handles]
        if entrance is not place.model:
            self._undo.append(around_forward(entrance, self._enter))
        self._undo.append(around_forward(place.model, self._run))

    def stop(self) -> None:
        """Remove all hooks."""
        self._close()
        for undo in self._undo:
            undo()
        self._undo, self._looked_up = [], None

    def _call(self, module: nn.Module, args: Any) -> None:
        """Begin a pass of a model that is called, so that its last hook can end it."""
        check_pass(module, torch.compiler.is_compiling())
        if not self._running and not _in_backward():
            self._begin()
            self._in_pass.append(module.register_forward_hook(lambda m, a, out: self._end(out)))
            self._called = True

    def _run(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run `forward` of the model, and record it."""
        model, called = self._place.model, self._called
        check_pass(model, torch.compiler.is_compiling())
        self._called = False
        if self._running or (not called and _in_backward()):  # it computes a pass again
            self._recompute()
            return call(*args, **kwargs)
        if not called:
            self._begin()
        self._running = True
        try:
            own = self._place.entrance is model
            output = self._enter(call, args, kwargs) if own else call(*args, **kwargs)
        except BaseException:
            self._close()
            raise
        finally:
            self._running = False
        if not called:
            self._end(output)
        return output

    def _begin(self) -> None:
        self._close()  # hooks of a pass that raised
        model = self._place.model
        self._now = Pass(model.training, torch.is_grad_enabled())
        self._in_pass = self._place.follow(self._take)
        self.passes += 1

    def _close(self) -> None:
        for handle in self._in_pass:
            handle.remove()
        self._in_pass, self._now = [], None

    def _look_up(self, module: nn.Module, args: Any) -> None:
        self._looked_up = args[0] if args else None

    def _take(self, output: Any) -> None:
        early = self._place.cut == 0 and not (self._now and self._now.entered)
        if self._now is not None and not early:  # else words are looked up for the entrance
            self._hidden = self._now.training and not torch.is_grad_enabled()
            self._now.take(output)

    def _recompute(self, *_: Any) -> None:
        """Refuse a part whose graph exists only in the backward pass."""
        if self._hidden and torch.is_grad_enabled() and _in_backward():
            raise LeakboardError(
                "cut: reentrant checkpointing computes it again in the backward pass, so that its gradients cannot "
                "be seen. Give use_reentrant=False to checkpoint(), or to gradient_checkpointing_enable()"
            )

    def _enter(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run `forward` of the entrance, and note the ids that arrive there."""
        now, module = self._now, self._place.entrance
        if now is None:
            if not self.passes and module.training and torch.is_grad_enabled():
                raise LeakboardError(
                    f"model: the loop calls {type(module).__name__}, a part of {type(self._place.model).__name__}; "
                    "give the Recorder the module that the loop calls"
                )
            return call(*args, **kwargs)
        if now.entered:
            name = type(module).__name__
            raise LeakboardError(
                f"model: one pass runs {name} twice; give the {name} alone to the Recorder"
            )
        now.entered = True
        self._note(now, _arguments(call, args, kwargs))
        output = call(*args, **kwargs)
        if self._place.causal and self._now is now:
            now.take_last(output)
        return output

    def _note(self, now: Pass, given: dict[str, Any]) -> None:
        """Note ids, the layout of their tokens, and vectors that are given instead."""
        inputs, vectors, virtual = given.get(IDS), given.get(EMBEDS), 0
        if inputs is None and vectors is not None:
            # Callers that pass vectors have just looked up the ids. Virtual tokens stand in front.
            looked = self._looked_up
            if looked is not None and looked.dim() == 2 and len(looked) == len(vectors):
                virtual = vectors.shape[1] - looked.shape[1]
                inputs = looked if virtual >= 0 else None
                if virtual > 0:
                    self._expect_in_front(vectors, looked)
            virtual = 0 if inputs is None else virtual
        elif inputs is None:
            inputs = next((v for v in given.values() if isinstance(v, Tensor)), None)
        self._looked_up = None
        now.inputs = None if inputs is None else inputs.detach().clone()
        device = "cpu" if now.inputs is None else now.inputs.device.type
        if torch.is_autocast_enabled(device):
            now.precision = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        shape = next((x.shape for x in (inputs, vectors) if x is not None and x.dim() > 1), None)
        tokens = given.get(MASK) is not None or IDS in given or vectors is not None
        if tokens and shape is not None:
            now.layout = TokenLayout.of(shape[0], shape[1], given, virtual)
        if vectors is not None and self._place.cut == 0:
            self._take(vectors)

    def _expect_in_front(self, vectors: Tensor, ids: Tensor) -> None:
        """Refuse virtual tokens behind a text, which stands where its words are nearest."""
        table: Any = self._place.words()[0].weight
        length = ids.shape[1]
        words = table[ids].detach().to(vectors)
        front, back = vectors.detach()[:, -length:], vectors.detach()[:, :length]
        if (front - words).square().sum() > (back - words).square().sum():
            raise LeakboardError(
                "model: there are vectors after those of the text, so its tokens are not known. Put virtual tokens "
                "in front of the text, as prompt tuning of peft does, or train without them while you record"
            )

    def _end(self, output: Any) -> None:
        now = self._now
        self._close()
        if now is not None:
            try:
                now.finish(self._place.with_names(output))
                self._on_end(now)
            finally:
                now.forget()


def _in_backward() -> bool:
    """Whether a pass backward is running, in which checkpointing computes forward passes again."""
    return bool(torch._C._current_graph_task_id() != -1)


def _arguments(call: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a call by name, where the function names them."""
    named = list(inspect.signature(call).parameters)
    names = [named[i] if i < len(named) else f"[{i}]" for i in range(len(args))]
    given = dict(zip(names, args, strict=True)) | dict(kwargs)
    batches = [value for value in given.values() if isinstance(value, Mapping)]
    return {name: value for batch in batches for name, value in batch.items()} | given
