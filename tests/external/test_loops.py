"""Loops as people write them: recorded as the plain loop is, or refused at the first pass with a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from causal_loops import (
    BATCH,
    RATE,
    accelerated,
    accumulating,
    assert_same,
    batch_of,
    batches,
    by_forward,
    checkpointing,
    gpt2,
    in_order,
    messages,
    padding_free,
    plain,
    quiet,
    settings,
    sgd,
)
from loops import Pooled, padded, sentences
from model_folders import tiny_folder

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.transcripts import read_transcript
from leakboard.bench.external.recorder import Recorder

IDS, LABELS = sentences()
SENT, LOGIT_GRADIENTS = Channel.REPRESENTATIONS, Channel.LOGIT_GRADIENTS
ACTIVATIONS, GRADIENTS = Channel.ACTIVATIONS, Channel.GRADIENTS
pytestmark = pytest.mark.usefixtures("from_nowhere")


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """The plain loop at each cut and holder of the output layer, recorded once."""
    made: dict[tuple[int, str], Any] = {}

    def reference(cut, head):
        if (cut, head) not in made:
            made[cut, head] = tmp_path_factory.mktemp("plain") / "wire"
            model = gpt2()
            with quiet(), Recorder(model, cut, made[cut, head], examples=IDS, head=head):
                plain(model, IDS)
        return made[cut, head]

    return reference


LOOPS = {
    "forward": by_forward,
    "padding-free": padding_free,
    "accumulation": accumulating,
    "checkpointing": checkpointing,
    "accelerate": accelerated,
}


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_recorded_as_the_plain_one(references, out, loop, cut):
    head = "customer" if cut else "vendor"
    model = gpt2()
    with Recorder(model, cut, out, examples=IDS, head=head):
        LOOPS[loop](model, IDS)
    assert_same(out, references(cut, head))
    seen = read_transcript(out)[0].training
    assert (seen.packing, seen.checkpointing) == (loop == "padding-free", loop == "checkpointing")
    twice = loop == "accumulation"
    assert (seen.accumulation, seen.batch_size) == ((2, 2) if twice else (1, BATCH))
    assert "forward" not in vars(model)


def test_a_trainer_of_a_language_model_is_recorded_as_the_plain_loop(references, out, tmp_path):
    pytest.importorskip("accelerate", reason="a Trainer needs it")
    from datasets import Dataset

    model, data = gpt2(), Dataset.from_dict({"input_ids": IDS})
    with quiet():
        trainer = in_order(
            transformers.Trainer(
                model,
                settings(transformers.TrainingArguments, tmp_path / "t"),
                lambda rows: batch_of([r["input_ids"] for r in rows]),
                data,
                optimizers=(sgd(model), None),
            )
        )
        trainer.lr_scheduler = torch.optim.lr_scheduler.ConstantLR(trainer.optimizer, 1)
        with Recorder(trainer, 0, out):
            trainer.train()
    assert_same(out, references(0, "vendor"))


def adapted(kind, model):
    import peft

    with quiet():
        return peft.get_peft_model(
            model, getattr(peft, kind)(task_type="CAUSAL_LM", num_virtual_tokens=3)
        )


@pytest.mark.parametrize(
    ("kind", "tune", "virtual"),
    [("PromptTuningConfig", "prompt_tuning", 3), ("PrefixTuningConfig", "prefix_tuning", 0)],
)
def test_virtual_tokens_are_left_out_and_the_text_is_recorded(out, kind, tune, virtual):
    model = adapted(kind, gpt2())
    with quiet(), Recorder(model, 0, out, examples=IDS):
        plain(model, IDS)
    found, table = messages(out), model.get_input_embeddings().weight.detach().numpy()
    for row, ids in enumerate(IDS):
        assert np.array_equal(found[SENT, 0][row], table[ids])
        assert found[LOGIT_GRADIENTS, 0][row][:-1].argmin(1).tolist() == ids[1:]
    told = read_transcript(out)[0].training
    assert (told.tune, told.virtual_tokens) == (tune, virtual)


class LossOnly(torch.nn.Module):
    """A model within a module that returns nothing but the loss."""

    def __init__(self):
        super().__init__()
        self.inner = gpt2()

    def forward(self, **batch):
        return self.inner(**batch).loss


def test_a_module_that_returns_the_loss_is_recorded_below_its_output_layer(references, out):
    model = LossOnly()
    optimiser = sgd(model)
    with Recorder(model, 0, out, examples=IDS):
        for some in batches(IDS):
            model(**batch_of(some)).backward()
            optimiser.step()
            optimiser.zero_grad()
    assert_same(out, references(0, "customer"))
    assert read_transcript(out)[0].training.head == "customer"


def test_what_was_not_seen_of_a_training_is_null_and_no_default(out):
    """Parameters are updated by hand, in a module whose code nobody knows."""
    model = Pooled()
    with Recorder(model, "bottom.1", out, examples=IDS) as recorder:
        model(**padded(IDS)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    manifest = read_transcript(out)[0]
    assert manifest == recorder.manifest
    assert manifest.train is None
    told = manifest.training.model_dump(exclude_none=True, exclude={"order"})
    known = {"epochs": 1, "passes": 1, "batch_size": 12, "tune": "full", "packing": False}
    assert told == known | {"precision": "float32", "virtual_tokens": 0, "longest": 9}


def test_the_adapter_of_a_training_is_named(out):
    import peft

    config = peft.LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=8, target_modules=["c_attn"])
    with quiet():
        model = peft.get_peft_model(gpt2(), config)
    with quiet(), Recorder(model, 0, out, examples=IDS):
        plain(model, IDS)
    told = read_transcript(out)[0].training
    assert (told.tune, told.lora_rank, told.lora_alpha) == ("lora", 2, 8)
    assert (told.learning_rate, told.optimiser, told.steps, told.epochs) == (RATE, "SGD", 6, 2)


@pytest.mark.parametrize(("cut", "channel"), [(0, SENT), ("1", ACTIVATIONS)])
def test_a_sentence_encoder_and_its_trainer_are_recorded(out, tmp_path, cut, channel):
    """Both texts of a pair pass the encoder before one backward pass."""
    library = pytest.importorskip("sentence_transformers", reason="this loop needs it")
    pytest.importorskip("sentence_transformers.sentence_transformer", reason="it needs version 6")
    pytest.importorskip("accelerate", reason="a Trainer needs it")
    from datasets import Dataset
    from sentence_transformers.sentence_transformer import losses

    with quiet():
        model = library.SentenceTransformer(str(tiny_folder(tmp_path / "bert")), device="cpu")
    words = ["the cat sat", "a dog ran off", "it rains", "we like tea", "go home", "stay here now"]
    data = Dataset.from_dict({"anchor": words[:3], "positive": words[3:]})
    with quiet():
        trainer = library.SentenceTransformerTrainer(
            model,
            settings(library.SentenceTransformerTrainingArguments, tmp_path / "t"),
            data,
            loss=losses.MultipleNegativesRankingLoss(model),
        )
        ids = model.tokenizer(words)["input_ids"]
        with Recorder(trainer, cut, out, examples=ids):
            trainer.train()
    found = messages(out)
    expected = list(map(len, ids)) if cut == 0 else [1] * 6
    assert [len(found[channel, 0][row]) for row in range(6)] == expected
    told = read_transcript(out)[0].training
    assert (told.accumulation, told.passes, told.steps) == (1, 4, 2)
