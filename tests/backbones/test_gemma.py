"""Quantised models: read once, checked, and refused in a sentence; the real one where its package is."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
import torch
from model_folders import failure, reconfigured, tiny_folder

from leakboard.bench.backbones import gemma, next_token, quantised
from leakboard.bench.backbones.folders import model_files
from leakboard.bench.backbones.loading import EMBEDDED, load_backbone, model_folder, tiny
from leakboard.bench.contracts.errors import LeakboardError, MissingExtra


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "leakboard"


def package(monkeypatch, content=b"no model", error=None):
    """A package that puts together some file."""
    made = ModuleType(gemma.PACKAGE)

    def assemble(path):
        if error:
            raise error
        path.write_bytes(content)
        return path

    made.assemble = assemble
    monkeypatch.setitem(sys.modules, gemma.PACKAGE, made)
    monkeypatch.setitem(sys.modules, "gguf", ModuleType("gguf"))


def test_gemma_without_its_package_names_the_extra_and_leaves_nothing(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, gemma.PACKAGE, None)
    with pytest.raises(MissingExtra, match=r"'gemma' is not installed.*leakboard\[gemma\]"):
        model_folder("gemma")
    assert not list(cache.iterdir())


def test_a_file_of_another_checksum_is_refused_and_not_kept(cache, monkeypatch):
    package(monkeypatch)
    with pytest.raises(LeakboardError, match=rf"checksum .* expected {gemma.SHA256}.*reinstall"):
        gemma.folder()
    package(monkeypatch, error=FileNotFoundError("Missing chunk files: two"))
    with pytest.raises(LeakboardError, match=r"Missing chunk files: two.*reinstall"):
        gemma.folder()
    assert not list(cache.iterdir())


def test_the_file_is_dequantised_once_and_its_hash_is_that_of_what_came_out(cache, monkeypatch):
    package(monkeypatch)
    monkeypatch.setattr(gemma, "SHA256", quantised.hashlib.sha256(b"no model").hexdigest())
    made = []

    def dequantised(file, model, into):
        made.append(file.read_bytes())
        tiny_folder(into, "tiny-gpt2")

    monkeypatch.setattr(quantised, "dequantise", dequantised)
    first = load_backbone("gemma")
    assert load_backbone("gemma").hash == first.hash == model_files("x", gemma.folder()).hash
    assert made == [b"no model"]
    assert [path.name[:5] for path in cache.iterdir()] == ["gemma"]  # and no part of the file
    assert first.name == "gemma"


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])  # tied, and not
def test_what_came_from_a_quantised_file_is_saved_as_it_is(tmp_path, name):
    model, tokenizer = tiny.build(name)
    model.hf_quantizer = "one that cannot be saved"
    with pytest.raises(AttributeError):
        model.save_pretrained(tmp_path / "plain")
    quantised.save(model, tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    again = load_backbone(str(tmp_path / "model"))
    assert again.tied == (name == "tiny-gpt2")
    for key, value in again.model.state_dict().items():
        assert torch.equal(value, model.base_model.state_dict()[key])
    assert torch.equal(again.head, model.get_output_embeddings().weight)
    assert "transformers_version" not in (tmp_path / "model" / "config.json").read_text()


def test_the_listing_names_the_licence_and_what_was_done_to_the_weights():
    assert "Gemma terms of use" in EMBEDDED["gemma"]
    assert "dequantised once" in EMBEDDED["gemma"]


def test_a_file_that_is_no_gguf_or_of_an_unknown_architecture_says_so(cache, tmp_path):
    gguf = pytest.importorskip("gguf", reason="needs the extra 'gemma'")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and nothing behind it")
    assert "cannot be read as GGUF" in failure(broken)
    strange = tmp_path / "strange.gguf"
    writer = gguf.GGUFWriter(strange, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "has the architecture 'mamba', which is not supported from GGUF; supported: gemma3" in failure(strange)  # fmt: skip
    empty = tmp_path / "empty.gguf"
    writer = gguf.GGUFWriter(empty, "gemma3")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "parameters, but holds 0; fetch it again" in failure(empty)  # and is not built first


def test_a_gguf_file_without_its_reader_names_the_extra(cache, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    (tmp_path / "some.gguf").write_bytes(b"GGUF")
    with pytest.raises(MissingExtra, match=r"leakboard\[gguf\]"):
        load_backbone(str(tmp_path / "some.gguf"))


def test_a_tokeniser_of_another_model_is_refused(tmp_path):
    folder = tiny_folder(tmp_path / "model", "tiny-gpt2")
    tiny_folder(tmp_path / "other", "tiny-bert")
    backbone = load_backbone(str(folder))
    words = backbone.tokenizer.get_vocab()
    backbone.tokenizer.add_tokens(["beyond", "further"])
    backbone.tokenizer.save_pretrained(folder)
    message = failure(folder)
    assert "its tokeniser has 2 tokens, such as" in message
    assert f"beyond the {len(words):,} that its weights embed" in message
    assert "tokenizer.json" in message


def test_special_tokens_beyond_the_vocabulary_are_no_text_and_stand(tmp_path):
    folder = tiny_folder(tmp_path / "model", "tiny-gpt2")
    backbone = load_backbone(str(folder))
    backbone.tokenizer.add_special_tokens({"additional_special_tokens": ["<picture>"]})
    backbone.tokenizer.save_pretrained(folder)
    assert load_backbone(str(folder)).embeddings.shape == backbone.embeddings.shape


def test_a_text_longer_than_the_model_reads_names_the_setting(tmp_path):
    folder = tiny_folder(tmp_path / "model", "tiny-llama")
    reconfigured(folder, max_position_embeddings=8)
    backbone = load_backbone(str(folder))
    assert backbone.encode(["the food was good"], None, 8).lengths.tolist() == [5]
    with pytest.raises(LeakboardError, match=r"reads at most 8 tokens.* has 9.*max_length"):
        backbone.encode(["the", "the food was good and the food was"], None, 16)


@pytest.mark.slow
def test_the_real_model_predicts_english_and_takes_digits_one_by_one():
    for package_ in (gemma.PACKAGE, "gguf"):
        if importlib.util.find_spec(package_) is None:
            pytest.skip(f"needs the package {package_} (extra 'gemma', 238 MB)")
    backbone = load_backbone("gemma")
    assert backbone.blocks == 18
    assert backbone.embeddings.shape == (262_144, 640)
    assert backbone.tied
    assert backbone.tokenizer.tokenize("904817") == list("904817")
    texts = ["The capital of France is Paris, and the capital of Germany is Berlin."]
    tokens = backbone.encode(texts, None, 64, opened=True)
    ids = tokens.ids.values.long()
    with torch.no_grad():
        hidden = backbone.model(input_ids=ids[None]).last_hidden_state[0]
        loss, _ = next_token.losses(hidden[:-1], backbone.head, ids[1:])
    assert loss.mean().exp() < 10
