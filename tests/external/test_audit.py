"""`leakboard attack` on a transcript recorded elsewhere, through the command's entry point."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cells import leak_of
from paths import README

from leakboard.bench.contracts.cell import Seeds
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.exchange.transcripts import write_transcript
from leakboard.bench.records.store import Store
from leakboard.bench.running.plan import make_plan
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.bench.suites.suite import load_suite

SUITE = """
name: sent
task: reviews
model: tiny-bert
limit: 64
record: {examples: 40}
train: {epochs: 2, batch_size: 16, max_length: 26}
defenses: [sap: {eta: 50}, p3eft]
attacks: [eia-nn, logit-gradient, aia-mlp, kmeans, logreg, prior]
"""
TALK = """
name: talk
task: dialogues
model: tiny-gpt2
limit: 24
record: {examples: 16}
train: {epochs: 1, batch_size: 8, max_length: 40}
defenses: [none: {head: vendor}, sap: {eta: 100, head: customer}, none]
attacks: [eia-nn, token-gradient]
"""
SAME = ["metric", "success", "units", "raw", "view", "told", "channel", "curve"]


def kept(folder, suite, twins=True):
    """Records of a suite whose transcripts are kept in `sent`, and its task."""
    (folder / "sent.yaml").write_text(suite)
    plan = make_plan(load_suite(str(folder / "sent.yaml")), twins=twins)
    records = Runner(plan, Store(folder / "records"), Reporter(), folder / "sent").run()
    (task,) = plan.tasks.values()
    return records, task.limited(plan.suite.limit, Seeds.of(0).data)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Records and transcripts of one suite by defense, and the truth about both as a table."""
    folder = tmp_path_factory.mktemp("cells")
    records, task = kept(folder, SUITE)
    rows = [
        {"split": name, "text": text, "label": label}
        | {a: task.attributes[a][values[i]] for a, values in split.attributes.items()}
        for name, split in task.splits.items()
        if name in ("train", "dev")
        for i, (text, label) in enumerate(zip(split.texts, split.labels, strict=True))
    ]
    pd.DataFrame(rows).to_csv(folder / "truth.csv", index=False)
    by_name = {r.cell.defense.name: (r, folder / "sent" / r.key) for r in records}
    return by_name, folder / "truth.csv", pd.DataFrame(rows)


def scores(record_leaks):
    """What decides a score, by attack, goal, view and attribute."""
    return {
        (leak["attack"]["name"], leak["goal"], leak["view"], leak["attribute"], leak["metric"]): [
            leak[name] for name in SAME
        ]
        for leak in record_leaks
        if leak["status"] == "ok" and leak["attack"]["name"] != "prior"
    }


@pytest.mark.parametrize("defense", ["sap", "p3eft"])
def test_a_recorded_transcript_scores_as_the_run_that_recorded_it(
    leakboard, cells, tmp_path, defense
):
    by_name, truth, _ = cells
    record, folder = by_name[defense]
    attributes = [w for a in ("gender", "age_band") for w in ("--attribute", a)]
    names = [
        w
        for a in ("eia-nn", "logit-gradient", "aia-mlp", "kmeans", "logreg")
        for w in ("--attack", a)
    ]
    out = tmp_path / "scores.json"
    code, printed, err = leakboard(
        "attack", folder, "--model", "tiny-bert", "--truth", truth, *attributes, *names,
        "--device", "cpu", "--out", out,
    )  # fmt: skip
    assert code == 0, err
    theirs = scores(json.loads(out.read_text())["leaks"])
    ours = scores([leak.model_dump(mode="json") for leak in record.leaks])
    assert theirs == ours
    assert len(ours) > 2
    leak = leak_of(record, "eia-nn")
    assert f"{leak.success.value:.3f} [{leak.success.low:.3f}, {leak.success.high:.3f}]" in printed


