"""Hooks that observe the forward passes of a model at a cut, without changing them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from leakboard.bench.backbones import Backbone, family_of
from leakboard.bench.contracts import LeakboardError
from leakboard.bench.external.passes import Pass
from leakboard.bench.external.rows import IDS, MASK

EMBEDS = "inputs_embeds"


@dataclass(frozen=True)
class CutPoint:
    """The point at which a model is cut.

    Attributes:
        model: the module that the training loop calls.
        entrance: the submodule that receives token ids and their mask.
        encoder: the transformers model in it, if its blocks are known.
        cut: number of blocks below the cut; None for a submodule that is no block.
        name: of that submodule.
    """

    model: nn.Module
    entrance: nn.Module
    encoder: Backbone | None
    cut: int | None
    name: str = ""

    @classmethod
    def of(cls, model: nn.Module, cut: int | str) -> CutPoint:
        """Find the cut in a model.

        Raises:
            LeakboardError: the model cannot be cut there.
        """
        from transformers import PreTrainedModel

        inner = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
        entrance = model if inner is None else inner.base_model
        if isinstance(cut, int):
            encoder = _encoder(model, inner)
            encoder.check_cut(cut)
            return cls(model, entrance, encoder, cut)
        modules = dict(model.named_modules())
        if not cut or cut not in modules:
            near = get_close_matches(cut, [name for name in modules if name], n=3, cutoff=0)
            raise LeakboardError(
                f"cut: {type(model).__name__} has no submodule '{cut}'. Nearest: "
                + (", ".join(f"'{name}'" for name in near) or "it has none at all")
            )
        try:
            counted = cls(model, entrance, _encoder(model, inner), 0)
        except LeakboardError:
            return cls(model, entrance, None, None, cut)
        number = counted.number(modules[cut])
        return replace(counted, cut=number, name="" if number is not None else cut)

    def number(self, module: nn.Module) -> int | None:
        """The number of the cut after a module; None if it is neither the word embeddings nor a block."""
        assert self.encoder is not None
        blocks = self.encoder.family.stack(self.encoder.model)
        ends = [(table, 0) for table in self.words()]
        ends += [(block, k) for k, block in enumerate(list(blocks)[:-1], start=1)]
        return next((number for end, number in ends if end is module), None)

    def words(self) -> list[nn.Module]:
        """The word embeddings, and other modules that share their table."""
        if self.encoder is None:
            return []
        table = self.encoder.family.embeddings(self.encoder.model)
        shared = [
            m
            for m in self.encoder.model.modules()
            if isinstance(m, nn.Embedding) and m is not table and m.weight is table.weight
        ]
        return [table, *shared]

    def follow(self, take: Callable[[Any], None]) -> list[RemovableHandle]:
        """Register hooks that call `take` with the vectors at the cut, after all existing hooks."""

        def after(module: nn.Module, args: Any, output: Any) -> None:
            take(output)

        def before(module: nn.Module, args: Any, kwargs: Any) -> None:
            take(args[0] if args else next(iter(kwargs.values())))

        if self.name:
            return [self.model.get_submodule(self.name).register_forward_hook(after)]
        if not self.cut:
            return [table.register_forward_hook(after) for table in self.words()]
        assert self.encoder is not None
        block = self.encoder.family.stack(self.encoder.model)[self.cut]
        return [block.register_forward_pre_hook(before, with_kwargs=True)]


def _encoder(model: nn.Module, inner: Any) -> Backbone:
    """The transformers model in a model as a backbone without tokeniser, which is enough to find its blocks."""
    kind, named = type(model).__name__, "name the submodule behind which it is cut: cut='encoder.2'"
    if inner is None:
        raise LeakboardError(f"cut: {kind} holds no model of transformers; {named}")
    if getattr(inner.config, "is_encoder_decoder", False):
        raise LeakboardError(f"cut: {kind} has an encoder and a decoder; {named}")
    try:
        family = family_of(inner.config.model_type, kind)
    except LeakboardError as error:
        raise LeakboardError(f"cut: {error}; or {named}") from error
    return Backbone(kind, "", inner.base_model, None, family)


class CutHooks:
    """Hooks on a model. Hooks at the cut are registered again in each pass, so that they run after all others.

    Args:
        on_end: called at the end of each pass.
    """

    def __init__(self, place: CutPoint, on_end: Callable[[Pass], None]) -> None:
        self._place, self._on_end = place, on_end
        self._handles: list[RemovableHandle] = []
        self._in_pass: list[RemovableHandle] = []
        self._now: Pass | None = None
        self._looked_up: Tensor | None = None

    def start(self) -> None:
        place = self._place
        self._handles = [
            place.model.register_forward_pre_hook(self._begin),
            place.entrance.register_forward_pre_hook(self._enter, with_kwargs=True),
            *(table.register_forward_pre_hook(self._look_up) for table in place.words()),
        ]

    def stop(self) -> None:
        """Remove all hooks."""
        for handle in (*self._handles, *self._in_pass):
            handle.remove()
        self._handles, self._in_pass, self._now, self._looked_up = [], [], None, None

    def _begin(self, module: nn.Module, args: Any) -> None:
        self._close()  # hooks of a pass that raised
        self._now = Pass(module.training, torch.is_grad_enabled())
        self._in_pass = self._place.follow(self._now.take)
        self._in_pass.append(module.register_forward_hook(self._end))

    def _close(self) -> None:
        for handle in self._in_pass:
            handle.remove()
        self._in_pass, self._now = [], None

    def _look_up(self, module: nn.Module, args: Any) -> None:
        self._looked_up = args[0] if args else None

    def _enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._now is None:
            return
        if self._now.entered:
            name = type(module).__name__
            raise LeakboardError(
                f"model: one pass runs {name} twice; give the {name} alone to the Recorder"
            )
        self._now.entered = True
        given = _arguments(module, args, kwargs)
        inputs, vectors, mask = given.get(IDS), given.get(EMBEDS), given.get(MASK)
        if inputs is None and vectors is not None:
            # Callers that pass vectors have just looked up the ids.
            looked, shape = self._looked_up, vectors.shape[:2]
            inputs = looked if looked is not None and looked.shape == shape else None
        elif inputs is None:
            inputs = next((v for v in given.values() if isinstance(v, Tensor)), None)
        self._looked_up = None
        self._now.inputs = None if inputs is None else inputs.detach().clone()
        self._now.mask = None if mask is None else mask.detach() > 0
        if vectors is not None and self._place.cut == 0:
            self._now.take(vectors)

    def _end(self, module: nn.Module, args: Any, output: Any) -> None:
        now = self._now
        self._close()
        if now is not None:
            try:
                now.finish(output)
                self._on_end(now)
            finally:
                now.forget()


def _arguments(module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a call by name, where the module names them."""
    named = list(inspect.signature(module.forward).parameters)
    names = [named[i] if i < len(named) else f"[{i}]" for i in range(len(args))]
    given = dict(zip(names, args, strict=True)) | dict(kwargs)
    batches = [value for value in given.values() if isinstance(value, Mapping)]
    return {name: value for batch in batches for name, value in batch.items()} | given
