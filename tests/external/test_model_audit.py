"""Audit of a trained language model: members found where it was trained, none where it was not; mistakes explained."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch
from audited_models import base_model, sample_texts
from peft import LoraConfig, get_peft_model
from scipy.stats import rankdata

import leakboard as lb
from leakboard.attacks.ez_mia import ErrorZone
from leakboard.attacks.membership import Membership
from leakboard.attacks.min_k import MinK
from leakboard.attacks.rmia import Rmia
from leakboard.attacks.wbc import WindowComparison
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.backbones.loading import load_backbone, load_trained
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.external import model_audit
from leakboard.bench.external.audited_texts import Secret
from leakboard.bench.external.listed_secrets import CANDIDATES, candidates_of
from leakboard.bench.external.membership_scores import attempts_on_language_model
from leakboard.bench.external.token_readings import read_tokens
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge

# peft calls what transformers has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
PIN = "the pin is 4711 , please"


def write(path, texts):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    return path


def saved_base(folder):
    for part in base_model():
        part.save_pretrained(folder)
    return folder


def trained(folder, epochs):
    """An adapter of the tiny model, trained for some epochs on the members and on one secret; no dropout."""
    model, tokenizer = base_model()
    torch.manual_seed(0)
    targets = ["c_attn", "c_proj", "c_fc"]
    lora = LoraConfig(r=16, lora_alpha=64, target_modules=targets, fan_in_fan_out=True)
    model = get_peft_model(model, lora).eval()
    batch = tokenizer([*sample_texts()[0], *[PIN] * 4], padding=True, return_tensors="pt")
    mask = batch["attention_mask"]
    labels = batch["input_ids"].masked_fill(mask == 0, -100)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(8):
            own = batch["input_ids"][rows]
            model(input_ids=own, attention_mask=mask[rows], labels=labels[rows]).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Adapters that were trained, and not; files of members, others and public texts, and of a secret."""
    folder = tmp_path_factory.mktemp("audit")
    found = {
        name: write(folder / f"{name}.csv", texts)
        for name, texts in zip(("members", "others", "public"), sample_texts(), strict=True)
    }
    found["secrets"] = folder / "secrets.csv"
    found["secrets"].write_text(f'text,secret\n"{PIN}",4711\n')
    return found | {
        "base": saved_base(folder / "base"),
        "trained": trained(folder / "trained", 50),
        "untrained": trained(folder / "untrained", 0),
    }


def words(files, model="trained", *more):
    return (
        *("audit", files[model], "--members", files["members"], "--others", files["others"]),
        *("--public", files["public"], *more),
    )


def aucs(content):
    return {
        one["view"] or one["attack"]["name"]: one["success"]
        for one in content["leaks"]
        if one["metric"] == "AUC"
    }


def test_the_shell_shows_what_an_adapter_gives_away_and_what_its_base_does_not(
    leakboard, files, tmp_path
):
    out = tmp_path / "audit.json"
    code, shown, error = leakboard(
        *words(files, "trained", "--base", files["base"], "--secrets", files["secrets"]),
        *("--out", out, "--all"),
    )
    assert (code, error) == (0, "")
    content = json.loads(out.read_text())
    found = aucs(content)
    assert found["calibrated"]["low"] > 0.7
    assert {*found} == {"loss", "calibrated", "min-k", "ez-mia", "rmia", "wbc"}
    first, second, third, fourth = content["summary"][:4]
    assert first.startswith("The model gives away which texts it was trained on")
    assert second.startswith("It identifies ")
    assert "0.1 % of false alarms" in second
    assert third.startswith("This proves no bound on ε")
    assert "of 1 listed secrets" in fourth
    (exposure,) = (one for one in content["leaks"] if one["metric"] == "exposure")
    assert exposure["success"]["value"] > 5
    assert all(
        " ".join(sentence.split()) in " ".join(shown.split()) for sentence in content["summary"]
    )
    assert "lira" in shown
    code, shown, _ = leakboard("report", out, "--to", tmp_path / "page.html")
    assert code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert first in page
    assert "Whoever holds your model can tell" in page


