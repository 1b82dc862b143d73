"""From a training loop of someone else to what attacks find: recorded, written, read, attacked, scored."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from loops import classifier, padded, sentences, train
from paths import README
from torch import nn

from leakboard.bench.backbones.loading import model_folder
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.exchange.transcripts import read_transcript, write_transcript
from leakboard.bench.external.audit import Request, attack_folder
from leakboard.bench.external.recorder import Recorder
from leakboard.bench.tasks.reviews import reviews

N = 48
NAMES = np.array(["negative", "positive"])


@pytest.fixture(scope="module")
def texts():
    split = reviews().splits["train"]
    return list(split.texts[:N]), torch.tensor(split.labels[:N])


@pytest.fixture(scope="module")
def encoded(minilm, texts):
    return minilm.tokenizer(texts[0])


def pretrained():
    """The embedded encoder with a fresh head, as a user of transformers loads it."""
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(model_folder("minilm"))
    return model.train()


def fine_tuned(model, ids, labels, epochs=2, size=8):
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-5)
    for _ in range(epochs):
        for rows in torch.randperm(len(ids)).split(size):
            model(**padded([ids[i] for i in rows.tolist()]), labels=labels[rows]).loss.backward()
            optimiser.step()
            optimiser.zero_grad()


def success(audit, attack):
    (leak,) = [leak for leak in audit.leaks if leak.attack.name == attack and leak.goal != "x"]
    assert leak.status == "ok", leak.reason
    return leak.success.value


@pytest.fixture(scope="module")
def wire(minilm, texts, encoded, tmp_path_factory):
    """Two epochs of plain fine-tuning of all weights."""
    out = tmp_path_factory.mktemp("recorded") / "wire"
    model = pretrained()
    with Recorder(model, cut=0, out=out, examples=encoded, base="minilm"):
        fine_tuned(model, encoded["input_ids"], texts[1])
    return out


def truths(texts, kind, tmp_path):
    words, labels = texts
    if kind == "a file of names":
        pd.DataFrame({"text": words, "label": NAMES[labels]}).to_csv(
            tmp_path / "t.csv", index=False
        )
        return tmp_path / "t.csv"
    if kind == "a frame":
        return pd.DataFrame({"text": words, "label": labels.numpy()})
    return {"text": words, "label": labels}  # columns, one of them a tensor


@pytest.mark.parametrize("kind", ["a file of names", "a frame", "columns"])
def test_a_plain_loop_gives_its_tokens_and_labels_away(minilm, texts, wire, tmp_path, kind):
    request = Request(attacks=["eia-nn", "logit-gradient"], truth=truths(texts, kind, tmp_path))
    found = attack_folder(wire, minilm, request)
    assert success(found, "eia-nn") >= 0.99
    assert success(found, "logit-gradient") == 1


def shuffled(values):
    return [values[i] for i in np.random.default_rng(0).permutation(len(values))]


def summary_of(folder, minilm, **truth):
    return attack_folder(folder, minilm, Request(attacks=["logit-gradient"], truth=truth)).summary


def test_a_truth_without_texts_is_not_checked_and_the_result_says_so(minilm, texts, wire):
    labels = NAMES[texts[1]]
    found = summary_of(wire, minilm, label=shuffled(labels))
    assert found[0].startswith("No attack is shown")
    assert found[3].startswith("It could not be checked whether the lines")
    assert found[4] == "Labels are numbered in sorted order: negative = 0, positive = 1."
    found = summary_of(wire, minilm, text=texts[0], label=labels)
    assert not [sentence for sentence in found if "lines" in sentence]


@pytest.mark.parametrize("given", [True, False], ids=["examples", "in order of appearance"])
def test_ids_of_one_length_in_another_order_are_refused_and_texts_are_doubted(
    minilm, texts, tmp_path, given
):
    words = [text for text in texts[0] if len(minilm.tokenizer(text)["input_ids"]) >= 8][:12]
    ids, labels = minilm.tokenizer(words, truncation=True, max_length=8)["input_ids"], texts[1][:12]
    model, folder = pretrained(), tmp_path / "wire"
    with Recorder(model, 0, folder, examples=ids if given else None, base="minilm"):
        model(**padded(ids), labels=labels).loss.backward()
    assert list(read_transcript(folder)[0].training.order) == ["train"]
    for truth in ({"input_ids": ids}, {"text": words}):
        found = summary_of(folder, minilm, **truth, label=labels)
        assert found[0] == "The provider can read your labels."
        assert not [sentence for sentence in found if "order" in sentence]
    with pytest.raises(LeakboardError, match=r"ids of train are not those .* in the order"):
        summary_of(folder, minilm, input_ids=shuffled(ids), label=labels)
    found = summary_of(folder, minilm, text=shuffled(words), label=labels)
    assert found[-1].startswith("The truth's texts have other token ids than the recording.")


def test_a_recording_without_the_digest_is_still_attacked(minilm, texts, wire, tmp_path):
    for path in wire.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = json.loads((tmp_path / "manifest.json").read_text())
    del content["training"]["order"]
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    found = summary_of(tmp_path, minilm, text=texts[0], label=texts[1])
    assert found[0] == "The provider can read your labels."


def test_examples_that_the_owner_names_have_no_digest(minilm, encoded, tmp_path):
    model, ids = pretrained(), encoded["input_ids"][:4]
    with Recorder(model, 0, tmp_path / "wire", base="minilm") as recorder:
        recorder.about([3, 2, 1, 0])
        model(**padded(ids)).logits.sum().backward()
    assert recorder.manifest.training.order is None


def test_the_model_from_which_it_was_loaded_is_the_base(minilm, texts, encoded, wire, tmp_path):
    model = pretrained()
    with Recorder(model, 0, tmp_path / "wire", examples=encoded):
        model(**padded(encoded["input_ids"][:2])).logits.sum().backward()
    by_default, by_name = (read_transcript(f, minilm)[0] for f in (tmp_path / "wire", wire))
    assert by_default.model_hash == by_name.model_hash == minilm.hash
    assert by_name.model == "minilm"


def test_behind_a_block_the_search_finds_the_tokens(minilm, texts, encoded, tmp_path):
    model, three = pretrained().eval(), encoded["input_ids"][:3]
    with Recorder(model, 1, tmp_path / "wire", examples=three, base="minilm"):
        model(**padded(three), labels=texts[1][:3]).loss.backward()
    truth = {"text": texts[0][:3]}
    found = attack_folder(tmp_path / "wire", minilm, Request(attacks=["eia-optimise"], truth=truth))
    assert success(found, "eia-optimise") >= 0.95


def test_a_defense_of_ones_own_is_attacked_as_it_is(minilm, texts, encoded, tmp_path):
    """Noise on the word vectors, by a hook that the Recorder knows nothing of."""
    ids, labels = encoded["input_ids"][:12], texts[1][:12]
    found: dict[float, float] = {}
    for scale in (0.01, 0.4):
        model, drawn, out = pretrained(), [], tmp_path / str(scale)

        def noise(module, args, output, drawn=drawn, scale=scale):
            drawn.append(output + scale * torch.randn_like(output))
            return drawn[-1]

        with Recorder(model, 0, out, examples=ids, base="minilm"):
            model.get_input_embeddings().register_forward_hook(noise)
            fine_tuned(model, ids, labels, epochs=1, size=12)
        _, seen = read_transcript(out)
        block = seen.collect(Channel.REPRESENTATIONS)
        (went,) = drawn
        assert {*block.values[:, 0].tolist()} <= {*went[..., 0].flatten().tolist()}
        truth = {"text": texts[0][:12]}
        audit = attack_folder(out, minilm, Request(attacks=["eia-nn"], truth=truth))
        found[scale] = success(audit, "eia-nn")
    assert found[0.01] >= 0.99
    assert found[0.4] < 0.5


class Sentences(nn.Module):
    """A sentence encoder as it is used everywhere: the mean over real tokens, then a head."""

    def __init__(self):
        super().__init__()
        self.encoder = transformers.AutoModel.from_pretrained(model_folder("minilm"))
        self.mean, self.head = nn.Identity(), nn.Linear(384, 2)

    def forward(self, input_ids, attention_mask, labels):
        states = self.encoder(input_ids, attention_mask).last_hidden_state
        weight = attention_mask[..., None]
        vectors = self.mean((states * weight).sum(1) / weight.sum(1))
        loss = nn.functional.cross_entropy(self.head(vectors), labels)
        return transformers.utils.ModelOutput(loss=loss)


def test_tokens_are_read_from_recorded_sentence_embeddings(minilm, texts, encoded, tmp_path):
    model, ids = Sentences().eval(), encoded["input_ids"]
    with Recorder(model, "mean", tmp_path / "wire", examples=ids, base="minilm"):
        model(**padded(ids), labels=texts[1]).loss.backward()
    asked = "pooled-inversion: {access: encoder, sentences: 400}"
    truth = {"text": texts[0], "label": texts[1]}
    request = Request(attacks=[asked], truth=truth, auxiliary="reviews")
    (leak,) = attack_folder(tmp_path / "wire", minilm, request).leaks
    assert (leak.status, leak.channel) == ("ok", Channel.ACTIVATIONS), leak.reason
    assert leak.success.low > leak.success.chance


def trainer_of(model, ids, labels, folder, **more):
    pytest.importorskip("accelerate", reason="a Trainer needs it")
    from datasets import Dataset

    settings = transformers.TrainingArguments(
        str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=5,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **more,
    )

    def batch(rows):
        return padded([r["input_ids"] for r in rows]) | {
            "labels": torch.tensor([r["label"] for r in rows])
        }

    data = Dataset.from_dict({"input_ids": ids, "label": labels.tolist()})
    return transformers.Trainer(model, settings, batch, data, eval_dataset=data)


@pytest.mark.parametrize(
    "more",
    [{}, {"bf16": True}, {"eval_strategy": "epoch"}, {"gradient_checkpointing": True}],
    ids=str,
)
def test_a_trainer_is_recorded_with_its_own_training_set(tmp_path, more):
    ids, labels = sentences()
    trainers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Trainers warn of, and models from nowhere
        for name in ("alone", "recorded"):
            trainer = trainer_of(classifier(), ids, labels, tmp_path / name, **more)
            transformers.set_seed(3)
            if name == "recorded":
                with Recorder(trainer, 1, tmp_path / "wire", tokens=True):
                    trainer.train()
            else:
                trainer.train()
            trainers.append(trainer)
    alone, recorded = trainers
    state = recorded.model.state_dict()
    assert all(torch.equal(v, state[k]) for k, v in alone.model.state_dict().items())
    manifest, seen = read_transcript(tmp_path / "wire")
    assert manifest.splits == {"train": 12}
    for r in (0, 1):
        block = seen.collect(Channel.TOKENS, round=r)
        assert np.concatenate(ids).tolist() == block.values.tolist()
        gradients = seen.collect(Channel.LOGIT_GRADIENTS, round=r)
        assert gradients.values.argmin(1).tolist() == labels.tolist()
        assert len(seen.collect(Channel.CUT_GRADIENTS, round=r).values) == len(block.values)


def test_without_a_public_model_only_what_needs_none_is_attacked(tiny, tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(60, 8), nn.Linear(8, 3)

        def forward(self, input_ids, attention_mask):
            return self.head(self.words(input_ids).mean(1))

    ids, labels = sentences()
    model = Own()
    with Recorder(model, "words", tmp_path / "wire", examples=ids):
        train(model, ids, labels)
    truth = {"text": ["whatever it was"] * 12, "label": labels}
    names = ["eia-nn", "logit-gradient", "prior", "kmeans"]
    request = Request(attacks=names, truth=truth, auxiliary="reviews")
    found = attack_folder(tmp_path / "wire", tiny, request)
    assert success(found, "logit-gradient") == 1
    skipped = {(leak.attack.name, leak.goal): leak.reason for leak in found.leaks if leak.reason}
    assert "the public model, which the transcript does not name" in skipped["eia-nn", "inversion"]
    assert "its token ids have no meaning" in skipped["prior", "inversion"]
    assert any(leak.status == "ok" for leak in found.leaks if leak.attack.name == "kmeans")


def test_an_attack_says_that_the_recording_was_cut_short(
    leakboard, minilm, texts, encoded, tmp_path
):
    def interrupted():
        model = pretrained()
        with Recorder(model, 0, tmp_path / "wire", examples=encoded, base="minilm"):
            model(**padded(encoded["input_ids"][:4]), labels=texts[1][:4]).loss.backward()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    pd.DataFrame({"text": texts[0]}).to_csv(tmp_path / "truth.csv", index=False)
    code, printed, err = leakboard(
        "attack", tmp_path / "wire", "--model", "minilm", "--truth", tmp_path / "truth.csv",
        "--attack", "eia-nn", "--device", "cpu", "--out", tmp_path / "out.json",
    )  # fmt: skip
    assert code == 0, err
    assert "The recording ended early (KeyboardInterrupt)" in printed
    assert json.loads(Path(tmp_path / "out.json").read_text())["cut_short"] == "KeyboardInterrupt"


def test_the_example_in_the_documentation_recovers_the_tokens(minilm, texts, tmp_path, monkeypatch):
    text = README.read_text("utf-8")
    example = re.search(r"```python\n(import leakboard as lb\n\nencoded.*?)```", text, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"text": texts[0], "label": NAMES[texts[1]]}).to_csv("train.csv", index=False)
    names = {
        "tokenizer": minilm.tokenizer,
        "texts": texts[0],
        "labels": texts[1],
        "model": pretrained(),
        "train": lambda model, encoded, labels: fine_tuned(
            model, encoded["input_ids"], labels, epochs=1, size=24
        ),
    }
    exec(example, names)
    found = {leak.attack.name: leak for leak in names["found"].leaks}
    assert found["eia-nn"].success.value >= 0.99
    assert found["logit-gradient"].success.value == 1


def test_messages_of_tensors_are_written_and_attacked(minilm, texts, tmp_path):
    """As an owner would put them together: tensors of torch, in types of their own."""
    ids = [torch.tensor(row) for row in minilm.tokenizer(texts[0][:6])["input_ids"]]
    logits = torch.zeros(6, 2)
    logits[torch.arange(6), texts[1][:6]] = -1
    messages = [
        Message(
            Channel.REPRESENTATIONS,
            "train",
            0,
            "customer",
            "vendor",
            0,
            torch.arange(6, dtype=torch.int32),
            minilm.embeddings[torch.cat(ids)].bfloat16(),
            torch.tensor([len(row) for row in ids]),
        ),
        Message(
            Channel.LOGIT_GRADIENTS, "train", 0, "customer", "vendor", 0, list(range(6)), logits
        ),
    ]
    write_transcript(Transcript(messages), tmp_path / "sent", minilm, 0, 2)
    truth = {"text": texts[0][:6], "label": texts[1][:6]}
    request = Request(attacks=["eia-nn", "logit-gradient"], truth=truth)
    found = attack_folder(tmp_path / "sent", minilm, request)
    assert success(found, "eia-nn") >= 0.99
    assert success(found, "logit-gradient") == 1
