"""Interface of an architecture family, by which models can be cut after any block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from leakboard.bench.backbones.ragged import Ragged

if TYPE_CHECKING:  # it loads transformers, which takes seconds
    from leakboard.bench.backbones.prefix import Prefix


class Family(ABC):
    """One architecture family: an entrance, a stack of blocks, and an exit.

    Shapes: word embeddings `h` and hidden states [B, L, d]; `mask` [B, L], True where there is a
    token; `types` [B, L], the segment of each token. Padding stands on the right only, and what it
    holds does not reach the real positions.
    """

    model_types: ClassVar[tuple[str, ...]]
    """What transformers calls the architectures of this family, in `config.json`."""
    lora_targets: ClassVar[tuple[str, ...]]
    """Names of the linear layers in a block that LoRA adapts: those of queries and values, as in
    the LoRA paper (Hu et al. 2022) and SAP."""
    transposed: ClassVar[bool] = False
    """Whether these layers keep their weights as [in, out]."""
    loader: ClassVar[str] = "AutoModel"
    """The class of transformers that reads the model."""

    narrow_embeddings: ClassVar[bool] = False
    """True if word embeddings may have fewer dimensions than hidden states; `enter` widens them."""

    def prepare(self, model: Any) -> None:
        """Change a model that was just read so that it can be cut."""
        return

    @abstractmethod
    def embeddings(self, model: Any) -> nn.Embedding:
        """The word embeddings E, V×d."""

    @abstractmethod
    def stack(self, model: Any) -> nn.ModuleList:
        """The blocks, from the first to the last."""

    @abstractmethod
    def enter(self, model: Any, h: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """What the first block receives: word embeddings with positions, types and norms."""

    @abstractmethod
    def through(
        self,
        model: Any,
        x: Tensor,
        mask: Tensor,
        first: int,
        last: int,
        prefix: Prefix | None = None,
    ) -> Tensor:
        """Hidden states after block `last`, from those after block `first`.

        Args:
            prefix: stands in front of what each block attends to, where the family has `heads`.
        """

    def heads(self, model: Any) -> tuple[int, int] | None:
        """How many heads attend in each block and how wide they are; None where no prefix is taken."""
        return None

    def positions(self, model: Any) -> int | None:
        """The most tokens that an example may have; None where nothing bounds them."""
        return getattr(model.config, "max_position_embeddings", None)

    def leave(self, model: Any, x: Tensor) -> Tensor:
        """Last hidden states from those after the last block: a final norm, where there is one."""
        return x

    def blocks(self, model: Any) -> int:
        """How many blocks there are."""
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
        prefix: Prefix | None = None,
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
        return vectors.with_values(out[mask])

    def pooled(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> Tensor:
        """[B, d] the mean of the last hidden states over real tokens, as sentence encoders are trained.

        Args:
            vectors: representations at the cut, [T, d] for B examples.
            types: [T] segment of each token.
        """
        out, mask = self._last(model, vectors, types, cut)
        weight = mask[:, :, None].to(out.dtype)
        return (out * weight).sum(1) / weight.sum(1)

    def hidden(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> Tensor:
        """[T, d] the last hidden states of all tokens; arguments as in `pooled`."""
        out, mask = self._last(model, vectors, types, cut)
        return out[mask]

    def _last(self, model: Any, vectors: Ragged, types: Tensor, cut: int) -> tuple[Tensor, Tensor]:
        """[B, L, d] last hidden states, and where there is a token."""
        mask = vectors.mask()
        padded_types = vectors.with_values(types.to(mask.device)).padded()
        return self.top(model, vectors.padded(), mask, padded_types, cut), mask