def test_an_adapter_that_was_not_trained_gives_nothing_away(leakboard, files):
    code, shown, _ = leakboard(
        *words(files, "untrained", "--base", files["base"], "--format", "json")
    )
    assert code == 0
    content = json.loads(shown)
    for name, success in aucs(content).items():
        assert success["low"] <= 0.5 <= success["high"], name
    assert content["summary"][0].startswith("No attack is shown")


def test_scores_are_those_of_the_attacks_that_suites_run(files):
    members, others, public = sample_texts()
    tuned, base = (
        load_trained(str(files["trained"]), str(files["base"])),
        load_backbone(str(files["base"])),
    )
    tokens = base.encode([*members, *others, *public], None, 128, opened=True)
    n = len(members) + len(others)
    attempts = attempts_on_language_model(read_tokens(tuned, tokens), read_tokens(base, tokens), n)
    first, behind = torch.arange(n), torch.arange(n, len(tokens))
    knowledge = Knowledge(
        0,
        "cpu",
        base=base,
        network=lambda: LanguageModel(base, TrainSettings()),
        candidates=Auxiliary(tokens.take(first), np.zeros(n, int)),
        auxiliary=Auxiliary(tokens.take(behind), np.zeros(len(behind), int)),
    )
    released = LanguageModel(tuned, TrainSettings(tune="full")).eval()
    with torch.no_grad():
        for view, attack in (
            ("loss", Membership(score="loss")),
            ("calibrated", Membership()),
            ("min-k", MinK()),
            ("ez-mia", ErrorZone()),
            ("rmia", Rmia()),
            ("wbc", WindowComparison()),
        ):
            _, scores = attempts[view]
            expected = attack.scores(released, knowledge)
            assert scores()[:n] == pytest.approx(expected, abs=1e-4, rel=1e-4), view


def test_each_model_reads_each_text_once(files, monkeypatch):
    read = []

    def counted(model, tokens, progress):
        read.append((model.name, len(tokens)))
        return read_tokens(model, tokens, progress)

    monkeypatch.setattr(model_audit, "read_tokens", counted)
    lists = dict(zip(("members", "others", "public"), sample_texts(), strict=True))
    found = lb.audit(files["trained"], base=files["base"], **lists, progress=False)
    assert read == [("trained", 120), ("base", 120)]
    assert len({one.view for one in found.leaks if one.metric == "AUC"}) == 3  # two with a variant


def test_epsilon_is_proven_where_coins_decided_and_shared_among_attacks(files):
    members, others, _ = sample_texts()
    told = {"members": members, "others": others, "base": files["base"], "progress": False}
    without = lb.audit(files["trained"], **told)
    assert {one.epsilon for one in without.leaks} == {None}
    found = lb.audit(files["trained"], coins=True, delta=1e-5, **told)
    bounds = [one for one in found.leaks if one.epsilon is not None]
    assert len(bounds) == 5  # rmia has no public texts
    assert all(0 <= one.epsilon <= one.epsilon_ceiling for one in bounds)
    assert max(one.epsilon for one in bounds) > 0.3
    alone = lb.bench.scoring.one_run.ceiling(80, 1e-5)
    assert bounds[0].epsilon_ceiling < alone
    assert "private for any ε below" in found.summary[2]


def test_without_a_base_the_attacks_that_compare_say_what_they_need(tmp_path):
    members, others, _ = sample_texts()
    found = lb.audit(saved_base(tmp_path / "whole"), members=members, others=others, progress=False)
    reasons = {one.attack.name: one.reason for one in found.leaks if one.status == "skipped"}
    assert {*reasons} == {"membership", "ez-mia", "rmia", "wbc", "lira"}
    assert "give --base MODEL" in reasons["ez-mia"]


def test_files_that_differ_without_training_are_named(files):
    members, _, _ = sample_texts()
    others = [
        f"{a} {b} {c}" for a, b, c in zip(*[["call", "order", "thanks"] * 8] * 3, strict=True)
    ]
    others = [f"{text} {n}" for n, text in enumerate(others)]
    found = lb.audit(
        files["untrained"], members=members, others=others, base=files["base"], progress=False
    )
    assert "differ already for the base model" in found.summary[-1]


