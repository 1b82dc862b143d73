"""Small random models with a word-level vocabulary, for tests without a download."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from leakboard.bench.backbones.embedded import EMBEDDED
from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.bench.tasks import GENERATORS

WIDTH, HEADS = 32, 4


@dataclass(frozen=True)
class Kind:
    """An architecture and the special tokens of its tokenisers."""

    architecture: str
    model: str
    special: tuple[str, ...]
    """Special tokens in the order of their ids."""
    roles: dict[str, str]
    """Special token of each role of transformers."""
    first: str = ""
    last: str = ""
    """Tokens that the tokeniser puts before and after a text."""
    tasks: tuple[str, ...] = ("reviews",)
    """Tasks whose training texts give the words."""
    digits: bool = False
    """Whether each digit is one token."""
    blocks: int = 2


BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LANGUAGE: dict[str, Any] = {"tasks": ("reviews", "dialogues"), "digits": True}
TINY_BERT = Kind(
    "Bert",
    "Model",
    BERT,
    dict(zip(("pad", "unk", "cls", "sep"), BERT[:4], strict=True)),
    "[CLS]",
    "[SEP]",
)
KINDS = {
    "tiny-bert": TINY_BERT,
    "tiny-deep-bert": replace(TINY_BERT, blocks=6),
    "tiny-roberta": Kind(
        "Roberta",
        "Model",
        ("<s>", "<pad>", "</s>", "<unk>"),
        {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"},
        "<s>",
        "</s>",
    ),
    # As in the real models, GPT-2 ties its output layer to E and adds no BOS, and Llama does neither.
    "tiny-gpt2": Kind(
        "GPT2",
        "LMHeadModel",
        ("<|endoftext|>", "<unk>"),
        dict.fromkeys(("bos", "eos", "pad"), "<|endoftext|>") | {"unk": "<unk>"},
        **LANGUAGE,
    ),
    "tiny-llama": Kind(
        "Llama",
        "ForCausalLM",
        ("<unk>", "<s>", "</s>"),
        {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "</s>"},
        "<s>",
        **LANGUAGE,
    ),
}


DEPTH = re.compile(rf"({'|'.join(KINDS)})-([1-9][0-9]?)")
"""A name with a number of blocks, such as tiny-bert-24."""


def build(name: str) -> tuple[Any, Any]:
    """A model, with its output layer if it has one, and its tokeniser; the same at every call.

    Raises:
        LeakboardError: no tiny model has this name.
    """
    import transformers

    kind, depth = KINDS.get(name), DEPTH.fullmatch(name)
    if kind is None and depth:
        kind = replace(KINDS[depth[1]], blocks=int(depth[2]))
    if kind is None:
        raise LeakboardError(f"no model '{name}'. {did_you_mean(name, EMBEDDED)}")
    tokenizer = _tokenizer(kind)
    config = getattr(transformers, f"{kind.architecture}Config")(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=kind.blocks,
        num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=256,
        **{
            f"{role}_token_id": tokenizer.convert_tokens_to_ids(kind.roles[role])
            for role in ("pad", "bos", "eos")
            if role in kind.roles
        },
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = getattr(transformers, kind.architecture + kind.model)(config)
    return model, tokenizer


def _splitter(digits: bool) -> Any:
    from tokenizers import pre_tokenizers

    split: Any = pre_tokenizers.Whitespace()
    if digits:
        split = pre_tokenizers.Sequence([split, pre_tokenizers.Digits(individual_digits=True)])
    return split


@cache
def _words(tasks: tuple[str, ...], digits: bool) -> tuple[str, ...]:
    """All words of the training texts of tasks, in alphabetical order."""
    split = _splitter(digits)
    texts = (text for task in tasks for text in GENERATORS[task]().splits["train"].texts)
    words = {word for text in texts for word, _ in split.pre_tokenize_str(text.lower())}
    return tuple(sorted(words))


def _tokenizer(kind: Kind) -> Any:
    from tokenizers import Tokenizer, models, normalizers, processors
    from transformers import PreTrainedTokenizerFast

    words = _words(kind.tasks, kind.digits)
    vocabulary = {word: i for i, word in enumerate([*kind.special, *words])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=kind.roles["unk"]))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = _splitter(kind.digits)
    inner.post_processor = processors.TemplateProcessing(
        single=f"{kind.first} $A {kind.last}".split(),
        pair=f"{kind.first} $A {kind.last} $B:1 {kind.last and kind.last + ':1'}".split(),
        special_tokens=[(token, vocabulary[token]) for token in (kind.first, kind.last) if token],
    )
    roles = {f"{role}_token": token for role, token in kind.roles.items()}
    return PreTrainedTokenizerFast(tokenizer_object=inner, **roles)
