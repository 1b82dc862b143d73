"""Which examples and rounds of a training loop are recorded, also where it ends before its time."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch
from loops import classifier, hooks, padded, sent, sentences, train
from torch import nn

from leakboard.bench.contracts.cell import Recording
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.transcripts import read_transcript
from leakboard.bench.external.recorder import Recorder

SENT, TOKENS = Channel.REPRESENTATIONS, Channel.TOKENS
LOGITS, LOGIT_GRADIENTS = Channel.LOGITS, Channel.LOGIT_GRADIENTS
CUT_GRADIENTS = Channel.CUT_GRADIENTS
IDS, LABELS = sentences()
pytestmark = pytest.mark.usefixtures("from_nowhere")


def test_rows_are_those_of_the_truth_and_every_round_holds_each_once(out):
    ids, labels = [*IDS, IDS[3]], torch.cat([LABELS, LABELS[3:4]])  # one example is there twice
    model = classifier()
    with Recorder(model, 0, out, examples=ids, tokens=True):
        train(model, ids, labels, epochs=3)
    rounds = sent(out, TOKENS)
    assert len(rounds) == 3
    for found in rounds:
        assert {row: part.tolist() for row, part in found.items()} == dict(enumerate(ids))


DATASETS = {
    "lists": lambda: IDS,
    "tensors": lambda: [torch.tensor(row, dtype=torch.int32) for row in IDS],
    "a padded batch": lambda: padded(IDS),
    "a padded batch of lists": lambda: {k: v.tolist() for k, v in padded(IDS, "left").items()},
    "dicts": lambda: [{"input_ids": row, "label": 0} for row in IDS],
    "a dataset of torch": lambda: OneByOne(),
    "a dataset": lambda: datasets().Dataset.from_dict({"input_ids": IDS}),
    "a column": lambda: datasets().Dataset.from_dict({"input_ids": IDS})["input_ids"],
    "packs of trl": lambda: {
        "input_ids": [[*chain(*IDS[:5])], [*chain(*IDS[5:])]],
        "seq_lengths": [[*map(len, IDS[:5])], [*map(len, IDS[5:])]],
    },
    "a padded dataset": lambda: datasets().Dataset.from_dict(
        {k: v.tolist() for k, v in padded(IDS).items()}
    ),
}


class OneByOne(torch.utils.data.Dataset):
    def __len__(self):
        return len(IDS)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(IDS[i])}


def datasets():
    return pytest.importorskip("datasets", reason="needs the extra 'hub'")


@pytest.mark.parametrize("kind", DATASETS)
def test_the_training_set_may_be_given_in_any_form(out, kind):
    model = classifier()
    with Recorder(model, 0, out, examples=DATASETS[kind](), tokens=True):
        train(model, IDS, LABELS, epochs=1)
    (found,) = sent(out, TOKENS)
    assert {row: part.tolist() for row, part in found.items()} == dict(enumerate(IDS))


def test_without_the_training_set_examples_are_numbered_as_they_appear(out):
    model = classifier()
    with Recorder(model, 0, out, tokens=True):
        train(model, IDS, LABELS)
    torch.manual_seed(5)
    order = torch.randperm(12).tolist()  # of the loop's first epoch
    for found in sent(out, TOKENS):
        assert [found[row].tolist() for row in range(12)] == [IDS[i] for i in order]


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_changed_ids_are_about_the_rows_that_are_named(out, kind):
    model = classifier()
    with Recorder(model, 0, out, examples=IDS, tokens=True) as recorder:
        for rows in torch.arange(12).flip(0).split(5):
            recorder.about(kind(rows.tolist()))
            batch = padded([[9] * len(IDS[i]) for i in rows.tolist()])
            model(**batch, labels=LABELS[rows]).loss.backward()
    (found,) = sent(out, TOKENS)
    assert {row: len(part) for row, part in found.items()} == dict(enumerate(map(len, IDS)))
    assert all((part == 9).all() for part in found.values())


def test_an_unfinished_round_is_left_out_and_counted(out):
    model = classifier()
    with Recorder(model, 0, out, examples=IDS):
        train(model, IDS, LABELS)
        train(model, IDS[:5], LABELS[:5], epochs=1)
    manifest, _ = read_transcript(out)
    assert len(sent(out)) == 2
    assert manifest.left_out == {"examples in rounds that were not finished": 5}
    assert not manifest.cut_short


class Stop(Exception):
    pass


@pytest.mark.parametrize(("step", "rounds", "examples"), [(1, 1, 4), (4, 1, 12), (7, 2, 12)])
def test_a_loop_that_raises_leaves_what_was_seen_marked_as_cut_short(out, step, rounds, examples):
    model = classifier()
    was = hooks(model)

    def each(now):
        if now == step:
            raise Stop("the cat sat on the cable\nand more")

    with pytest.raises(Stop), Recorder(model, 0, out, examples=IDS):
        train(model, IDS, LABELS, epochs=3, each=each)
    manifest, _ = read_transcript(out)
    assert manifest.cut_short == "Stop: the cat sat on the cable"
    assert [len(found) for found in sent(out)] == [examples] * rounds
    assert hooks(model) == was


def test_an_error_between_forward_and_backward_drops_only_that_batch(out):
    model = classifier()

    def loss_of(output, labels):
        if loss_of.steps == 2:
            raise Stop
        loss_of.steps += 1
        return nn.functional.cross_entropy(output.logits, labels)

    loss_of.steps = 0
    with pytest.raises(Stop), Recorder(model, 0, out, examples=IDS):
        train(model, IDS, LABELS, loss_of=loss_of)
    manifest, _ = read_transcript(out)
    assert manifest.splits == {"train": 8}
    assert manifest.left_out == {"examples in rounds that were not finished": 4}


def test_an_error_within_a_pass_leaves_no_hook_and_the_next_pass_is_recorded(out):
    model = classifier()
    was = hooks(model)
    with Recorder(model, 1, out):
        handle = model.bert.encoder.layer[1].register_forward_pre_hook(lambda m, a: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(**padded(IDS))
        handle.remove()
        train(model, IDS, LABELS, epochs=1)
    assert hooks(model) == was
    (found,) = sent(out)
    assert len(found) == 12


def test_evaluation_is_recorded_only_as_a_split_of_its_own(tmp_path):
    for name, split in (("without", "train"), ("with", ("train", "dev"))):
        model = classifier()

        def evaluate(step, model=model):
            if step % 3 == 2:
                model.eval()
                with torch.no_grad():
                    model(**padded(IDS[:5]))
                model.train()

        with Recorder(model, 0, tmp_path / name, split=split, examples=IDS):
            train(model, IDS, LABELS, each=evaluate)
    manifest, _ = read_transcript(tmp_path / "without")
    assert manifest.splits == {"train": 12}
    assert manifest.left_out == {"passes in evaluation mode or without gradients": 2}
    manifest, seen = read_transcript(tmp_path / "with")
    assert manifest.splits == {"dev": 5, "train": 12}
    assert not manifest.left_out
    assert seen.rounds(SENT, "dev") == [0, 1]
    assert LOGIT_GRADIENTS not in {m.channel for m in seen.messages if m.split == "dev"}


def test_a_loop_that_forgets_to_leave_evaluation_mode_is_recorded_all_the_same(out):
    model = classifier().eval()
    with Recorder(model, 0, out, examples=IDS):
        train(model, IDS, LABELS)
        model(**padded(IDS))  # never differentiated
    manifest, seen = read_transcript(out)
    assert manifest.left_out == {"passes in evaluation mode or without gradients": 1}
    assert len(sent(out)) == 2
    assert seen.channels == {SENT, LOGITS, LOGIT_GRADIENTS, CUT_GRADIENTS}


def test_only_so_many_examples_are_recorded_and_drawn_over_all_of_them(out):
    model = classifier()
    with Recorder(model, 0, out, examples=IDS, record=Recording(examples=5)):
        train(model, IDS, LABELS)
    first, second = sent(out)
    assert list(first) == list(second)
    assert len(first) == 5
    assert list(first) != list(range(5))


def test_what_exceeds_the_megabytes_is_dropped_and_flagged(out):
    model = classifier(hidden_size=1024)
    with Recorder(model, 0, out, record=Recording(megabytes=1)):
        train(model, IDS, LABELS, epochs=8)
    manifest, _ = read_transcript(out)
    assert manifest.dropped[SENT] > 0
    assert LOGITS not in manifest.dropped
