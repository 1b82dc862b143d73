"""Checks that a base model is the one from which the training of an audited model started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.functional import cosine_similarity

from leakboard.bench.backbones import differing_token, unwrapped
from leakboard.bench.contracts import LeakboardError, plain

ROWS = 512
"""Word embeddings that are compared."""
ALIKE = 0.5
"""Smallest mean cosine of word embeddings; fine-tuning hardly turns them, and those of unrelated models have 0."""


@dataclass(frozen=True)
class Fingerprint:
    """What fine-tuning keeps of a model.

    Attributes:
        shape: its architecture, number of blocks and width.
        words: [r, d] its first word embeddings.
        vocabulary: of its tokeniser.
    """

    shape: str
    words: Tensor
    vocabulary: dict[str, int]

    @classmethod
    def of(cls, module: Any, tokenizer: Any) -> Fingerprint:
        """Of a model of transformers, or of peft."""
        inner = unwrapped(module)
        config, words = inner.config, inner.get_input_embeddings().weight
        blocks = getattr(config, "num_hidden_layers", None)
        shape = f"{config.model_type} with {blocks} blocks of width {config.hidden_size}"
        return cls(shape, words[:ROWS].detach().float().cpu().clone(), tokenizer.get_vocab())

    def check_base(self, base: Fingerprint, model: str, name: str) -> None:
        """Raise LeakboardError if training cannot have started from `base`.

        Args:
            model: name of this model.
            name: name of the base.
        """
        remedy = "Name the model from which training started, or leave out --base"
        word = differing_token(self.vocabulary, base.vocabulary)
        if word is not None:
            raise LeakboardError(
                f"base: '{name}' and '{model}' have different tokenisers, for example in the token "
                f"'{plain(word, 40)}', so that their losses cannot be compared. {remedy}"
            )
        if self.shape != base.shape:
            raise LeakboardError(
                f"base: '{name}' is a {base.shape}, and '{model}' is a {self.shape}. {remedy}"
            )
        rows = min(len(self.words), len(base.words))
        cosine = float(cosine_similarity(self.words[:rows], base.words[:rows]).mean())
        if cosine < ALIKE:
            raise LeakboardError(
                f"base: the word embeddings of '{name}' and '{model}' are unrelated (mean cosine {cosine:.2f}), "
                f"though training changes them little. {remedy}"
            )
