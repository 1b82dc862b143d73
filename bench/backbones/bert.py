"""BERT and RoBERTa: word embeddings, then position and type embeddings, then a stack of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from torch import Tensor, nn

lora_targets: Sequence[str] = ("query", "value")
"""As in the LoRA paper (Hu et al. 2022) and SAP."""


def embeddings(model: nn.Module) -> nn.Embedding:
    """The word embeddings E, V×d."""
    return cast(nn.Embedding, cast(Any, model).embeddings.word_embeddings)


def deepest_cut(model: nn.Module) -> int:
    """Only the cut after the word embeddings."""
    return 0


def top(model: nn.Module, h: Tensor, mask: Tensor, types: Tensor, cut: int) -> Tensor:
    """Hidden states [B, L, d] of the last block from word embeddings `h` [B, L, d].

    Positions and segment types are added by the vendor: both are known without the text.
    """
    if cast(Any, model).config.type_vocab_size == 1:  # RoBERTa knows one segment only
        types = types * 0
    out = cast(Any, model)(inputs_embeds=h, attention_mask=mask.long(), token_type_ids=types)
    return cast(Tensor, out.last_hidden_state)
