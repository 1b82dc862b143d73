"""A causal training of anybody: gradients of every token are recorded, and `token-gradient` reads its labels."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch
import transformers
from causal_loops import assert_same, batch_of, in_order, plain, quiet, settings, sgd
from model_folders import tiny_folder

from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.contracts.cell import Recording
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.exchange.transcripts import read_transcript, write_transcript
from leakboard.bench.external.audit import Request, attack_folder
from leakboard.bench.external.recorder import Recorder

TEXTS = [
    "my order is late",
    "where is it now, please?",
    "thanks a lot",
    "the parcel came broken and wet",
    "call me",
]
pytestmark = pytest.mark.usefixtures("from_nowhere")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("model") / "m", "tiny-gpt2")


@pytest.fixture(scope="module")
def base(folder):
    return load_backbone(str(folder))


def ids_of(base, bos=False, eos=False):
    first, last = [base.tokenizer.bos_token_id] * bos, [base.tokenizer.eos_token_id] * eos
    return [[*first, *ids, *last] for ids in base.tokenizer(TEXTS)["input_ids"]]


def loaded(folder):
    with quiet():
        still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        return transformers.AutoModelForCausalLM.from_pretrained(folder, **still).train()


def recorded(folder, out, ids, *, head=None, learnt=lambda n: 1, **how):
    model = loaded(folder)
    with Recorder(model, 0, out, examples=ids, base=str(folder), head=head, **how):
        plain(model, ids, learnt=learnt)


def successes(base, out, truth, *names):
    with quiet():
        found = attack_folder(out, base, Request(attacks=[*names, "token-gradient"], truth=truth))
    assert all(leak.status == "ok" for leak in found.leaks), found.leaks
    return {(leak.attack.name, leak.goal): leak.success for leak in found.leaks}


@pytest.mark.parametrize("head", ["vendor", "customer"])
@pytest.mark.parametrize("ends", [(False, False), (True, False), (False, True)], ids=str)
def test_the_labels_of_a_causal_loop_are_read_however_texts_begin_and_end(
    base, folder, out, head, ends
):
    recorded(folder, out, ids_of(base, *ends), head=head)
    manifest, seen = read_transcript(out, base)
    assert (manifest.classes, manifest.training.head) == (0, head)
    channel = Channel.LOGIT_GRADIENTS if head == "vendor" else Channel.GRADIENTS
    assert seen.rounds(channel) == [0]
    assert seen.rounds(Channel.REPRESENTATIONS) == [0, 1]
    found = successes(base, out, {"text": TEXTS})
    label = found["token-gradient", "label"]
    assert label.value == 1 > label.chance


def test_a_trainer_on_answers_alone_gives_its_answers_away(base, folder, out, tmp_path):
    pytest.importorskip("accelerate", reason="a Trainer needs it")
    datasets = pytest.importorskip("datasets", reason="needs the extra 'hub'")
    ids = ids_of(base)
    labels = [[*[-100] * (len(row) // 2), *row[len(row) // 2 :]] for row in ids]
    data = datasets.Dataset.from_dict({"input_ids": ids, "labels": labels})
    with quiet():
        trainer = transformers.Trainer(
            loaded(folder),
            settings(transformers.TrainingArguments, tmp_path / "t"),
            lambda rows: batch_of([r["input_ids"] for r in rows], lambda n: n // 2),
            data,
        )
        with Recorder(trainer, 0, out, base=str(folder)):
            trainer.train()
    found = successes(base, out, data, "eia-nn")
    assert found["token-gradient", "label"].value == 1
    assert found["eia-nn", "inversion"].value == 1


def test_gradients_of_every_token_stop_at_the_megabytes_and_the_rest_is_whole(base, folder, out):
    ids = [row * 4 for row in ids_of(base)]
    recorded(folder, out, ids, record=Recording(megabytes=1))
    manifest, _ = read_transcript(out, base)
    size = 4 * len(base.embeddings)
    fitting, room = 0, 0.75 * 2**20
    for row in ids:
        if size * len(row) <= room:
            room -= size * len(row)
            fitting += 1
    assert 0 < fitting < len(ids)
    assert manifest.splits == {"train": fitting}
    assert manifest.left_out == {
        "examples whose gradients of every token exceed the megabytes": len(ids) - fitting
    }
    assert not manifest.dropped


@pytest.mark.parametrize("kind", ["padding-free", "packed", "completion-only"])
def test_the_trainer_of_trl_is_recorded_as_the_plain_loop(base, folder, out, tmp_path, kind):
    trl = pytest.importorskip("trl", reason="this loop needs trl")
    datasets = pytest.importorskip("datasets", reason="needs the extra 'hub'")
    ids = ids_of(base)
    learnt = (lambda n: n // 2) if kind == "completion-only" else (lambda n: 1)
    labels = [[*[-100] * learnt(len(row)), *row[learnt(len(row)) :]] for row in ids]
    how = {"padding-free": {"padding_free": True, "max_length": None}, "completion-only": {}}
    with quiet():
        model = loaded(folder)
        trainer = in_order(
            trl.SFTTrainer(
                model,
                settings(
                    trl.SFTConfig,
                    tmp_path / "t",
                    **how.get(kind, {"packing": True, "max_length": 9}),
                ),
                train_dataset=datasets.Dataset.from_dict({"input_ids": ids, "labels": labels}),
                processing_class=base.tokenizer,
                optimizers=(sgd(model), None),
            )
        )
        trainer.lr_scheduler = torch.optim.lr_scheduler.ConstantLR(trainer.optimizer, 1)
        with Recorder(trainer, 0, out, base=str(folder)):
            trainer.train()
    found = successes(base, out, trainer.train_dataset, "eia-nn")
    assert found["token-gradient", "label"].value == found["eia-nn", "inversion"].value == 1
    manifest = read_transcript(out, base)[0]
    assert manifest.splits == {"train": len(ids)}
    assert manifest.training.packing == (kind != "completion-only")
    if kind != "packed":  # which makes other batches
        recorded(folder, tmp_path / "plain", ids, head="customer", learnt=learnt)
        assert_same(out, tmp_path / "plain")


TRUTHS = {
    "padding": (
        lambda ids: {
            "input_ids": [[*row, 0, 0] for row in ids],
            "attention_mask": [[*[1] * len(row), 0, 0] for row in ids],
        },
        "",
    ),
    "arrays": (lambda ids: {"input_ids": [np.array(row) for row in ids]}, ""),
    "packs": (
        lambda ids: {
            "input_ids": [[*ids[0], *ids[1]], [*chain(*ids[2:])]],
            "seq_lengths": [[len(ids[0]), len(ids[1])], [len(r) for r in ids[2:]]],
        },
        "",
    ),
    "texts": (lambda ids: {"input_ids": [str(row) for row in ids]}, "must hold lists of token ids"),
    "other lengths": (
        lambda ids: {"input_ids": ids, "labels": [row[1:] for row in ids]},
        "labels, the truth, data row 1",
    ),
    "unknown ids": (
        lambda ids: {"input_ids": [[10**6, *row[1:]] for row in ids]},
        "input_ids: ids of 'm' are from 0 to",
    ),
    "another order": (lambda ids: {"input_ids": ids[::-1]}, "or give the token ids of each row"),
    "an empty example": (lambda ids: {"input_ids": [[], *ids[1:]]}, "an example without a token"),
}


@pytest.fixture(scope="module")
def wire(base, folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("ids") / "wire"
    with quiet():
        recorded(folder, out, ids_of(base))
    return out


@pytest.mark.parametrize("case", TRUTHS)
def test_the_truth_may_be_token_ids_as_a_trainer_has_them(base, wire, case):
    make, refusal = TRUTHS[case]
    truth = make(ids_of(base))
    if refusal:
        with pytest.raises(LeakboardError, match=refusal):
            successes(base, wire, truth)
    else:
        assert successes(base, wire, truth)["token-gradient", "label"].value == 1


def test_attacks_that_compute_with_adapters_skip_where_their_shape_is_not_known(base, tmp_path):
    """A transcript of an API without the settings of its adapters: never those that happen to be the defaults."""
    rows, where = np.arange(4), ("train", 0, "customer", "vendor", 0)
    tokens = Message(Channel.TOKENS, *where, rows, np.arange(8), np.full(4, 2))
    answers = Message(Channel.ACTIVATIONS, *where, rows, np.ones((4, base.width), np.float32))
    written = write_transcript(Transcript((tokens, answers)), tmp_path / "w", base, 0, 2)
    assert written.train is None
    request = Request(attacks=["activation-delta"], truth={"label": [0, 1, 0, 1]})
    (leak,) = attack_folder(tmp_path / "w", base, request).leaks
    assert (leak.status, "how the adapters were trained" in leak.reason) == ("skipped", True)