def test_the_transcript_of_a_language_model_scores_as_the_run_that_recorded_it(leakboard, tmp_path):
    records, task = kept(tmp_path, TALK, twins=False)
    for record in records:
        assert record.status == "ok", record.reason
        # A model that is released sends nothing about other texts.
        names = ("train", "dev") if record.leaks[0].status == "ok" else ("train",)
        rows = [{"split": name, "text": text} for name in names for text in task.split(name).texts]
        pd.DataFrame(rows).to_parquet(tmp_path / "truth.parquet")
        out = tmp_path / f"{record.key}.json"
        code, _, err = leakboard(
            "attack", tmp_path / "sent" / record.key, "--model", "tiny-gpt2", "--device", "cpu",
            "--truth", tmp_path / "truth.parquet", "--out", out,
        )  # fmt: skip
        assert code == 0, err
        found = json.loads(out.read_text())["leaks"]
        ours = scores([leak.model_dump(mode="json") for leak in record.leaks])
        names = {leak.attack.name for leak in record.leaks}
        assert scores(leak for leak in found if leak["attack"]["name"] in names) == ours
        assert {leak["status"] for leak in found} <= {"ok", "skipped"}
        classes = {leak["reason"] for leak in found if leak["attack"]["name"] == "logit-gradient"}
        assert classes <= {
            "the transcript has no class labels",
            "the recorded system does not send logit-gradients",
        }
    vendor, customer, released = (scores(r.model_dump(mode="json")["leaks"]) for r in records)
    assert {(name, goal) for name, goal, *_ in vendor} == {
        ("eia-nn", "inversion"), ("token-gradient", "inversion"), ("token-gradient", "label"),
    }  # fmt: skip
    assert vendor.keys() == customer.keys()
    assert not released


def test_without_truth_there_are_guesses_and_no_scores(leakboard, cells, tmp_path):
    by_name, _, rows = cells
    record, folder = by_name["sap"]
    out = tmp_path / "guesses.json"
    code, printed, err = leakboard(
        "attack", folder, "--model", "tiny-bert", "--out", out, "--auxiliary", "reviews"
    )
    assert code == 0, err
    content = json.loads(out.read_text())
    assert not any(leak["success"] for leak in content["leaks"])
    guess = next(g for g in content["guesses"] if g["attack"]["name"] == "logit-gradient")
    labels = rows[rows["split"] == "train"]["label"].to_numpy()[guess["rows"]]
    assert (
        np.mean(labels == guess["values"])
        == leak_of(record, "logit-gradient", goal="label").success.value
    )
    assert {g["attack"]["name"] for g in content["guesses"]} >= {"eia-nn", "prior"}
    assert (
        "skipped: aia-mlp, attributes: it must know a share of the attributes: --truth" in printed
    )


def test_what_does_not_apply_is_listed_with_its_reason(leakboard, cells, tmp_path):
    by_name, _, rows = cells
    words = ["--attack", "eia-map", "--attack", "unmix", "--attack", "eia-nn", "--attack", "prior"]
    rows.drop(columns=["text"]).to_csv(tmp_path / "labels.csv", index=False)
    code, printed, _ = leakboard(
        "attack",
        by_name["sap"][1],
        "--model",
        "tiny-bert",
        "--truth",
        tmp_path / "labels.csv",
        *words,
    )
    assert code == 0
    assert "eia-map, inputs: it must know public text" in printed
    assert "--defense" in printed
    assert "unmix, labels: the recorded system does not send activations or gradients" in printed
    assert "eia-nn, inputs: the truth has no column 'text'" in printed
    assert "prior, inputs: it must know public text of the customer's kind: --auxiliary" in printed


def test_a_mechanism_is_granted_where_it_is_named(leakboard, cells, tmp_path):
    by_name, truth, _ = cells
    words = ["--attack", "eia-learned: {epochs: 1}", "--auxiliary", "reviews"]
    code, printed, err = leakboard(
        "attack", by_name["sap"][1], "--model", "tiny-bert", "--truth", truth, *words,
        "--defense", "sap: {eta: 50}",
    )  # fmt: skip
    assert code == 0, err
    assert "token accuracy" in printed


def test_what_was_dropped_stops_the_attacks_that_read_it(leakboard, tiny, tmp_path):
    lengths = np.array([2, 2])
    vectors = np.zeros((4, tiny.width), np.float32)
    message = Message(
        Channel.REPRESENTATIONS, "train", 0, "customer", "vendor", 0, np.arange(2), vectors, lengths
    )
    transcript = Transcript((message,), {Channel.REPRESENTATIONS: 99})
    write_transcript(transcript, tmp_path / "sent", tiny, 0, 2)
    out = ["--out", tmp_path / "guesses.json", "--attack", "eia-nn"]
    code, printed, _ = leakboard("attack", tmp_path / "sent", "--model", "tiny-bert", *out)
    assert code == 0
    assert "the transcript is incomplete: representations was dropped from it" in printed


