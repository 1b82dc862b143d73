"""Ten forgeries that were once accepted in silence: each is refused, or named and not accepted.

Five are folders of models, five are submissions.
"""

from __future__ import annotations

import shutil

import pytest
import torch
from model_folders import cut_in_two, failure, index, store, tiny_folder, weights_of
from submitted import more_private, sent, with_key

from leakboard.bench.backbones.folders import WEIGHTS, model_files


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("saved"))


# Folders of models: what they do, and what is said


def points_out_of_the_folder(folder):
    (folder / WEIGHTS).rename(folder.parent / "elsewhere.safetensors")
    index(folder, dict.fromkeys(weights_of(folder.parent / "elsewhere.safetensors", ""), "../elsewhere.safetensors"))  # fmt: skip
    store(folder, {"decoy": torch.zeros(1)}, "decoy.safetensors")
    return "names '../elsewhere.safetensors', which is not a .safetensors file in this folder"


def points_to_a_pickle(folder):
    weights = weights_of(folder)
    torch.save(weights, folder / "weights.bin")
    (folder / WEIGHTS).rename(folder / "decoy.safetensors")
    index(folder, dict.fromkeys(weights, "weights.bin"))
    return "names 'weights.bin', which is not a .safetensors file in this folder"


def brings_an_adapter(folder):
    store(folder, {"base_model.model.x.lora_A.weight": torch.ones(8, 32)}, "adapter_model.safetensors")  # fmt: skip
    (folder / "adapter_config.json").write_text(
        '{"peft_type": "LORA", "target_modules": ["query"]}'
    )
    return "adapter_config.json is an adapter, which is not loaded"


def lacks_weights(folder):
    weights = weights_of(folder)
    store(folder, {name: values for name, values in weights.items() if "layer.1" not in name})
    return "lacks 16 weights of this architecture, which would be random: encoder.layer.1"


def holds_nan(folder):
    weights = weights_of(folder)
    weights["encoder.layer.0.output.dense.weight"][0, 0] = float("nan")
    store(folder, weights)
    return "holds numbers that are not finite in encoder.layer.0.output.dense.weight"


@pytest.mark.parametrize(
    "forged",
    [points_out_of_the_folder, points_to_a_pickle, brings_an_adapter, lacks_weights, holds_nan],
)
def test_forged_model_is_refused_with_the_file_and_the_remedy(saved, tmp_path, forged):
    folder = shutil.copytree(saved, tmp_path / "model")
    expected = forged(folder)
    message = failure(folder)
    assert expected in message
    assert str(folder) in message


def test_two_models_of_one_hash_have_the_same_weights(saved, tmp_path):
    one = shutil.copytree(saved, tmp_path / "one")
    two = shutil.copytree(saved, tmp_path / "two")
    cut_in_two(one)
    places = cut_in_two(two)
    assert model_files("x", one).hash == model_files("x", two).hash
    file = sorted(set(places.values()))[1]
    changed = {name: values + 1 for name, values in weights_of(two, file).items()}
    store(two, changed, file)
    assert model_files("x", one).hash != model_files("x", two).hash


# Submissions: what they do, the words of the command, and what it says


def defended_cell_forged_beside_an_honest_one(real, file):
    sent(file, [real[0], more_private(real[1])])
    return "sap, seed 0): eia-nn inversion representations train token accuracy ok 0.2", "refused"


def unknown_method(real, file):
    unknown = real[1].cell.defense.model_copy(update={"name": "my-noise"})
    sent(file, [real[0], with_key(more_private(real[1]), defense=unknown)])
    return "not run again: 1 cells: my-noise on reviews: unknown defense 'my-noise'", "not accepted"


def data_that_nobody_has(real, file):
    sent(file, [with_key(more_private(r), data_hash="0" * 64) for r in real])
    return "data_hash: 0000000000000000", "not accepted"


def standard_attacks_dropped(real, file):
    kept = [
        r.model_copy(update={"leaks": [k for k in r.leaks if k.attack.name != "eia-nn"]})
        for r in real
    ]
    sent(file, kept)
    return "the required attack eia-nn is missing", "refused"


def verified_by_its_own_word(real, file):
    verified = {"seed": 1, "repeated": [real[1].key], "defended": True}
    sent(file, real, verified=verified)
    return "claims that it was verified", "refused"


FORGED = [
    defended_cell_forged_beside_an_honest_one,
    unknown_method,
    data_that_nobody_has,
    standard_attacks_dropped,
    verified_by_its_own_word,
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("forged", FORGED)
def test_forged_submission_is_refused_or_named_and_not_accepted(
    real, tmp_path, monkeypatch, leakboard, at_once, forged, seed
):
    monkeypatch.chdir(tmp_path)
    named, verdict = forged(real, tmp_path / "forged.zip")
    code, out, err = leakboard("verify", "forged.zip", "--rerun", 1, "--seed", seed, "--accept")
    assert code == 1, out + err
    assert named in " ".join(out.split())
    assert f"records, {verdict}" in out
    assert not (tmp_path / "results").exists()
