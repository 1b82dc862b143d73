"""One pass of a model forward: what it was about, what flowed at the cut, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor
from torch.autograd.graph import Node

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import Channel, Ints, LeakboardError, form

Edge: TypeAlias = "tuple[Node, int]"
"""A node of the graph, and which of the gradients that come to it."""
CAST = "ToCopyBackward0"
"""Mixed precision hands out logits as float32, but computes the loss from what they were before."""


@dataclass
class Destination:
    """Where on a wire the messages of a pass go.

    Attributes:
        step: number of the pass in training; −1 outside of it.
        rows, rounds: [B] of its examples.
        came: channels on which a gradient has come already.
    """

    split: str
    step: int
    rows: Ints
    rounds: Ints
    came: set[Channel] = field(default_factory=set)


@dataclass(eq=False)
class Pass:
    """One pass of a model forward, as far as it has come.

    Attributes:
        training: whether the model was in training mode.
        graph: whether gradients were on.
        inputs: [B, …] what tells its examples apart; None where the model was given vectors.
        mask: [B, L] True where there is a token; None where all are.
        sent: what flowed at the cut: a vector per token, or per example. None: it never came there.
        logits: [B, C], or None.
        per_token: whether there were logits of other shapes.
        where: its messages go; None before they do.
    """

    training: bool
    graph: bool
    inputs: Tensor | None = None
    mask: Tensor | None = None
    sent: Ragged | Tensor | None = None
    logits: Tensor | None = None
    per_token: bool = False
    where: Destination | None = None
    entered: bool = False
    at_cut: Tensor | None = field(default=None, repr=False)
    edges: dict[str, list[Edge]] = field(default_factory=dict, repr=False)

    def take(self, output: Any) -> None:
        """Keeps a copy of what flows at the cut; only the first time in a pass."""
        if self.sent is not None:
            return
        vectors = output[0] if isinstance(output, tuple | list) else output
        if not isinstance(vectors, Tensor) or vectors.dim() not in (2, 3):
            raise LeakboardError(f"cut: expected [B, L, d] or [B, d] there, got {form(vectors)}")
        self.at_cut, self.sent = vectors, self.without_padding(vectors.detach())
        self.edges["cut"] = _edges(vectors)  # now, since it may be changed in place later

    def without_padding(self, values: Tensor) -> Ragged | Tensor:
        """A copy of vectors: [T, d] without padding from [B, L, d]; or [B, d]."""
        return values.clone() if values.dim() == 2 else self.of_tokens(values)

    def of_tokens(self, values: Tensor) -> Ragged:
        """A copy without padding: [T, …] from [B, L, …].

        Raises:
            LeakboardError: the mask is of another shape.
        """
        mask = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
        if self.mask is not None:
            if self.mask.shape != mask.shape:
                raise LeakboardError(
                    f"attention_mask: has the shape {list(self.mask.shape)}, and at the cut there are "
                    f"{list(mask.shape)} vectors; expected one for each token"
                )
            mask = self.mask.to(values.device)
        return Ragged(values[mask], mask.sum(1).cpu())

    def finish(self, output: Any) -> None:
        """Keeps a copy of the logits."""
        self.edges["output"] = _edges(*_tensors(output))
        logits = _logits(output)
        if logits is None or logits is self.at_cut:  # a bottom alone gives no logits
            return
        self.per_token = logits.dim() != 2
        if not self.per_token:
            self.logits, self.edges["logits"] = logits.detach().clone(), _edges(logits)

    def on_gradients(
        self,
        of_logits: Callable[[Tensor], None],
        at_cut: Callable[[Tensor], None],
    ) -> None:
        """Calls back with ∂loss/∂logits, and with the gradient at the cut if something below trains."""
        self._follow("logits", of_logits)
        self._follow("cut", at_cut)

    def on_backward(self, call: Callable[[Tensor], None]) -> None:
        """Calls back as soon as a gradient comes to what the pass gave."""
        self._follow("output", call)

    def forget(self) -> None:
        """Lets go of the graph, which would not end otherwise: it holds what calls back."""
        self.at_cut, self.edges = None, {}

    def _follow(self, what: str, call: Callable[[Tensor], None]) -> None:
        for node, at in self.edges.get(what, []):

            def handed(gradients: tuple[Tensor | None, ...], at: int = at) -> None:
                if (gradient := gradients[at]) is not None:
                    call(gradient.detach())

            node.register_prehook(cast(Any, handed))


def _logits(output: Any) -> Tensor | None:
    """Of transformers' outputs what is called so; of other models a tensor [B, C]."""
    if isinstance(output, Mapping):
        output = output.get("logits")
    elif not isinstance(output, Tensor):
        output = getattr(output, "logits", None)
    return output if isinstance(output, Tensor) else None


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping | tuple | list):
        for value in output.values() if isinstance(output, Mapping) else output:
            yield from _tensors(value)


def _edges(*tensors: Tensor) -> list[Edge]:
    """Where in the graph the gradients of tensors come by, behind all hooks of the tensors themselves."""
    found = []
    for tensor in tensors:
        if tensor.grad_fn is None:
            continue
        node, at = tensor.grad_fn, tensor.output_nr
        before, its = node.next_functions[0] if node.name() == CAST else (None, 0)
        found.append((node, at) if before is None else (before, its))
    return found
