"""Audit of models in memory and of classifiers: the same as from a folder, and members found by labels."""

from __future__ import annotations

import csv
import json

import pytest
import torch
from audited_models import (
    LABELS,
    base_model,
    fitted_classifier,
    labelled_rows,
    memorise,
    sample_texts,
)
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from transformers import AutoTokenizer, BertForSequenceClassification

import leakboard as lb
from leakboard.attacks.membership import prediction_scores

# peft calls what transformers has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")


def aucs(found):
    return {
        one.view or one.attack.name: one.success.value for one in found.leaks if one.metric == "AUC"
    }


@pytest.fixture(scope="module")
def adapted():
    """A peft model in memory that memorised the members, in training mode, and its tokeniser."""
    model, tokenizer = base_model()
    torch.manual_seed(0)
    targets = ["c_attn", "c_proj", "c_fc"]
    model = get_peft_model(
        model, LoraConfig(r=16, lora_alpha=64, target_modules=targets, fan_in_fan_out=True)
    )
    batch = tokenizer(list(sample_texts()[0]), padding=True, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    memorise(model, batch, labels, rate=1e-2, steps=50)
    return model.train(), tokenizer


def test_a_model_in_memory_is_read_as_from_its_folder_and_left_as_it_was(adapted, tmp_path):
    model, tokenizer = adapted
    lists = dict(zip(("members", "others", "public"), sample_texts(), strict=True))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = lb.audit(model, tokenizer=tokenizer, **lists, progress=False)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    model.save_pretrained(tmp_path / "adapter")
    for part in base_model():
        part.save_pretrained(tmp_path / "base")
    saved = lb.audit(tmp_path / "adapter", base=tmp_path / "base", **lists, progress=False)
    assert aucs(found) == pytest.approx(aucs(saved), abs=1e-3)
    assert {*aucs(found)} == {"loss", "calibrated", "min-k", "ez-mia", "wbc", "rmia"}
    assert found.strongest["AUC"]["low"] > 0.6
    other = lb.audit(model, tokenizer=tokenizer, base=base_model()[0], **lists, progress=False)
    assert aucs(other) == pytest.approx(aucs(found), abs=1e-3)


def test_what_is_not_read_as_it_predicts_is_refused(adapted):
    model, tokenizer = adapted
    members, others, _ = sample_texts()
    told = {"members": members, "others": others, "progress": False}
    with pytest.raises(lb.LeakboardError, match="tokenizer: a model in memory needs"):
        lb.audit(model, **told)
    prompted = get_peft_model(
        base_model()[0], PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    )
    with pytest.raises(lb.LeakboardError, match=r"does not predict what.*merge_and_unload"):
        lb.audit(prompted, tokenizer=tokenizer, **told)
    scaled, _ = base_model()
    scaled.lm_head.register_forward_hook(lambda module, given, logits: 2 * logits)
    with pytest.raises(lb.LeakboardError, match="GPT2LMHeadModel does not predict what"):
        lb.audit(scaled, tokenizer=tokenizer, **told)
    with pytest.raises(lb.LeakboardError, match="expected a path, or a transformers"):
        lb.audit(torch.nn.Linear(2, 2), tokenizer=tokenizer, **told)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("other words", "word embeddings .* are unrelated"),
        ("other depth", "gpt2 with 1 blocks of width 32.*gpt2 with 2 blocks"),
    ],
)
def test_a_base_that_is_not_the_start_is_refused(adapted, case, message):
    model, tokenizer = adapted
    members, others, _ = sample_texts()
    base, _ = base_model()
    if case == "other words":
        torch.nn.init.normal_(base.transformer.wte.weight)
    else:
        base.config.num_hidden_layers = 1
        base.transformer.h = base.transformer.h[:1]
    with pytest.raises(lb.LeakboardError, match=message):
        lb.audit(
            model, tokenizer=tokenizer, base=base, members=members, others=others, progress=False
        )


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *rows])
    return path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A classifier that memorised random labels, an encoder, an adapter of it, and the three files."""
    folder = tmp_path_factory.mktemp("classifier")
    members, others, public = labelled_rows()
    files = {
        name: write(folder / f"{name}.csv", rows)
        for name, rows in (("members", members), ("others", others), ("public", public))
    }
    model, encoder, tokenizer = fitted_classifier(members)
    for name, part in (("model", model), ("base", encoder)):
        part.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return files | {"model": folder / "model", "base": folder / "base"}


def words(files, *more):
    return (
        "audit",
        files["model"],
        "--members",
        files["members"],
        "--others",
        files["others"],
        *more,
    )


def test_a_classifier_gives_away_whose_labels_it_memorised(leakboard, classifier):
    given = ("--base", classifier["base"], "--public", classifier["public"], "--format=json", "-q")
    code, shown, error = leakboard(*words(classifier, *given))
    assert (code, error) == (0, "")
    content = json.loads(shown)
    found = {
        one["view"] or one["attack"]["name"]: one["success"]["value"]
        for one in content["leaks"]
        if one["metric"] == "AUC"
    }
    assert {*found} == {"loss", "top", "entropy", "modified entropy", "calibrated", "rmia"}
    assert found["loss"] > 0.8
    # Labels that were drawn are what it memorised: attacks that know them are stronger.
    assert found["modified entropy"] > found["entropy"]
    assert content["strongest"]["AUC"]["low"] > 0.7
    skipped = {one["attack"]["name"]: one["reason"] for one in content["leaks"] if one["reason"]}
    assert "a classifier does not have" in skipped["wbc"]


def test_a_classifier_in_memory_and_its_adapter_are_read_as_well(classifier, tmp_path):
    members, others, public = labelled_rows()
    told = {"members": members, "others": others, "progress": False}
    whole = BertForSequenceClassification.from_pretrained(classifier["model"])
    own = AutoTokenizer.from_pretrained(classifier["model"])
    found = lb.audit(whole, tokenizer=own, **told)
    saved = lb.audit(
        classifier["model"],
        members=classifier["members"],
        others=classifier["others"],
        progress=False,
    )
    assert aucs(found) == pytest.approx(aucs(saved), abs=1e-3)
    reasons = {one.reason for one in found.leaks if one.attack.name == "membership" and one.reason}
    assert "give --base CLASSIFIER" in reasons.pop()
    # As its own reference it has learned nothing.
    same = lb.audit(whole, tokenizer=own, base=whole, **told)
    assert aucs(same)["calibrated"] == 0.5
    lora = LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"], r=2)
    with_head = get_peft_model(whole, lora)
    with_head.save_pretrained(tmp_path / "adapter")
    told = {  # an adapter does not keep the names of its classes
        name: [(text, LABELS.index(label)) for text, label in rows]
        for name, rows in (("members", members), ("others", others), ("public", public))
    }
    adapter = lb.audit(tmp_path / "adapter", base=classifier["base"], **told, progress=False)
    inside = lb.audit(with_head, tokenizer=own, **told, progress=False)
    assert {*aucs(adapter)} == {*aucs(inside)}


@pytest.mark.parametrize(
    ("case", "messages"),
    [
        ("no label", ["members.csv: no column 'class'", "the model is a classifier"]),
        ("strange label", ["others.csv, line 3: the label 'maybe' is not a class", "noa, yes"]),
        ("secrets", ["a classifier does not generate text"]),
        ("head", ["lacks", "classifier"]),
    ],
)
def test_mistakes_about_classifiers_are_named(leakboard, classifier, tmp_path, case, messages):
    files = dict(classifier)
    more = ["--base", classifier["base"]]
    if case == "no label":
        more += ["--label", "class"]
    elif case == "strange label":
        rows = labelled_rows()[1]
        rows[1] = (rows[1][0], "maybe")
        files["others"] = write(tmp_path / "others.csv", rows)
    elif case == "secrets":
        (tmp_path / "s.csv").write_text("text,secret\nthe pin is 4711,4711\n")
        more += ["--secrets", tmp_path / "s.csv"]
    else:
        folder = tmp_path / "headless"
        folder.mkdir()
        for path in classifier["base"].iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        config = json.loads((folder / "config.json").read_text())
        config["architectures"] = ["BertForSequenceClassification"]
        (folder / "config.json").write_text(json.dumps(config))
        files["model"] = folder
    code, _, error = leakboard(*words(files, *more))
    assert code == 2
    for message in messages:
        assert message in error


def test_scores_of_predictions_are_those_of_the_papers():
    logs = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [1.0, 0.0, 0.0]]).double().log()
    labels = torch.tensor([0, 0, 0])
    top, entropy, modified = (
        prediction_scores(score, logs, labels) for score in ("top", "entropy", "modified entropy")
    )
    assert top.exp().tolist() == pytest.approx([0.7, 0.8, 1])
    by_hand = (
        0.7 * torch.tensor(0.7).log()
        + 0.2 * torch.tensor(0.2).log()
        + 0.1 * torch.tensor(0.1).log()
    )
    assert float(entropy[0]) == pytest.approx(float(by_hand), abs=1e-6)
    assert float(entropy[2]) == 0
    # Song & Mittal 2021, equation 8, with the sign turned: −(1 − p_y) ln p_y − Σ p_i ln(1 − p_i).
    expected = (
        0.3 * torch.tensor(0.7).log()
        + 0.2 * torch.tensor(0.8).log()
        + 0.1 * torch.tensor(0.9).log()
    )
    assert float(modified[0]) == pytest.approx(float(expected), abs=1e-6)
    assert modified[2] == 0
    assert modified[1] < modified[0]
