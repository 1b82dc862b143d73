"""Tiny random models of every architecture family, saved as folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

WORDS = [
    "the",
    "a",
    "film",
    "food",
    "was",
    "is",
    "good",
    "bad",
    "very",
    "not",
    "quite",
    "and",
    "but",
    "slow",
    "bright",
    "dull",
]
BLOCKS, WIDTH, HEADS = 3, 16, 4

common = {
    "num_hidden_layers": BLOCKS,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
deberta = common | {
    "relative_attention": True,
    "position_buckets": 4,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
t5 = {"d_model": WIDTH, "d_kv": 4, "d_ff": 32, "num_layers": BLOCKS, "num_heads": HEADS}
shared_keys = common | {"num_key_value_heads": 2}
gpt2 = {"n_embd": WIDTH, "n_layer": BLOCKS, "n_head": HEADS, "n_positions": 64}
distilbert = {"dim": WIDTH, "n_layers": BLOCKS, "n_heads": HEADS, "hidden_dim": 32}
opt = {
    "num_hidden_layers": BLOCKS,
    "hidden_size": WIDTH,
    "word_embed_proj_dim": WIDTH,
    "num_attention_heads": HEADS,
    "ffn_dim": 32,
    "max_position_embeddings": 64,
}
falcon = {
    "num_hidden_layers": BLOCKS,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 64,
}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", common),
    "roberta": ("RobertaConfig", "RobertaModel", common | {"type_vocab_size": 1}),
    "deberta": ("DebertaV2Config", "DebertaV2Model", deberta),
    "deberta-conv": (
        "DebertaV2Config",
        "DebertaV2Model",
        deberta | {"conv_kernel_size": 3, "position_biased_input": True, "type_vocab_size": 2},
    ),
    "t5": ("T5Config", "T5ForConditionalGeneration", t5),
    "t5-encoder": ("T5Config", "T5EncoderModel", t5),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", gpt2),
    "llama": ("LlamaConfig", "LlamaForCausalLM", shared_keys),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", shared_keys),
    "qwen2-window": (
        "Qwen2Config",
        "Qwen2ForCausalLM",
        shared_keys | {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", shared_keys | {"head_dim": 8}),
    "mistral": ("MistralConfig", "MistralForCausalLM", shared_keys | {"sliding_window": None}),
    "mistral-window": ("MistralConfig", "MistralForCausalLM", shared_keys | {"sliding_window": 3}),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        shared_keys
        | {"head_dim": 8, "sliding_window": 3, "query_pre_attn_scalar": 8}
        | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertModel",
        common
        | {"local_attention": 4, "global_attn_every_n_layers": 2}
        | {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    ),
    "mpnet": ("MPNetConfig", "MPNetModel", common),
    "distilbert": ("DistilBertConfig", "DistilBertModel", distilbert),
    "electra": ("ElectraConfig", "ElectraModel", common | {"embedding_size": WIDTH}),
    "electra-discriminator": (
        "ElectraConfig",
        "ElectraForPreTraining",
        common | {"embedding_size": WIDTH},
    ),
    "electra-small": ("ElectraConfig", "ElectraModel", common | {"embedding_size": 8}),
    "deberta-narrow": (
        "DebertaV2Config",
        "DebertaV2Model",
        deberta | {"embedding_size": 8},
    ),
    "albert": ("AlbertConfig", "AlbertModel", common | {"embedding_size": 8}),
    "albert-groups": (
        "AlbertConfig",
        "AlbertForMaskedLM",
        common | {"embedding_size": 8, "num_hidden_groups": 3},
    ),
    "opt": ("OPTConfig", "OPTForCausalLM", opt),
    "opt-norm-behind": (
        "OPTConfig",
        "OPTForCausalLM",
        opt | {"do_layer_norm_before": False, "tie_word_embeddings": False},
    ),
    "gpt-neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", common),
    "gpt-neox-in-turn": (
        "GPTNeoXConfig",
        "GPTNeoXForCausalLM",
        common | {"use_parallel_residual": False, "tie_word_embeddings": True},
    ),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", shared_keys | {"sliding_window": None}),
    "phi3-window": ("Phi3Config", "Phi3ForCausalLM", shared_keys | {"sliding_window": 3}),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", shared_keys),
    "falcon": ("FalconConfig", "FalconForCausalLM", falcon),
    "falcon-new": (
        "FalconConfig",
        "FalconForCausalLM",
        falcon | {"new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "falcon-alibi": (
        "FalconConfig",
        "FalconForCausalLM",
        falcon | {"alibi": True, "multi_query": False, "parallel_attn": False},
    ),
}
"""Configuration class, model class and configuration of a tiny model of each family."""
WITHOUT_SPECIAL = ("gpt2", "llama", "qwen3")
NARROW = ("electra-small", "deberta-narrow", "albert", "albert-groups")
"""Word embeddings of 8 dimensions under blocks of 16."""
WITH_SEGMENTS = (
    "bert",
    "deberta-conv",
    "electra",
    "electra-discriminator",
    "electra-small",
    "albert",
    "albert-groups",
)


def tokenizer_for(name: str) -> Any:
    """BERT's template with segments, a bare tokeniser without padding or special tokens, or one of bytes.

    Transformers reads the folders of Qwen 2 with a tokeniser of bytes, whatever stands there.
    """
    if name.startswith("qwen2"):
        return _of_bytes()
    special = [] if name in WITHOUT_SPECIAL else ["<pad>", "<s>", "</s>", "<unk>"]
    if name == "mpnet":  # which takes 1 for padding, whatever the configuration says
        special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {word: i for i, word in enumerate([*special, *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=special[-1] if special else None))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if not special:
        return transformers.PreTrainedTokenizerFast(tokenizer_object=inner)
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B:1 </s>:1",
        special_tokens=[("<s>", special.index("<s>")), ("</s>", 2)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", unk_token="<unk>", bos_token="<s>"
    )


def _of_bytes() -> Any:
    """Byte pairs, merged up to whole words."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = [*WORDS, *(f" {word}" for word in WORDS)]
    trainer = trainers.BpeTrainer(special_tokens=["<|endoftext|>"], show_progress=False)
    inner.train_from_iterator(texts * 2, trainer)
    made = json.loads(inner.to_str())["model"]
    return transformers.Qwen2Tokenizer(
        vocab=made["vocab"], merges=[tuple(pair) for pair in made["merges"]]
    )


def saved_family(name: str, folder: Path, model: str = "", **changes: Any) -> Path:
    """A model of a family with its tokeniser, in a folder; of another class of transformers where one is named."""
    tokenizer = tokenizer_for(name)
    config, own, fields = MODELS[name]
    config = getattr(transformers, config)(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **fields | changes
    )
    torch.manual_seed(0)
    made = getattr(transformers, model or own)(config)
    with torch.no_grad():  # small random weights would hide a part that is left out
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