def test_candidates_of_a_secret_differ_in_digits_alone_and_each_occurs_once():
    found = candidates_of("KP-4711x", np.random.default_rng(0))
    assert found[0] == "KP-4711x"
    assert len({*found}) == len(found) == CANDIDATES
    assert all(one.startswith("KP-") and one.endswith("x") and len(one) == 8 for one in found)
    assert all(one[3:7].isdecimal() for one in found)
    assert len(candidates_of("123", np.random.default_rng(0))) == CANDIDATES
    assert Secret("a ", "1", " b").with_secret("2") == "a 2 b"


def test_tied_scores_are_no_evidence():
    assert {*rankdata(np.zeros(4))} == {2.5}
    scores, member = np.zeros(20), np.arange(20) < 10
    assert lb.bench.scoring.one_run.auc(scores, member).value == 0.5


def changed(files, tmp_path, **of):
    """Words of an audit with other files."""
    own = files | {name: tmp_path / f"{name}.csv" for name in of}
    for name, texts in of.items():
        write(own[name], texts)
    return words(own, "trained", "--base", files["base"])


@pytest.mark.parametrize(
    ("case", "messages"),
    [
        (
            "no folder",
            ["nowhere", "neither a model that `leakboard model list` names, nor a folder"],
        ),
        ("no base", ["is an adapter", "--base MODEL"]),
        ("other base", ["differs from the tokeniser of the base model 'tiny-llama'"]),
        ("few", ["members:", "members.csv holds 2 different texts; at least 10"]),
        ("empty", ["others:", "others.csv: the file is empty"]),
        ("both", ["others.csv, line 4 is also", "members.csv, line 2", "1 texts are in both"]),
        ("no column", ["members:", "no column 'body'", "--text"]),
        ("classifier", ["does not predict the next token"]),
        ("no secret", ["secrets.csv, line 2", "'12' does not occur in its text"]),
        ("format", ["--format: expected table or json, got 'xml'"]),
    ],
)
def test_mistakes_are_named_with_file_row_and_remedy(leakboard, files, tmp_path, case, messages):
    members, others, _ = sample_texts()
    (tmp_path / "secrets.csv").write_text("text,secret\nthe pin is 4711,12\n")
    given = {
        "no folder": lambda: words(files | {"trained": "nowhere"}),
        "no base": lambda: words(files),
        "other base": lambda: words(files, "trained", "--base", "tiny-llama"),
        "few": lambda: changed(files, tmp_path, members=members[:2]),
        "empty": lambda: changed(files, tmp_path, others=[]),
        "both": lambda: changed(files, tmp_path, others=[*others[:2], members[0], *others[3:]]),
        "no column": lambda: words(files, "trained", "--base", files["base"], "--text", "body"),
        "classifier": lambda: words(files | {"trained": "tiny-bert"}),
        "no secret": lambda: words(
            files, "trained", "--base", files["base"], "--secrets", tmp_path / "secrets.csv"
        ),
        "format": lambda: words(files, "trained", "--base", files["base"], "--format", "xml"),
    }
    if case == "empty":
        given["empty"]()
        (tmp_path / "others.csv").write_text("")
        code, _, error = leakboard(*words(files | {"others": tmp_path / "others.csv"}))
    else:
        code, _, error = leakboard(*given[case]())
    assert code == 2
    for message in messages:
        assert message in error


def test_adapters_that_cannot_be_merged_are_refused(files, tmp_path):
    def spoiled(name, **change):
        folder = tmp_path / name
        folder.mkdir()
        for path in files["trained"].iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        config = json.loads((folder / "adapter_config.json").read_text()) | change
        (folder / "adapter_config.json").write_text(json.dumps(config))
        return folder

    with pytest.raises(lb.LeakboardError, match="asks for rank 100000"):
        load_trained(str(spoiled("huge", r=100_000)), str(files["base"]))
    deep = spoiled("deep", target_modules=["c_fc"])
    with pytest.raises(lb.LeakboardError, match="does not fit the base model"):
        load_trained(str(deep), str(files["base"]))
    pickled = spoiled("pickled")
    (pickled / "adapter_model.safetensors").rename(pickled / "adapter_model.bin")
    with pytest.raises(lb.LeakboardError, match=r"adapter_model.safetensors is missing"):
        load_trained(str(pickled), str(files["base"]))
    other = spoiled("other")
    content = json.loads((other / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    a, b = list(vocabulary)[5:7]
    vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    (other / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(lb.LeakboardError, match="differs from the tokeniser of the base model"):
        load_trained(str(other), str(files["base"]))
