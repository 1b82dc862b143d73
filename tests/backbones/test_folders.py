"""Folders with a model: what is loaded is what was hashed, and nothing else is loaded."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys

import pytest
import torch
import transformers
from model_folders import (
    cut_in_two,
    failure,
    index,
    reconfigured,
    store,
    tiny_folder,
    weights_of,
)

from leakboard.bench.backbones import loading
from leakboard.bench.backbones.folders import INDEX, WEIGHTS, model_files
from leakboard.bench.backbones.loading import load_backbone


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(saved, tmp_path / "model")


class Trap:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (os.mkdir, (self.mark,))


# The index


def test_weights_in_several_files_are_the_same_model(folder, saved):
    cut_in_two(folder)
    found, whole = load_backbone(str(folder)), load_backbone(str(saved))
    assert found.model.state_dict().keys() == whole.model.state_dict().keys()
    for name, values in whole.model.state_dict().items():
        assert torch.equal(values, found.model.state_dict()[name])
    assert found.hash != whole.hash


@pytest.mark.parametrize("what", ["index", "first file", "second file"])
def test_hash_changes_with_the_index_and_with_every_file_that_it_names(folder, what):
    places = cut_in_two(folder)
    before = model_files("x", folder).hash
    files = sorted(set(places.values()))
    path = folder / {"index": INDEX, "first file": files[0], "second file": files[1]}[what]
    path.write_bytes(path.read_bytes() + b" ")
    assert model_files("x", folder).hash != before


def test_index_that_points_out_of_the_folder_is_refused(folder, tmp_path):
    shutil.copy(folder / WEIGHTS, tmp_path / "evil.safetensors")
    places = dict.fromkeys(weights_of(folder), "../evil.safetensors")
    (folder / WEIGHTS).rename(folder / "other.safetensors")
    index(folder, places)
    message = failure(folder)
    assert f"{folder / INDEX} names '../evil.safetensors'" in message
    assert "convert the model with safetensors" in message


def test_index_that_points_to_a_pickle_is_refused_and_the_pickle_left_alone(folder, tmp_path):
    weights = weights_of(folder)
    torch.save(weights, folder / "weights.bin")
    (folder / WEIGHTS).rename(folder / "other.safetensors")
    index(folder, dict.fromkeys(weights, "weights.bin"))
    assert "names 'weights.bin', which is not a .safetensors file in this folder" in failure(folder)
    mark = tmp_path / "unpickled"
    (folder / "weights.bin").write_bytes(pickle.dumps(Trap(mark)))
    failure(folder)
    assert not mark.exists()


def test_weights_without_an_index_are_not_guessed(folder):
    cut_in_two(folder)
    (folder / INDEX).unlink()
    assert "has neither model.safetensors nor model.safetensors.index.json" in failure(folder)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"weight_map": {}}', "[" * 200_000, "9" * 6000]
)
def test_index_that_is_none_is_refused(folder, content):
    cut_in_two(folder)
    (folder / INDEX).write_text(content)
    assert str(folder / INDEX) in failure(folder)


# Adapters, missing and impossible weights


@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.safetensors"])
def test_adapter_in_the_folder_is_refused_and_not_merged_in_silence(folder, file):
    (folder / file).write_text(json.dumps({"base_model_name_or_path": "/etc", "peft_type": "LORA"}))
    message = failure(folder)
    assert f"{folder / file} is an adapter, which is not loaded. Merge it" in message


def test_missing_weights_are_named_and_not_filled_with_random_numbers(folder):
    weights = weights_of(folder)
    lost = [name for name in weights if "layer.1" in name]
    store(folder, {name: values for name, values in weights.items() if name not in lost})
    message = failure(folder)
    assert f"{folder / WEIGHTS} lacks {len(lost)} weights of this architecture" in message
    assert sorted(lost)[0].removeprefix("bert.") in message


def test_encoder_saved_without_its_pooler_has_no_random_one(folder, saved):
    weights = weights_of(folder)
    store(folder, {name: values for name, values in weights.items() if "pooler" not in name})
    found = load_backbone(str(folder))
    assert found.model.pooler is None
    assert torch.equal(found.embeddings, load_backbone(str(saved)).embeddings)


def test_language_model_saved_without_its_output_layer_predicts_nothing(tmp_path):
    folder = tiny_folder(tmp_path / "llama", "tiny-llama")
    weights = weights_of(folder)
    store(folder, {name: values for name, values in weights.items() if "lm_head" not in name})
    assert load_backbone(str(folder)).head is None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(folder, number):
    weights = weights_of(folder)
    name = next(name for name in weights if "layer.0" in name)
    weights[name].view(-1)[3] = number
    store(folder, weights)
    assert f"holds numbers that are not finite in {name}" in failure(folder)


def test_number_that_only_float32_cannot_hold_is_refused(folder):
    weights = weights_of(folder)
    name = next(name for name in weights if "layer.0" in name)
    weights[name] = weights[name].double()
    weights[name].view(-1)[0] = 1e300
    store(folder, weights)
    assert "not finite" in failure(folder)


# The tokeniser


def never_built(monkeypatch):
    """Whatever is refused now must be refused before a model is allocated."""
    built = "a model was allocated before it was refused"
    monkeypatch.setattr(
        transformers.AutoModel, "from_pretrained", lambda *_, **__: pytest.fail(built)
    )


def test_folder_without_a_tokeniser_is_refused_and_none_is_invented(folder, monkeypatch):
    never_built(monkeypatch)
    for path in folder.glob("tokenizer*"):
        path.unlink()
    message = failure(folder)
    assert (
        f"{folder} holds no tokeniser (tokenizer.json, vocab.txt, vocab.json or a .model" in message
    )
    assert "tokenizer.save_pretrained(folder)" in message


def test_settings_of_a_tokeniser_without_its_words_are_no_tokeniser(folder, monkeypatch):
    never_built(monkeypatch)
    (folder / "tokenizer.json").unlink()
    assert "holds no tokeniser" in failure(folder)


def test_tokeniser_of_a_far_smaller_vocabulary_is_refused_before_a_model_is_built(
    folder, monkeypatch
):
    never_built(monkeypatch)
    vocabulary = folder / "tokenizer.json"
    content = json.loads(vocabulary.read_text())
    words = content["model"]["vocab"]
    content["model"]["vocab"] = {word: i for word, i in words.items() if i < 5}
    vocabulary.write_text(json.dumps(content))
    message = failure(folder)
    assert f"its tokeniser has 5 tokens, and its weights embed {len(words):,}" in message
    assert "put the right tokenizer.json" in message


def test_tokeniser_of_a_larger_vocabulary_is_refused_before_a_model_is_built(folder, monkeypatch):
    never_built(monkeypatch)
    vocabulary = folder / "tokenizer.json"
    content = json.loads(vocabulary.read_text())
    words = content["model"]["vocab"]
    words["beyond"] = len(words)
    vocabulary.write_text(json.dumps(content))
    assert "its tokeniser has 1 tokens, such as 'beyond', beyond the " in failure(folder)


def test_vocabulary_that_is_padded_to_a_round_number_is_read(tmp_path):
    model, tokenizer = loading.tiny.build("tiny-bert")
    model.resize_token_embeddings(len(tokenizer) + 60)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert len(load_backbone(str(tmp_path)).embeddings) == len(tokenizer) + 60


def test_words_that_were_added_to_a_tokeniser_and_its_model_are_tokens(tmp_path):
    model, tokenizer = loading.tiny.build("tiny-bert")
    tokenizer.add_tokens(["leakboard"])
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backbone = load_backbone(str(tmp_path))
    tokens = backbone.encode(["the leakboard"], None, 8)
    assert int(tokens.ids.values[2]) == len(backbone.embeddings) - 1


# The configuration and other files


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"transformers_weights": "../x.safetensors"}, "names the file of the weights"),
        ({"attn_implementation": "kernels-community/evil"}, "than eager or sdpa; remove the key"),
        ({"num_hidden_layers": 10**9}, "asks for 1000000000 blocks; the weights hold"),
        ({"model_type": "qwen2", "num_hidden_layers": 10**9}, "asks for 1000000000 blocks"),
        (
            {"num_labels": 10**9},
            "asks for 1,000,000,000 labels, but no head is read from this folder",
        ),
        ({"num_labels": 1e12}, "labels, but no head is read from this folder; remove num_labels"),
        ({"vocab_size": 10**9}, "describes a model with"),
        ({"intermediate_size": 10**12}, "describes a model with"),
        ({"max_position_embeddings": 10**10}, "describes a model with"),
        ({"num_hidden_layers": 3}, "lacks 16 weights"),
        ({"vocab_size": "many"}, "could not be read"),
        ({"hidden_size": -1}, "could not be read"),
    ],
)
def test_configuration_that_asks_for_something_else_is_refused(folder, changes, expected):
    reconfigured(folder, **changes)
    message = failure(folder)
    assert expected in message
    assert str(folder) in message
    assert "leakboard-model-" not in message


@pytest.mark.parametrize(
    "content", ["[" * 200_000, '{"a": ' + "9" * 6000 + "}", "\0", "nope", "[]"]
)
def test_configuration_that_is_no_json_object_is_refused(folder, content):
    (folder / "config.json").write_text(content)
    assert f"{folder / 'config.json'} is not " in failure(folder)


def test_settings_of_a_tokeniser_cannot_name_files_elsewhere(folder, saved, tmp_path):
    evil = json.loads((folder / "tokenizer.json").read_text())
    evil["model"]["vocab"] = dict.fromkeys(evil["model"]["vocab"], 0)
    (tmp_path / "evil.json").write_text(json.dumps(evil))
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text()) | {"tokenizer_file": str(tmp_path / "evil.json")}
    path.write_text(json.dumps(settings))
    texts = ["the battery died"]
    found, honest = (load_backbone(str(each)).encode(texts, None, 32) for each in (folder, saved))
    assert torch.equal(found.ids.values, honest.ids.values)


def test_no_file_of_the_folder_is_read_that_was_not_hashed(folder):
    """Whatever Python opens inside the folder while a model is loaded."""
    for name in ("README.md", "generation_config.json", "chat_template.jinja", "modeling.py",
                 "pytorch_model.bin", "vocab.bpe.bak", "preprocessor_config.json"):  # fmt: skip
        (folder / name).write_text("{}")
    opened = set()
    watching = True

    def hook(event, args):
        if watching and event == "open" and isinstance(args[0], str | os.PathLike):
            opened.add(os.path.realpath(args[0]))

    sys.addaudithook(hook)
    files = model_files("x", folder)
    load_backbone(str(folder))
    watching = False
    inside = {os.path.basename(path) for path in opened if path.startswith(str(folder))}
    assert inside
    assert inside <= set(files.used)


def test_link_to_nothing_is_named(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("../gone.json")
    message = failure(folder)
    assert f"{folder / 'tokenizer.json'} is a link to ../gone.json, which does not exist" in message


def test_links_to_files_are_followed_as_in_the_cache_of_the_hub(folder, saved):
    for path in folder.iterdir():
        path.unlink()
        path.symlink_to(saved / path.name)
    assert load_backbone(str(folder)).hash == load_backbone(str(saved)).hash


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt"])
def test_pipe_in_place_of_a_file_is_refused_and_not_waited_for(folder, file):
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    assert f"{folder / file} is not a regular file" in failure(folder)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("~nouser/x", "'~nouser' is not a user of this machine"),
        ("x" * 5000, "File name too long"),
        ("a/" * 5000, "File name too long"),
        ("/tmp/a\0b", "not a valid path"),
        ("[red]x[/blue]", "could not be fetched from the hub"),
    ],
)
def test_names_that_are_no_paths_are_refused(name, expected):
    assert expected in failure(name)


def test_folder_that_is_a_link_to_nothing_or_to_itself_is_named(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    assert "which does not exist" in failure(tmp_path / "gone")
    assert "cannot be reached" in failure(tmp_path / "ring")
