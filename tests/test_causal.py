"""Causal language models: their output layer, what stands before a text, and the embedded one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from cells import load_tiny

from bench.backbones.dialogue_gpt import Recipe, byte_pairs, perplexity
from bench.backbones.loading import dialogue_gpt, load_backbone, tiny
from bench.contracts.errors import LeakboardError
from bench.tasks.dialogues import dialogues

TEXTS = ["Customer: my order is KP-904817.", "Agent: thanks", "Call 12 on May 3, 2024, please."]
SMALL = Recipe(layers=1, width=32, heads=2, vocabulary=400, positions=512, texts=300, epochs=6)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "leakboard"


def logits_of(backbone, tokens):
    """Logits [T, V] from the parts: bottom, top and output layer."""
    h = tokens.ids.with_values(backbone.embeddings[tokens.ids.values]).padded()
    mask = tokens.ids.mask()
    types = tokens.ids.with_values(tokens.types).padded()
    return backbone.family.top(backbone.model, h, mask, types, 0)[mask] @ backbone.head.T


def agrees(backbone, whole):
    tokens = backbone.encode(TEXTS, None, 64, opened=True)
    assert len(set(tokens.lengths.tolist())) > 1
    rows = [tokens.take(torch.tensor([row])).ids.values[None] for row in range(len(tokens))]
    expected = torch.cat([whole(input_ids=ids.long()).logits[0] for ids in rows])
    torch.testing.assert_close(logits_of(backbone, tokens), expected, atol=1e-5, rtol=1e-5)


# The output layer


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_hidden_states_times_the_output_layer_are_the_logits(tmp_path, architecture, tied):
    model, tokenizer = tiny.build(f"tiny-{architecture}")
    config = model.config.__class__(**model.config.to_dict() | {"tie_word_embeddings": tied})
    torch.manual_seed(1)
    whole = type(model)(config).eval()
    with torch.no_grad():  # small random weights would hide a part that is left out
        for parameter in whole.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    whole.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backbone = load_backbone(str(tmp_path))
    assert backbone.tied == tied
    assert backbone.head.shape == backbone.embeddings.shape
    assert torch.equal(backbone.head, backbone.embeddings) == tied
    assert not hasattr(backbone.model, "lm_head")
    agrees(backbone, whole)


@pytest.mark.parametrize(("name", "tied"), [("tiny-gpt2", True), ("tiny-llama", False)])
def test_tiny_causal_models_have_the_output_layer_they_were_built_with(name, tied):
    backbone = load_tiny(name)
    assert backbone.tied == tied
    agrees(backbone, tiny.build(name)[0].eval())


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_weights_saved_without_an_output_layer_get_no_random_one(tmp_path, architecture):
    model, tokenizer = tiny.build(f"tiny-{architecture}")
    model.base_model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backbone = load_backbone(str(tmp_path))
    if architecture == "gpt2":  # its output layer is E, which is there
        assert backbone.tied
    else:
        assert backbone.head is None
    assert torch.equal(backbone.embeddings, load_tiny(f"tiny-{architecture}").embeddings)


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta"])
def test_encoders_have_no_output_layer(name):
    assert load_tiny(name).head is None
    assert not load_tiny(name).tied


# Tokens


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])
def test_a_text_of_language_modelling_begins_with_one_token_that_begins_texts(name):
    backbone = load_tiny(name)
    first = backbone.tokenizer.bos_token_id
    for length in (64, 5):
        tokens = backbone.encode(TEXTS, None, length, opened=True)
        plain = backbone.encode(TEXTS, None, 64)
        for row in range(len(TEXTS)):
            one = tokens.take(torch.tensor([row]))
            ids = one.ids.values.tolist()
            assert ids[0] == first
            assert first not in ids[1:]
            assert one.special.tolist() == [True] + [False] * (len(ids) - 1)
            bare = [i for i in plain.take(torch.tensor([row])).ids.values.tolist() if i != first]
            assert ids[1:] == bare[: length - 1]
        assert len(tokens.types) == len(tokens.ids.values)


def test_classifiers_of_gpt2_still_get_the_bare_text():
    assert not load_tiny("tiny-gpt2").encode(TEXTS, None, 64).special.any()


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])
def test_tiny_causal_models_know_the_dialogues_and_take_digits_one_by_one(name):
    backbone = load_tiny(name)
    unknown = backbone.tokenizer.unk_token_id
    tokens = backbone.encode(dialogues().split("train").texts, None, 256, opened=True)
    assert unknown not in tokens.ids.values
    assert backbone.tokenizer.tokenize("KP-904817") == ["kp", "-", *"904817"]
    alone = {word for word in backbone.tokenizer.get_vocab() if set(word) & set("0123456789")}
    assert alone == set("0123456789")


def test_the_real_small_llama_is_read_with_its_output_layer(data):
    folder = data / "stories260k/hf"
    if not folder.is_dir():
        pytest.skip(f"needs the model in {folder}")
    backbone = load_backbone(str(folder))
    assert backbone.tied
    agrees(backbone, transformers.AutoModelForCausalLM.from_pretrained(folder).eval())
    pieces = backbone.tokenizer.tokenize("Call 2024 now")
    assert [piece for piece in pieces if set(piece) & set("0123456789")] == list("2024")


# The embedded model


def test_byte_pairs_take_digits_one_by_one_and_lose_nothing():
    tokenizer = byte_pairs(dialogues().split("auxiliary").texts[:300], 400)
    assert len(tokenizer) == 400
    for text in [*dialogues().split("dev").texts[:100], "naïve € 12-345 \t x"]:
        ids = tokenizer(text)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
        for piece in tokenizer.convert_ids_to_tokens(ids):
            assert len(piece) == 1 or not set(piece) & set("0123456789")


def test_the_embedded_model_is_trained_once_and_for_each_recipe_and_text_anew(cache, monkeypatch):
    trainings = []
    original = dialogue_gpt.trained

    def counted(recipe, texts):
        trainings.append(recipe)
        return original(recipe, texts)

    monkeypatch.setattr(dialogue_gpt, "trained", counted)
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
    monkeypatch.setattr("bench.tasks.task.dialogues.dialogues", lambda: changed)
    assert len(made_of | {dialogue_gpt.folder(tinier)}) == 4
    assert trainings == [tinier, fewer, other, tinier]
    assert sorted(path.name[:12] for path in cache.iterdir()) == ["dialogue-gpt"] * 4


def test_an_interrupted_training_leaves_no_model_behind(cache, monkeypatch):
    def interrupted(recipe, texts):
        raise KeyboardInterrupt

    monkeypatch.setattr(dialogue_gpt, "trained", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dialogue_gpt.folder(SMALL)
    assert not list(cache.iterdir())


def test_a_cache_that_cannot_be_made_is_named_with_the_remedy(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(LeakboardError, match=r"file/leakboard cannot be made.* XDG_CACHE_HOME"):
        dialogue_gpt.folder(SMALL)


def test_training_is_repeatable_learns_and_leaves_the_random_state_alone():
    public, unseen = (dialogues().split(name).texts[:300] for name in ("auxiliary", "dev"))
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model, tokenizer = dialogue_gpt.trained(SMALL, public)
    assert torch.equal(torch.rand(3), expected)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        again, _ = dialogue_gpt.trained(SMALL, public)  # from another random state
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
