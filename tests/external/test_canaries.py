"""Canaries around a training: planted in every kind of data, checked before the first batch, audited after."""

from __future__ import annotations

import csv
import json

import datasets
import numpy as np
import pytest
import torch
from audited_models import base_model, sample_texts
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

import leakboard as lb
from leakboard.bench.external.canary_audit import CanaryReadings, audit_canaries
from leakboard.bench.external.canary_planting import CanarySet

FORM = "my id is {digits}"


def drawn(**change):
    return lb.Canaries(n=20, form=FORM, **change)


def planted_of(canaries):
    return [canaries.drawn.text(each) for each in canaries.drawn.secrets[canaries.drawn.planted]]


def tokenised(texts, tokenizer, longest=40):
    encode = lambda row: tokenizer(row["text"], truncation=True, max_length=longest)  # noqa: E731
    return datasets.Dataset.from_dict({"text": texts}).map(encode, remove_columns=["text"])


@pytest.fixture
def training(tmp_path):
    """Trains the tiny model on texts with canaries, and returns the canaries."""

    def run(canaries, texts, epochs, collator=None, longest=40):
        model, tokenizer = base_model()
        arguments = TrainingArguments(
            tmp_path / "out",
            num_train_epochs=epochs,
            learning_rate=1e-2,
            per_device_train_batch_size=16,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        collator = collator or DataCollatorForLanguageModeling(tokenizer, mlm=False)
        data = tokenised(texts, tokenizer, longest)
        Trainer(
            model,
            arguments,
            train_dataset=data,
            data_collator=collator,
            processing_class=tokenizer,
            callbacks=[canaries],
        ).train()
        return canaries

    return run


def test_a_model_that_memorises_its_canaries_is_caught_and_the_user_reads_it(training, capsys):
    canaries = drawn(copies=4)
    found = training(canaries, canaries.plant(list(sample_texts()[0][:20])), 10).result
    scores = {leak.metric: leak for leak in found.leaks}
    assert scores["exposure"].success.low > scores["exposure"].floor.high
    assert scores["AUC"].success.value > 0.9
    assert scores["AUC"].success.low > 0.6
    assert 0.3 < scores["AUC"].epsilon <= scores["AUC"].epsilon_ceiling
    shown = capsys.readouterr().out
    assert "memorised the planted canaries" in shown
    assert "counts with its 4 copies" in shown


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_a_model_that_learned_nothing_shows_nothing_and_random_digits_have_an_exposure_of_chance():
    canaries = drawn(check=False)
    model, tokenizer = base_model()
    canaries.before(model, tokenizer)
    found = canaries.audit(model, tokenizer)
    scores = {leak.metric: leak for leak in found.leaks}
    auc = scores["AUC"].success
    assert auc.value == 0.5
    assert auc.low < 0.3
    assert auc.high > 0.7
    assert scores["AUC"].epsilon == 0
    assert "is not shown to have memorised" in found.summary[0]
    assert found.summary[2].startswith("The audit refutes no ε at δ = 1e-05")
    assert "was not checked whether the training saw" in found.summary[3]
    rng, means = np.random.default_rng(0), []
    for _ in range(100):
        means.append(CanaryReadings(rng.normal(size=20), rng.normal(size=999)).bits().mean())
    assert np.mean(means) == pytest.approx(1.44, abs=0.1)


@pytest.mark.parametrize(
    ("planted", "one", "is_clear"),
    [(200, 0.5, True), (450, 700, False)],
    ids=["a held-out canary is exposed by luck", "less than by chance"],
)
def test_the_sentence_on_exposure_agrees_with_the_table(planted, one, is_clear):
    """Planted canaries have the rank `planted` among 1,000, held-out ones 700 except for the first."""
    canaries, others = CanarySet.draw(20, 1, FORM, 0), np.arange(1.0, 1000)
    rank = np.where(canaries.planted, float(planted), 700.0)
    rank[np.flatnonzero(~canaries.planted)[0]] = one
    after = CanaryReadings(rank + np.linspace(0, 0.4, 20), others)
    found = lb.Attacked.of(audit_canaries(canaries, after, after, 1e-5))
    overlap = found.leaks[0].success.low < found.leaks[0].floor.high
    assert overlap == is_clear
    shown = found.frame().query("metric == 'exposure'")
    assert (shown["advantage_low"].item() > 0) == is_clear
    assert ("is not shown" not in found.summary[0]) == is_clear


def test_the_bound_on_epsilon_is_right_for_randomised_response():
    """Scores that tell the coin with the odds of ε = 1 prove more than ε in at most a share of the trials."""
    too_large = 0
    for seed in range(60):
        canaries = CanarySet.draw(60, 1, FORM, seed)
        rng = np.random.default_rng(seed)
        told = canaries.planted ^ (rng.random(60) < 1 / (1 + np.e))
        after = CanaryReadings(0.01 * rng.random(60) - told, np.zeros(999))
        found = audit_canaries(canaries, CanaryReadings(np.zeros(60), np.zeros(999)), after, 0.0)
        too_large += found.leaks[-1].epsilon > 1
    assert too_large <= 6


def test_every_kind_of_data_gets_each_planted_canary_and_nothing_else(tmp_path):
    canaries = drawn(copies=2)
    texts, expected = list(sample_texts()[0]), sorted(planted_of(canaries) * 2)

    def extra(found, before=texts):
        found = list(found)
        for text in before:
            found.remove(text)
        return sorted(found)

    once = canaries.plant(texts)
    assert extra(once) == expected
    assert once == canaries.plant(texts)
    assert not set(once[-4:]) <= set(expected)
    assert (
        extra(r["text"] for r in canaries.plant([{"text": t, "n": 1} for t in texts])) == expected
    )
    data = datasets.Dataset.from_dict({"text": texts, "n": list(range(len(texts)))})
    found = canaries.plant(data)
    assert found.features == data.features
    assert extra(found["text"]) == expected
    chats = [
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": t}]}
        for t in texts
    ]
    planted = canaries.plant(datasets.Dataset.from_list(chats))
    assert extra(row[-1]["content"] for row in planted["messages"]) == expected
    assert chats[0]["messages"][1]["content"] == texts[0]
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n")
    path = canaries.plant("a.txt")
    assert path.name == "a-canaries.txt"
    assert extra(path.read_text().splitlines()) == expected
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"prompt": "q", "completion": t}) + "\n" for t in texts)
    )
    rows = map(json.loads, canaries.plant("a.jsonl", "b.jsonl").read_text().splitlines())
    assert extra(row["completion"] for row in rows) == expected
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
    with canaries.plant("a.csv").open(newline="") as file:
        assert extra(row["text"] for row in csv.DictReader(file)) == expected


