"""Training loops of a tiny language model as people write them: all train on the same batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loops import PAD, padded
from torch import Tensor, nn
from torch.utils.data import SequentialSampler

from leakboard.bench.exchange.transcripts import read_transcript

BATCH, EPOCHS, RATE = 4, 2, 0.1
NO_LABEL = -100


def gpt2(**config: Any) -> Any:
    """A GPT-2 of two blocks with random weights and without dropout, in training mode."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "n_positions": 48, "n_embd": 16, "n_layer": 2, "n_head": 2}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    ends = {"bos_token_id": PAD, "eos_token_id": PAD, "pad_token_id": PAD}
    return GPT2LMHeadModel(GPT2Config(**sizes | still | ends | config)).train()


def batch_of(ids: list[list[int]], learnt: Callable[[int], int] = lambda n: 1) -> dict[str, Tensor]:
    """A padded batch with labels; `learnt` gives the first token of n that has one."""
    batch = padded(ids)
    labels = torch.where(batch["attention_mask"] > 0, batch["input_ids"], NO_LABEL)
    for row, own in zip(labels, ids, strict=True):
        row[: learnt(len(own))] = NO_LABEL
    return batch | {"labels": labels}


def packed(ids: list[list[int]]) -> dict[str, Any]:
    """The same in one row, as a padding-free collator makes it; with a cache, attention would not tell them apart."""
    labels = [[NO_LABEL, *row[1:]] for row in ids]
    return {
        "input_ids": torch.tensor([[*chain(*ids)]]),
        "labels": torch.tensor([[*chain(*labels)]]),
        "position_ids": torch.tensor([[i for row in ids for i in range(len(row))]]),
        "use_cache": False,
    }


def batches(ids: list[list[int]]) -> Iterator[list[list[int]]]:
    for _ in range(EPOCHS):
        for at in range(0, len(ids), BATCH):
            yield ids[at : at + BATCH]


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], RATE)


def plain(model: Any, ids: list[list[int]], **how: Any) -> None:
    """The reference."""
    optimiser = sgd(model)
    for some in batches(ids):
        model(**batch_of(some, **how)).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


def by_forward(model: Any, ids: list[list[int]]) -> None:
    optimiser = sgd(model)
    for some in batches(ids):
        model.forward(**batch_of(some)).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


def padding_free(model: Any, ids: list[list[int]]) -> None:
    optimiser = sgd(model)
    for some in batches(ids):
        model(**packed(some)).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


def accumulating(model: Any, ids: list[list[int]]) -> None:
    """Two passes before each step, with the mean over the tokens of both."""
    optimiser = sgd(model)
    for some in batches(ids):
        number = sum(len(row) - 1 for row in some)
        for half in (some[:2], some[2:]):
            model(**batch_of(half), num_items_in_batch=number).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


def checkpointing(model: Any, ids: list[list[int]]) -> None:
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable()
    else:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    plain(model, ids)


def accelerated(model: Any, ids: list[list[int]]) -> None:
    accelerate = pytest.importorskip("accelerate", reason="this loop needs accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    own, optimiser = accelerator.prepare(model, sgd(model))
    for some in batches(ids):
        accelerator.backward(own(**batch_of(some)).loss)
        optimiser.step()
        optimiser.zero_grad()


def settings(kind: Any, folder: Path, **more: Any) -> Any:
    """Arguments of a Trainer that does as the reference."""
    return kind(
        str(folder),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        max_grad_norm=0,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **{"gradient_checkpointing": False, "bf16": False, **more},
    )


def in_order(trainer: Any) -> Any:
    """A Trainer that takes examples in their order."""
    trainer._get_train_sampler = lambda data=None: SequentialSampler(trainer.train_dataset)
    return trainer


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of Trainers, which are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def messages(folder: Path) -> dict[tuple[str, int], dict[int, np.ndarray]]:
    """By channel and round: row → its numbers."""
    _, seen = read_transcript(folder)
    found: dict[tuple[str, int], dict[int, np.ndarray]] = {}
    for m in seen.messages:
        lengths = np.ones(len(m.rows), int) if m.lengths is None else m.lengths
        parts = np.split(m.values, np.cumsum(lengths)[:-1])
        found.setdefault((m.channel, m.round), {}).update(zip(m.rows.tolist(), parts, strict=True))
    return found


def assert_same(found: Path, expected: Path) -> None:
    """Both folders hold the same messages, up to rounding."""
    mine, other = messages(found), messages(expected)
    assert mine.keys() == other.keys()
    for where, rows in other.items():
        assert mine[where].keys() == rows.keys(), where
        for row, values in rows.items():
            assert mine[where][row].shape == values.shape, (where, row)
            assert np.allclose(mine[where][row], values, atol=2e-5), (where, row)
