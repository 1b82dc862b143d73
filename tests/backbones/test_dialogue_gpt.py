"""The embedded language model: trained once, repeatably, and read like any other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from causal import TEXTS, agrees

from leakboard.bench.backbones.dialogue_gpt import Recipe, perplexity
from leakboard.bench.backbones.loading import dialogue_gpt, load_backbone
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks import GENERATORS
from leakboard.bench.tasks.dialogues import dialogues

SMALL = Recipe(layers=1, width=32, heads=2, vocabulary=400, positions=512, texts=300, epochs=6)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "leakboard"


def test_the_embedded_model_is_trained_once_and_for_each_recipe_and_text_anew(cache, monkeypatch):
    trainings = []
    original = dialogue_gpt.train

    def counted(recipe, texts):
        trainings.append(recipe)
        return original(recipe, texts)

    monkeypatch.setattr(dialogue_gpt, "train", counted)
    tinier = Recipe(layers=1, width=16, heads=2, vocabulary=300, texts=20, epochs=1)
    made = dialogue_gpt.folder(tinier)
    assert {path.name for path in made.iterdir()} >= {"model.safetensors", "tokenizer.json"}
    assert dialogue_gpt.folder(tinier) == made
    assert trainings == [tinier]
    fewer = Recipe(**vars(tinier) | {"texts": 19})
    other = Recipe(**vars(tinier) | {"seed": 1})
    made_of = {made, dialogue_gpt.folder(fewer), dialogue_gpt.folder(other)}
    task = dialogues()
    public = task.split("auxiliary").take(np.arange(1, 50))
    changed = replace(task, splits=task.splits | {"auxiliary": public})
    monkeypatch.setitem(GENERATORS, "dialogues", lambda: changed)
    assert len(made_of | {dialogue_gpt.folder(tinier)}) == 4
    assert trainings == [tinier, fewer, other, tinier]
    assert sorted(path.name[:12] for path in cache.iterdir()) == ["dialogue-gpt"] * 4


def test_an_interrupted_training_leaves_no_model_behind(cache, monkeypatch):
    def interrupted(recipe, texts):
        raise KeyboardInterrupt

    monkeypatch.setattr(dialogue_gpt, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dialogue_gpt.folder(SMALL)
    assert not list(cache.iterdir())


def test_a_cache_that_cannot_be_made_is_named_with_the_remedy(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(LeakboardError, match=r"file/leakboard cannot be created.* XDG_CACHE_HOME"):
        dialogue_gpt.folder(SMALL)


def test_training_is_repeatable_learns_and_leaves_the_random_state_alone():
    public, unseen = (dialogues().split(name).texts[:300] for name in ("auxiliary", "dev"))
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model, tokenizer = dialogue_gpt.train(SMALL, public)
    assert torch.equal(torch.rand(3), expected)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        again, _ = dialogue_gpt.train(SMALL, public)  # from another random state
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    for name, value in again.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    # A model that has learnt nothing guesses among 400 tokens.
    assert perplexity(model, tokenizer, public) < 150
    assert perplexity(model, tokenizer, unseen) < 150


def test_the_embedded_model_is_read_like_any_other(cache, monkeypatch):
    monkeypatch.setattr(dialogue_gpt, "Recipe", lambda: SMALL)
    backbone = load_backbone("dialogue-gpt")
    assert backbone.name == "dialogue-gpt"
    assert backbone.tied
    (folder,) = cache.iterdir()
    agrees(backbone, transformers.AutoModelForCausalLM.from_pretrained(folder).eval())
    tokens = backbone.encode(TEXTS, None, 64, opened=True)
    assert tokens.special.sum() == len(TEXTS)