def masked(tokenizer):
    def collate(rows):
        batch = DataCollatorForLanguageModeling(tokenizer, mlm=False)(rows)
        batch["labels"][:, -6:] = -100
        batch["labels"][:, :6] = -100
        return batch

    return collate


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("other data", r"are in no batch. Train on what `plant` returned"),
        ("cut", r"cut off before their digits, in batches of at most 4 tokens. Raise"),
        ("masked", r"the labels mask \d+ of \d+ planted canaries .*column='completion'"),
        ("no labels", "hold no input_ids with labels.*mlm=False"),
    ],
)
def test_canaries_that_the_loss_does_not_see_stop_the_training_with_the_remedy(
    training, case, message
):
    canaries, texts = drawn(), list(sample_texts()[0])
    _, tokenizer = base_model()
    pad = lambda rows: {"input_ids": torch.tensor([[5, 6]] * len(rows))}  # noqa: E731
    collators = {"masked": masked(tokenizer), "no labels": pad}
    data = texts if case == "other data" else canaries.plant(texts)
    longest = 4 if case == "cut" else 40
    with pytest.raises(lb.LeakboardError, match=message):
        training(canaries, data, 1, collators.get(case), longest)
    assert canaries.result is None


def test_the_check_of_the_batches_changes_no_random_number():
    canaries, (_, tokenizer) = drawn(), base_model()
    data = tokenised(canaries.plant(list(sample_texts()[0])), tokenizer)
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    loader = torch.utils.data.DataLoader(data, 8, shuffle=True, collate_fn=collate)
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    canaries.check(lb.bench.external.batches_of(loader), tokenizer)
    assert torch.rand(1) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lb.Canaries(n=3), "n: expected at least 16 canaries, not 3"),
        (lambda: lb.Canaries(copies=0), "copies: expected at least 1"),
        (lambda: lb.Canaries(form="no place"), r"form: expected a sentence with one \{digits\}"),
        (lambda: lb.Canaries(delta=2), "delta"),
        (lambda: drawn().plant(7), "expected a path, a list of texts or records"),
        (lambda: drawn().plant([]), "the training set is empty"),
        (lambda: drawn().plant([[1, 2]]), "plant before the texts are tokenised"),
        (lambda: drawn().plant([{"txt": "a"}]), "no column 'text'. Did you mean 'txt'"),
        (lambda: drawn().plant([{"input_ids": [1]}]), "is tokenised already"),
        (lambda: drawn().plant("nowhere.csv"), "nowhere.csv: no such file"),
        (lambda: drawn().plant("a.parquet"), r"expected a .txt, .csv, .tsv or .jsonl file"),
        (lambda: drawn().audit(*base_model()), "call before"),
        (
            lambda: drawn().check(["a text"], base_model()[1]),
            "batches: expected mappings with input_ids and labels, got str",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(lb.LeakboardError, match=message):
        call()


def test_a_loop_that_was_not_checked_has_no_result():
    canaries, (model, tokenizer) = drawn(), base_model()
    rows = tokenised(canaries.plant(list(sample_texts()[0])), tokenizer)
    canaries.before(model, tokenizer)
    with pytest.raises(lb.LeakboardError, match=r"call check\(batches, tokenizer\)"):
        canaries.audit(model, tokenizer)
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    canaries.check([collate(list(rows))], tokenizer)
    assert len(canaries.audit(model, tokenizer).summary) == 3