def test_the_example_in_the_documentation_writes_a_folder_that_can_be_attacked(
    leakboard, minilm, tmp_path, monkeypatch
):
    text = README.read_text("utf-8")
    example = re.search(r"```python\n(from pathlib.*?)```", text, re.DOTALL)[1]
    ids = np.arange(2000, 2016)
    vectors, lengths = minilm.embeddings[ids].numpy(), np.array([3, 4, 5, 2, 2])
    monkeypatch.chdir(tmp_path)
    exec(example, {"recorded": [(np.arange(5), vectors, lengths)] * 2})
    out = ["--out", "guesses.json", "--attack", "eia-nn"]
    assert leakboard("attack", "sent", "--model", "minilm", *out)[0] == 0
    (guess,) = json.loads(Path("guesses.json").read_text())["guesses"]
    assert guess["values"] == np.stack([ids, ids], 1).tolist()


def truth_with(rows, path, **changes):
    rows.assign(**changes).to_csv(path, index=False)
    return path


MISTAKES = {
    "no transcript": (lambda f, t, d, r: [d, "--truth", t], "not a transcript"),
    "another model": (
        lambda f, t, d, r: [f, "--truth", t, "--model", "tiny-roberta"],
        "was recorded with the model 'tiny-bert'",
    ),
    "nothing to do": (lambda f, t, d, r: [f], "give --truth FILE"),
    "unknown attack": (lambda f, t, d, r: [f, "--truth", t, "--attack", "eia-n"], "'eia-nn'?"),
    "an attack that is no YAML": (
        lambda f, t, d, r: [f, "--truth", t, "--attack", "sap: {"],
        "'name: {parameter: value}'",
    ),
    "a parameter nobody knows": (
        lambda f, t, d, r: [f, "--truth", t, "--defense", "sap: {etta: 3}"],
        "unknown parameter 'etta'",
    ),
    "several mechanisms": (
        lambda f, t, d, r: [f, "--truth", t, "--defense", "sap: {eta: [1, 2]}"],
        "one setting",
    ),
    "an attribute without truth": (
        lambda f, t, d, r: [f, "--out", d / "x.json", "--attribute", "gender"],
        "give --truth FILE as well",
    ),
    "an attribute that is no column": (
        lambda f, t, d, r: [f, "--truth", t, "--attribute", "agee"],
        "no column 'agee'",
    ),
    "a truth that is not there": (lambda f, t, d, r: [f, "--truth", d / "x.csv"], "no such file"),
    "a truth without columns to score by": (
        lambda f, t, d, r: [f, "--truth", truth_with(r[["split"]], d / "t.csv")],
        "nothing can be scored",
    ),
    "too few lines": (
        lambda f, t, d, r: [f, "--truth", truth_with(r[r["split"] == "train"][:9], d / "t.csv")],
        "one line for every row",
    ),
    "a split that was not sent": (
        lambda f, t, d, r: [f, "--truth", truth_with(r, d / "t.csv", split="test")],
        "only train, dev",
    ),
    "lines in another order": (
        lambda f, t, d, r: [f, "--truth", truth_with(r[::-1], d / "t.csv")],
        "in the order of the transcript's rows",
    ),
    "labels that are names": (
        lambda f, t, d, r: [f, "--truth", truth_with(r, d / "t.csv", label="good")],
        "there are 1 different labels (good), but the transcript has 2 classes. Give class numbers, in the order of",
    ),
    "an unknown task": (
        lambda f, t, d, r: [f, "--truth", t, "--auxiliary", "review"],
        "Did you mean 'reviews'?",
    ),
    "a file that cannot be written": (
        lambda f, t, d, r: [f, "--attack", "eia-nn", "--out", d / "nowhere" / "x.json"],
        "cannot be written",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_with_code_2_and_says_what_to_do(leakboard, cells, tmp_path, mistake):
    by_name, truth, rows = cells
    words, advice = MISTAKES[mistake]
    words = words(by_name["sap"][1], truth, tmp_path, rows)
    model = [] if "--model" in words else ["--model", "tiny-bert"]
    code, out, err = leakboard("attack", *words, *model)
    assert code == 2, out + err
    assert advice in err
    assert "Traceback" not in err
