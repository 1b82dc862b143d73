"""The point at which a model is cut, and the modules around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from leakboard.bench.backbones import Backbone, family_of
from leakboard.bench.contracts import LeakboardError


@dataclass(frozen=True)
class CutPoint:
    """The point at which a model is cut.

    Attributes:
        model: the module that the training loop calls.
        entrance: the submodule that receives token ids and their mask.
        encoder: the transformers model in it, if its blocks are known.
        cut: number of blocks below the cut; None for a submodule that is no block.
        name: of that submodule.
        causal: whether the model predicts the next token of each one.
    """

    model: nn.Module
    entrance: nn.Module
    encoder: Backbone | None
    cut: int | None
    name: str = ""
    causal: bool = False

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
            return cls(model, entrance, encoder, cut, causal=_is_causal(inner))
        modules = dict(model.named_modules())
        if not cut or cut not in modules:
            near = get_close_matches(cut, [name for name in modules if name], n=3, cutoff=0)
            raise LeakboardError(
                f"cut: {type(model).__name__} has no submodule '{cut}'. Nearest: "
                + (", ".join(f"'{name}'" for name in near) or "it has none at all")
            )
        try:
            counted = cls(model, entrance, _encoder(model, inner), 0, causal=_is_causal(inner))
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

    def with_names(self, output: Any) -> Any:
        """The output of the model; a tuple of a transformers model with a head gets names: the loss is a scalar."""
        from transformers import PreTrainedModel

        has_head = isinstance(self.model, PreTrainedModel) or hasattr(self.model, "peft_config")
        if type(output) is not tuple or not has_head or self.model is self.entrance:
            return output
        tensors = [value for value in output if isinstance(value, Tensor)]
        logits = next((value for value in tensors if value.dim() > 1), None)
        return {"logits": logits, "others": tensors}

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
    kind, named = type(model).__name__, "name the submodule after which to cut: cut='encoder.2'"
    if inner is None:
        raise LeakboardError(f"cut: {kind} contains no transformers model; {named}")
    if getattr(inner.config, "is_encoder_decoder", False):
        raise LeakboardError(f"cut: {kind} has an encoder and a decoder; {named}")
    try:
        family = family_of(inner.config.model_type, kind)
    except LeakboardError as error:
        raise LeakboardError(f"cut: {error}; or {named}") from error
    return Backbone(kind, "", inner.base_model, None, family)


def _is_causal(inner: Any) -> bool:
    """Whether a transformers model has an output layer over the next token."""
    return inner.get_output_embeddings() is not None and bool(inner.can_generate())
