"""Interface of an architecture family, by which models can be cut after any block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, cast

from torch import Tensor, nn

from leakboard.bench.backbones.ragged import Ragged

if TYPE_CHECKING:  # it loads transformers, which takes seconds
    from leakboard.bench.backbones.prefix import MaybePrefix


class Family(ABC):
    """One architecture family: an entrance, a stack of blocks, and an exit.

    Shapes: word embeddings `h` and hidden states [B, L, d]; `mask` [B, L], True for tokens; `types` [B, L], the segment
    of each token. Padding is on the right only and does not affect real positions.
    """

    model_types: ClassVar[tuple[str, ...]]
    """Names of the architectures in `config.json`."""
    embeddings_path: ClassVar[str]
    """Attribute of the model with the word embeddings."""
    stack_path: ClassVar[str]
    """Attribute of the model with the blocks."""
    norm_path: ClassVar[str] = ""
    """Attribute of the model with the final norm; empty if there is none."""
    lora_targets: ClassVar[tuple[str, ...]]
    """Names of the linear layers that LoRA adapts: queries and values, as in the LoRA paper (Hu et al. 2022) and SAP."""
    transposed: ClassVar[bool] = False
    """Whether these layers store their weights as [in, out]."""
    loader: ClassVar[str] = "AutoModel"
    """Class of transformers that loads the model."""

    narrow_embeddings: ClassVar[bool] = False
    """True if word embeddings may have fewer dimensions than hidden states; `enter` widens them."""

    def prepare(self, model: Any) -> None:
        """Change a model that was just read so that it can be cut."""
        return

    def embeddings(self, model: Any) -> nn.Embedding:
        """Word embeddings E, V×d."""
        return cast(nn.Embedding, attrgetter(self.embeddings_path)(model))

    def stack(self, model: Any) -> nn.ModuleList:
        """All blocks, in order."""
        return cast(nn.ModuleList, attrgetter(self.stack_path)(model))

    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Input of the first block: word embeddings with positions, types and norms, if the family has these."""
        return h

    @abstractmethod
    def through(
        self, model: Any, x: Tensor, mask: Tensor, first: int, last: int, prefix: MaybePrefix = None
    ) -> Tensor:
        """Hidden states after block `last`, from those after block `first`.

        Args:
            prefix: additional keys and values, if the family has `heads`.
        """

    def heads(self, model: Any) -> tuple[int, int] | None:
        """Number and width of the attention heads in each block; None if a prefix is not supported."""
        return None

    def positions(self, model: Any) -> int | None:
        """Largest number of tokens of an example; None if unlimited."""
        return getattr(model.config, "max_position_embeddings", None)

    def leave(self, model: Any, x: Tensor) -> Tensor:
        """Last hidden states from those after the last block: a final norm, if there is one."""
        norm = attrgetter(self.norm_path)(model) if self.norm_path else None
        return x if norm is None else norm(x)

    def blocks(self, model: Any) -> int:
        """Number of blocks."""
        return len(self.stack(model))

    def bottom(self, model: Any, h: Tensor, mask: Tensor, types: Tensor, cut: int) -> Tensor:
        """Word embeddings → representation at the cut; differentiable in `h`.

        At cut 0 this is `h` itself, at cut k the hidden states after block k.
        """
        if cut == 0:
            return h
        return self.through(model, self.enter(model, h, mask, types), mask, 0, cut)

    def top(
        self,
        model: Any,
        h: Tensor,
        mask: Tensor,
        types: Tensor,
        cut: int,
        prefix: MaybePrefix = None,
    ) -> Tensor:
        """Representation at the cut → last hidden states.

        At cut 0 positions and types are added here: both are known without the text.
        """
        x = h if cut else self.enter(model, h, mask, types)
        return self.leave(model, self.through(model, x, mask, cut, self.blocks(model), prefix))

    def bottom_of(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> Ragged:
        """`bottom` for sequences of different lengths: word embeddings [T, d], types [T]."""
        if cut == 0:
            return vectors
        mask = vectors.mask()
        padded_types = vectors.with_values(types.to(mask.device)).padded()
        out = self.bottom(model, vectors.padded(), mask, padded_types, cut)
        return vectors.with_values(vectors.unpadded(out))

    def pooled(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> Tensor:
        """[B, d] mean of the last hidden states over real tokens, as sentence encoders are trained.

        Args:
            vectors: representations at the cut, [T, d] for B examples.
            types: [T] segment of each token.
        """
        out, mask = self._last(model, vectors, types, cut)
        weight = mask[:, :, None].to(out.dtype)
        return (out * weight).sum(1) / weight.sum(1)

    def hidden(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> Tensor:
        """[T, d] last hidden states of all tokens; arguments as in `pooled`."""
        return vectors.unpadded(self._last(model, vectors, types, cut)[0])

    def _last(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> tuple[Tensor, Tensor]:
        """[B, L, d] last hidden states, and [B, L] True for tokens."""
        mask = vectors.mask()
        padded_types = vectors.with_values(types.to(mask.device)).padded()
        return self.top(model, vectors.padded(), mask, padded_types, cut), mask
