"""What a Recorder cannot record: refused early, with what was expected."""

from __future__ import annotations

import re
import warnings

import pytest
import torch
from loops import Pooled, classifier, padded, sentences, train
from torch import nn

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.exchange.manifest import MANIFEST
from leakboard.bench.external.recorder import Recorder

IDS, LABELS = sentences()
pytestmark = pytest.mark.usefixtures("from_nowhere")


def three_rows(out):
    model = classifier()
    with Recorder(model, 0, out) as recorder:
        recorder.about([0, 1, 2])
        model(**padded(IDS))


def rows_of_floats(out):
    with Recorder(classifier(), 0, out) as recorder:
        recorder.about(torch.rand(3))


def raising(mistake):
    """Calls what is wrong, in a folder that is not there yet."""

    def run(out):
        model = classifier()
        with Recorder(**{"model": model, "out": out} | mistake(model, out)) as recorder:
            train(recorder._model, IDS, LABELS)

    return run


def twice(out):
    model = classifier()
    recorder = Recorder(model, 0, out)
    with recorder:
        train(model, IDS, LABELS)
    with recorder:
        pass


def nested(out):
    model = classifier()
    with Recorder(model, 0, out), Recorder(model.bert, 1, out / "inner"):
        pass


def blind(out):
    with Recorder(classifier(), 0, out):
        pass


def evaluated(out):
    model = classifier().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is said at the first pass as well
        with Recorder(model, 0, out), torch.no_grad():
            model(**padded(IDS))


def full(out):
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with Recorder(classifier(), 0, out):
        pytest.fail("training began")


def no_folder(out):
    out.write_text("a file")
    with Recorder(classifier(), 0, out):
        pytest.fail("training began")


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = classifier()

    def forward(self, **batch):
        return self.tower(**batch).logits - self.tower(**batch).logits


def siamese(out):
    model = Twice()
    with Recorder(model, 0, out):
        model(**padded(IDS))


WRONG = {
    "a name for a model": (
        lambda m, o: {"model": "bert"},
        "model: expected a transformers model",
    ),
    "no cut": (
        lambda m, o: {"cut": 1.5},
        "cut: expected a number, or the name of a submodule, got",
    ),
    "a truth value as the cut": (lambda m, o: {"cut": True}, "cut: expected a number"),
    "no such submodule": (
        lambda m, o: {"cut": "bert.encoder.layers.1"},
        "has no submodule 'bert.encoder.layers.1'. Nearest: 'bert.encoder.layer.1'",
    ),
    "a cut too deep": (lambda m, o: {"cut": 3}, "3 blocks, so the deepest cut is 2"),
    "a number for a module without blocks": (
        lambda m, o: {"model": Pooled()},
        "Pooled contains no transformers model; name the submodule",
    ),
    "a folder of another type": (lambda m, o: {"out": 3}, "out: expected the path of a folder"),
    "an unknown base": (lambda m, o: {"base": "miniln"}, "base: model 'miniln' is neither"),
    "another base": (lambda m, o: {"base": "tiny-bert"}, "'tiny-bert' has 2 blocks"),
    "a base where none can be": (
        lambda m, o: {"cut": "bert.encoder.layer.2", "base": "tiny-bert"},
        "neither the word embeddings nor a block, and sends one vector per token",
    ),
    "no holder": (
        lambda m, o: {"head": "me"},
        "head: expected 'vendor' or 'customer', got str 'me'",
    ),
    "a holder of no output layer over words": (
        lambda m, o: {"head": "customer"},
        "is not a causal language model",
    ),
    "no budget": (lambda m, o: {"record": 5}, "record: expected a Recording, got int 5"),
    "a split twice": (lambda m, o: {"split": ("a", "a")}, "split: expected one name, or two"),
    "texts as examples": (lambda m, o: {"examples": "train.csv"}, "examples must be sequences"),
    "examples of floats": (
        lambda m, o: {"examples": [[0.5]]},
        "examples[0] must be whole numbers [n], got list of float64 [1]",
    ),
    "a dataset without ids": (
        lambda m, o: {"examples": {"text": ["a"]}},
        "examples: no column 'input_ids'; it has text",
    ),
    "other examples": (
        lambda m, o: {"examples": [[1, 2]] * 12},
        "examples: none of the 4 in the first batch is among them",
    ),
}


MISUSED = {
    "used twice": (twice, "a Recorder records once"),
    "nested": (nested, "another Recorder is recording it"),
    "nothing seen": (blind, "no pass of BertForSequenceClassification"),
    "evaluation only": (evaluated, "1 passes in evaluation mode or without gradients"),
    "a folder that holds something": (full, "is not empty; choose a new folder"),
    "a file for a folder": (no_folder, "cannot be written"),
    "rows for other examples": (three_rows, "about: got 3 rows for a pass over 12 examples"),
    "rows that are none": (rows_of_floats, "rows must be whole numbers [n], got torch.float32 [3]"),
    "an encoder that runs twice": (siamese, "one pass runs BertModel twice"),
}


@pytest.mark.parametrize("case", [*WRONG, *MISUSED])
def test_what_cannot_be_recorded_is_refused_with_what_was_expected(out, case):
    run, message = MISUSED[case] if case in MISUSED else (raising(WRONG[case][0]), WRONG[case][1])
    with pytest.raises(LeakboardError, match=re.escape(message)):
        run(out)
    kept = case in ("used twice", "a folder that holds something", "a file for a folder")
    assert out.exists() == kept


def test_a_model_can_be_recorded_again_after_an_error(tmp_path):
    model = classifier()
    with (
        pytest.raises(LeakboardError, match="nothing was recorded"),
        Recorder(model, 0, tmp_path / "a"),
    ):
        pass
    with Recorder(model, 0, tmp_path / "b"):
        train(model, IDS, LABELS)
    assert (tmp_path / "b" / MANIFEST).exists()


def test_a_model_of_nobody_knows_which_is_said_on_entry(out):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (
            pytest.raises(UserWarning, match="Name it with base=: a name such as 'minilm'"),
            Recorder(classifier(), 0, out),
        ):
            pytest.fail("training began")
