"""One forward pass of a recorded model: its examples, the vectors at the cut, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from torch import Tensor
from torch.autograd.graph import Node

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import Channel, Ints, LeakboardError, form
from leakboard.bench.external.token_layout import TokenLayout

Edge: TypeAlias = "tuple[Node, int]"
"""A node of the autograd graph, and the index of one of its gradients."""
VECTORS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
"""Names of vectors in the outputs of sentence-transformers and transformers."""
CAST = "ToCopyBackward0"
"""Autograd node of a cast: in mixed precision, logits are returned as float32, but the loss uses them before."""


@dataclass
class Destination:
    """Split, step, rows and rounds under which the messages of a pass are recorded.

    Attributes:
        step: number of the training pass; −1 in evaluation.
        rows, rounds: [B] of its examples.
        came: channels on which a gradient was recorded already.
    """

    split: str
    step: int
    rows: Ints
    rounds: Ints
    came: set[Channel] = field(default_factory=set)


@dataclass(eq=False)
class Pass:
    """State of one forward pass while it is recorded.

    Attributes:
        training: whether the model was in training mode.
        graph: whether gradients were enabled.
        inputs: [B, …] inputs that identify the examples; None if the model got vectors.
        layout: positions of the tokens in a batch; None if the inputs are no tokens.
        sent: vectors at the cut, per token or per example; None if the pass did not reach the cut.
        last: of a causal language model, the vectors below its output layer.
        logits: [B, C], or None.
        per_token: number of logits of each token; 0 if there are none.
        precision: number format of autocast, or an empty string.
        where: destination of its messages; None before it is known.
    """

    training: bool
    graph: bool
    inputs: Tensor | None = None
    layout: TokenLayout | None = None
    sent: Ragged | Tensor | None = None
    last: Ragged | None = None
    logits: Tensor | None = None
    per_token: int = 0
    precision: str = ""
    where: Destination | None = None
    entered: bool = False
    at_cut: Tensor | None = field(default=None, repr=False)
    edges: dict[str, list[Edge]] = field(default_factory=dict, repr=False)

    def take(self, output: Any) -> None:
        """Copy the vectors at the cut; only the first ones of a pass.

        Raises:
            LeakboardError: there are none.
        """
        if self.sent is not None:
            return
        vectors = _vectors(output)
        if not isinstance(vectors, Tensor) or vectors.dim() not in (2, 3):
            raise LeakboardError(f"cut: expected [B, L, d] or [B, d] there, got {form(vectors)}")
        self.at_cut, self.sent = vectors, self.without_padding(vectors.detach())
        self.edges["cut"] = _edges(vectors)  # now, since the tensor may be changed in place later

    def take_last(self, output: Any) -> None:
        """Copy the vectors [B, L, d] below the output layer."""
        vectors = _vectors(output)
        if isinstance(vectors, Tensor) and vectors.dim() == 3:
            self.last, self.edges["last"] = self.of_tokens(vectors.detach()), _edges(vectors)

    def without_padding(self, values: Tensor) -> Ragged | Tensor:
        """A copy of vectors [B, L, d] without padding, as [T, d]; or of [B, d]."""
        return values.clone() if values.dim() == 2 else self.of_tokens(values)

    def of_tokens(self, values: Tensor) -> Ragged:
        """A copy of [B, L, …] without padding and virtual tokens, as [T, …].

        Raises:
            LeakboardError: there is not one entry per token.
        """
        if self.layout is None:
            return TokenLayout.of(values.shape[0], values.shape[1], {}).take(values)
        return self.layout.take(values)

    def finish(self, output: Any) -> None:
        """Copy the logits of examples; those of tokens are counted."""
        self.edges["output"] = _edges(*_tensors(output))
        logits = _logits(output)
        if logits is None or logits is self.at_cut or not logits.dim():
            return  # a bottom model alone has no logits, and a wrapper may return the loss
        self.edges["logits"] = _edges(logits)
        if logits.dim() == 2:
            self.logits = logits.detach().clone()
        else:
            self.per_token = logits.shape[-1]

    def on_gradients(self, **calls: Callable[[Tensor], None]) -> None:
        """Call back with ∂loss/∂logits, at the cut if parameters below it train, and below the output layer."""
        for what, call in calls.items():
            self._follow(what, call)

    def on_backward(self, call: Callable[[Tensor], None]) -> None:
        """Call back as soon as the output of the pass receives a gradient."""
        self._follow("output", call)

    def forget(self) -> None:
        """Drop references to the graph, which the callbacks would keep alive."""
        self.at_cut, self.edges = None, {}

    def _follow(self, what: str, call: Callable[[Tensor], None]) -> None:
        for node, at in self.edges.get(what, []):

            def handed(gradients: tuple[Tensor | None, ...], at: int = at) -> None:
                if (gradient := gradients[at]) is not None:
                    call(gradient.detach())

            node.register_prehook(cast(Any, handed))


def _vectors(output: Any) -> Any:
    """The vectors in the output of a module: the first of a tuple, or those of a sentence encoder."""
    if isinstance(output, tuple | list):
        return output[0]
    if isinstance(output, Mapping):
        named = (output.get(name) for name in VECTORS)
        return next((v for v in named if isinstance(v, Tensor)), output)
    return output


def _logits(output: Any) -> Tensor | None:
    """The `logits` of a transformers output, or the output itself if it is a tensor."""
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
    """Graph edges at which gradients of tensors pass, after all hooks of the tensors themselves."""
    found = []
    for tensor in tensors:
        if tensor.grad_fn is None:
            continue
        node, at = tensor.grad_fn, tensor.output_nr
        before, its = node.next_functions[0] if node.name() == CAST else (None, 0)
        found.append((node, at) if before is None else (before, its))
    return found
