"""The embedded language model: trained repeatably, and read like any other."""

from __future__ import annotations

from dataclasses import replace

import torch
import transformers
from causal import TEXTS, agrees

from leakboard.bench.backbones.dialogue_gpt import (
    FOLDER,
    TRAINED_FROM,
    Recipe,
    fingerprint,
    perplexity,
    public_texts,
)
from leakboard.bench.backbones.loading import dialogue_gpt, load_backbone
from leakboard.bench.tasks.dialogues import dialogues

SMALL = Recipe(layers=1, width=32, heads=2, vocabulary=400, positions=512, texts=300, epochs=6)
BRIEF = replace(SMALL, texts=60, epochs=1)


def test_the_weights_in_the_package_are_those_of_the_recipe_and_its_texts():
    assert fingerprint(Recipe()) == TRAINED_FROM
    assert fingerprint(replace(Recipe(), seed=1)) != TRAINED_FROM
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    unread = dialogues().split("train").texts[:100]
    assert perplexity(model, tokenizer, public_texts(Recipe())[:100]) < 4
    assert perplexity(model, tokenizer, unread) > 20


def test_training_learns():
    public, unseen = (dialogues().split(name).texts[:300] for name in ("auxiliary", "dev"))
    model, tokenizer = dialogue_gpt.train(SMALL, public)
    # A model that has learnt nothing guesses among 400 tokens.
    assert perplexity(model, tokenizer, public) < 150
    assert perplexity(model, tokenizer, unseen) < 150


def test_training_is_repeatable_and_leaves_the_random_state_alone():
    public = dialogues().split("auxiliary").texts[:60]
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model, _ = dialogue_gpt.train(BRIEF, public)
    assert torch.equal(torch.rand(3), expected)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        again, _ = dialogue_gpt.train(BRIEF, public)  # from another random state
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    for name, value in again.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name


def test_the_embedded_model_is_read_like_any_other():
    backbone = load_backbone("dialogue-gpt")
    assert backbone.name == "dialogue-gpt"
    assert backbone.tied
    agrees(backbone, transformers.AutoModelForCausalLM.from_pretrained(FOLDER).eval())
    tokens = backbone.encode(TEXTS, None, 64, opened=True)
    assert tokens.special.sum() == len(TEXTS)
