"""Small random encoders with a word-level vocabulary, so that tests need no download and no time."""

from __future__ import annotations

from typing import Any

import torch

WIDTH, BLOCKS, HEADS = 32, 2, 4


def build(name: str) -> tuple[Any, Any]:
    """A model and its tokeniser; the same weights at every call.

    Raises:
        LeakboardError: no tiny model has this name.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertModel,
        PreTrainedTokenizerFast,
        RobertaConfig,
        RobertaModel,
    )

    from bench.backbones import EMBEDDED
    from bench.errors import LeakboardError, did_you_mean
    from bench.tasks.reviews import reviews

    kinds = {
        "tiny-bert": (BertConfig, BertModel, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), 0),
        "tiny-roberta": (RobertaConfig, RobertaModel, ("<s>", "<pad>", "</s>", "<unk>"), 1),
    }
    if name not in kinds:
        raise LeakboardError(f"no model '{name}'. {did_you_mean(name, EMBEDDED)}")
    config_class, model_class, special, pad = kinds[name]

    split = pre_tokenizers.Whitespace()
    words = sorted(
        {
            word
            for text in reviews().splits["train"].texts
            for word, _ in split.pre_tokenize_str(text.lower())
        }
    )
    vocabulary = {word: i for i, word in enumerate([*special, *words])}
    unknown = "[UNK]" if "[UNK]" in special else "<unk>"
    first, last = ("[CLS]", "[SEP]") if "[CLS]" in special else ("<s>", "</s>")
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = split
    inner.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=special[pad],
        unk_token=unknown,
        cls_token=first,
        sep_token=last,
    )
    config = config_class(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        num_hidden_layers=BLOCKS,
        num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=256,
        pad_token_id=vocabulary[special[pad]],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = model_class(config)
    return model, tokenizer
