"""Loops that hooks cannot see into: refused on entry or at the first pass, with a remedy, and nothing is written."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import torch
from causal_loops import gpt2, packed, sgd
from loops import Pooled, classifier, hooks, padded, sentences, train
from torch import nn
from torch.utils.checkpoint import checkpoint

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.exchange.transcripts import read_transcript
from leakboard.bench.external.recorder import Recorder

IDS, LABELS = sentences()
pytestmark = pytest.mark.usefixtures("from_nowhere")


class FullyShardedDataParallel(nn.Module):
    """Stands for the class of torch, which wraps models on GPUs."""

    def __init__(self, module):
        super().__init__()
        self.module = module


def trainer(model, **args):
    return SimpleNamespace(model=model, train_dataset=None, args=SimpleNamespace(**args))


def on_two_gpus(model):
    parallel = nn.DataParallel(model)
    parallel.device_ids = [0, 1]
    return parallel


def entered_late(model):
    """A copy as DataParallel makes one for each GPU."""
    replica = model._replicate_for_data_parallel()
    replica(**padded(IDS))


def compiled_within(model):
    torch.compile(model, backend="eager")(**padded(IDS))


def forward_compiled(model):
    torch.compile(model.forward, backend="eager")(**padded(IDS))


def a_part(model):
    model.bert(**padded(IDS))


def one_by_one(model):
    sum(p.square().sum() for p in model.parameters()).backward()
    sgd(model).step()


def all_recomputed(model):
    first = torch.zeros(1, requires_grad=True)
    batch = padded(IDS)
    logits = checkpoint(lambda x: model(**batch).logits + 0 * x, first, use_reentrant=True)
    logits.sum().backward()


def four_dimensions(model):
    length = padded(IDS)["input_ids"].shape[1]
    blocks = torch.ones(12, 1, length, length, dtype=torch.bool)
    model(input_ids=padded(IDS)["input_ids"], attention_mask=blocks)


def vectors_of_nobody(model):
    model(inputs_embeds=torch.randn(2, 5, 16))


def virtual_tokens_behind(model):
    words = model.get_input_embeddings()(padded(IDS)["input_ids"])
    model(inputs_embeds=torch.cat([words, torch.zeros(12, 2, 16)], 1))


WITHIN = {
    "a copy of DataParallel": (entered_late, "CUDA_VISIBLE_DEVICES=0"),
    "a model compiled in the block": (compiled_within, "without torch.compile"),
    "its forward compiled": (forward_compiled, "without torch.compile"),
    "a part of the model": (
        a_part,
        "the loop calls BertModel, a part of BertForSequenceClassification",
    ),
    "an optimiser and no pass": (one_by_one, "no pass of it was seen"),
    "reentrant checkpointing": (all_recomputed, "Give use_reentrant=False"),
    "a mask of pairs": (four_dimensions, "give position_ids that start again"),
    "virtual tokens behind the text": (virtual_tokens_behind, "in front of the text"),
    "vectors of no ids": (vectors_of_nobody, "with recorder.about(rows)"),
}
ON_ENTRY = {
    "a compiled model": (lambda m: torch.compile(m, backend="eager"), "without torch.compile"),
    "a Trainer that compiles": (lambda m: trainer(m, torch_compile=True), "torch_compile=False"),
    "two GPUs": (on_two_gpus, "CUDA_VISIBLE_DEVICES=0"),
    "a Trainer on two GPUs": (lambda m: trainer(m, n_gpu=2), "CUDA_VISIBLE_DEVICES=0"),
    "FSDP": (FullyShardedDataParallel, "without sharding"),
    "a Trainer with DeepSpeed": (lambda m: trainer(m, deepspeed="zero3.json"), "without sharding"),
}


def recorded(model, out, loop):
    with Recorder(model, 0, out):
        loop(model)
        pytest.fail("the first pass went on")


@pytest.mark.parametrize("case", ON_ENTRY)
def test_a_model_that_cannot_be_seen_is_refused_on_entry(out, case):
    wrap, remedy = ON_ENTRY[case]
    with (
        pytest.raises(LeakboardError, match=re.escape(remedy)),
        Recorder(wrap(classifier()), 0, out),
    ):
        pytest.fail("training began")
    assert not out.exists()


@pytest.mark.filterwarnings("ignore:the first pass runs without gradients")
@pytest.mark.parametrize("case", WITHIN)
def test_a_loop_that_cannot_be_seen_is_refused_at_its_first_pass(out, case):
    loop, remedy = WITHIN[case]
    model = classifier()
    was = hooks(model)
    with pytest.raises(LeakboardError, match=re.escape(remedy)) as caught:
        recorded(model, out, loop)
    assert not out.exists()
    assert not hasattr(caught.value, "__notes__")
    assert hooks(model) == was
    assert "forward" not in vars(model) | vars(model.bert)


def test_several_processes_are_refused(out, monkeypatch):
    model = classifier()

    def spread(model):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
        model(**padded(IDS))

    with pytest.raises(LeakboardError, match="--num_processes 1"):
        recorded(model, out, spread)


def test_an_optimiser_that_calls_the_model_itself_is_recorded(out):
    model = classifier()
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=1)

    def loss():
        optimiser.zero_grad()
        value = model(**padded(IDS), labels=LABELS).loss
        value.backward()
        return value

    with Recorder(model, 0, out, examples=IDS) as recorder:
        optimiser.step(loss)
    told = recorder.manifest.training
    assert (told.steps, told.accumulation, told.optimiser) == (1, 1, "LBFGS")


class Recomputing(Pooled):
    """Computes its bottom again in the backward pass."""

    def forward(self, input_ids, attention_mask, reentrant):
        h = checkpoint(self.bottom, self.words(input_ids), use_reentrant=reentrant)
        return self.head(self.pool(h.mean(1)))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_cut_in_a_part_that_is_recomputed_is_refused_where_its_gradients_are_invisible(
    out, reentrant
):
    model = Recomputing()

    def step():
        with Recorder(model, "bottom.1", out, examples=IDS):
            model(**padded(IDS), reentrant=reentrant).sum().backward()

    if not reentrant:
        step()
        assert "cut-gradients" in read_transcript(out)[1].channels
        return
    with pytest.raises(LeakboardError, match="use_reentrant=False"):
        step()


class Sometimes(nn.Module):
    """Comes to its bottom only if asked."""

    def __init__(self):
        super().__init__()
        self.bottom, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x, whole=False):
        return self.head(self.bottom(x) if whole else x)


def test_a_first_pass_that_does_not_come_to_the_cut_is_refused(out):
    model = Sometimes()
    with pytest.raises(LeakboardError, match="did not reach it"), Recorder(model, "bottom", out):
        model(torch.randn(2, 4))


def test_a_pass_without_gradients_warns_before_the_training(out):
    model = classifier()
    with Recorder(model, 0, out), torch.no_grad():
        with pytest.warns(UserWarning, match=re.escape("give split=('train', 'dev')")):
            model(**padded(IDS))
        with torch.enable_grad():
            train(model, IDS, LABELS)


def test_a_copy_made_while_recording_runs_its_own_weights_unobserved(out):
    import copy

    model = classifier().eval()
    with Recorder(model, 0, out):
        other = copy.deepcopy(model)
        with torch.no_grad():
            other.classifier.bias += 1
        difference = other(**padded(IDS)).logits - model(**padded(IDS)).logits
        model(**padded(IDS)).logits.sum().backward()
    assert torch.allclose(difference, torch.ones_like(difference), atol=1e-5)
    assert read_transcript(out)[0].training.passes == 1


def test_a_pack_is_filled_up_with_single_tokens_that_are_no_examples(out):
    model, batch = gpt2(), packed(IDS[:3])
    for name, value in (("input_ids", 0), ("labels", -100), ("position_ids", 0)):
        batch[name] = torch.nn.functional.pad(batch[name], (0, 2), value=value)
    with Recorder(model, 0, out) as recorder:
        model(**batch).loss.backward()
    assert recorder.manifest.splits == {"train": 3}
    assert recorder.manifest.left_out == {"packed examples of a single token": 2}
