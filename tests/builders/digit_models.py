"""Tiny causal models, and tokenisers that merge figures or do not."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

FORM = "My ID is {digits}."
WORDS = ("My", "ĠID", "Ġis", "Ġ", ".", "!")
FIGURES = tuple("0123456789")


def tokenizer_of(
    merged: bool, begin: bool, words: tuple[str, ...] = WORDS, bos: bool = True
) -> Any:
    """Byte-level BPE: a token per figure, or one that merges some pairs and triples, also with the space.

    Args:
        begin: whether it puts BOS in front of a text.
        bos: whether it has one.
    """
    joined = ["12", "34", "00", "99", "123", "007", "Ġ1", "Ġ34", "5."] if merged else []
    letters = sorted({c for word in words for c in word} | set(FIGURES))
    tokens = dict.fromkeys(["<unk>", "<s>", *letters])
    merges: list[tuple[str, str]] = []
    for word in (*words, *joined):
        at = word[0]
        for letter in word[1:]:
            merges.append((at, letter))
            at += letter
            tokens[at] = None
    vocabulary = {token: i for i, token in enumerate(tokens)}
    unique = list(dict.fromkeys(merges))
    inner = Tokenizer(models.BPE(vocabulary, unique, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not merged)
    if begin:
        inner.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", bos_token="<s>" if bos else None
    )


def model_of(name: str, vocabulary: int) -> tuple[Any, torch.Tensor]:
    """A tiny causal model of large random weights, so that candidates differ, and its head."""
    torch.manual_seed(0)
    config: Any
    if name == "llama":  # two heads to each key
        config = transformers.LlamaConfig(
            vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=24,
        )  # fmt: skip
        model = transformers.LlamaModel(config)
    elif name == "gemma3":  # with two reaches of attention
        config = transformers.Gemma3TextConfig(
            vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, intermediate_size=24, sliding_window=32,
            layer_types=["sliding_attention", "full_attention"],
        )  # fmt: skip
        model = transformers.Gemma3TextModel(config)
    else:
        config = transformers.GPT2Config(
            vocab_size=vocabulary, n_embd=16, n_layer=2, n_head=4, n_positions=32
        )
        model = transformers.GPT2Model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval(), torch.randn(vocabulary, 16)
