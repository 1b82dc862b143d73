"""Plain training loops as an owner writes them who knows nothing of the project, and what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.transcripts import read_transcript

VOCABULARY, WIDTH, BLOCKS, PAD = 60, 16, 3, 0


def classifier(seed: int = 0, **config: Any) -> Any:
    """A BERT of three blocks with random weights and a head of three classes, in training mode."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "num_hidden_layers": BLOCKS,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "num_labels": 3,
    }
    return BertForSequenceClassification(BertConfig(**settings | config)).train()


def sentences(n: int = 12, seed: int = 1) -> tuple[list[list[int]], Tensor]:
    """Ids of n different examples of 3 to 9 tokens, and their classes."""
    drawn = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 10, (n,), generator=drawn).tolist()
    ids = [torch.randint(1, VOCABULARY, (k,), generator=drawn).tolist() for k in lengths]
    return ids, torch.randint(0, 3, (n,), generator=drawn)


def padded(ids: list[list[int]], side: str = "right") -> dict[str, Tensor]:
    """A batch as a tokeniser pads it."""
    longest = max(map(len, ids))
    out = torch.full((len(ids), longest), PAD)
    mask = torch.zeros_like(out)
    for i, row in enumerate(ids):
        where = slice(len(row)) if side == "right" else slice(longest - len(row), None)
        out[i, where], mask[i, where] = torch.tensor(row), 1
    return {"input_ids": out, "attention_mask": mask}


def train(
    model: nn.Module,
    ids: list[list[int]],
    labels: Tensor,
    epochs: int = 2,
    size: int = 4,
    side: str = "right",
    each: Callable[[int], None] = lambda step: None,
    loss_of: Callable[[Any, Tensor], Tensor] | None = None,
) -> list[float]:
    """Shuffles, pads, steps; the losses. `each` is called before each step with its number."""
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
    torch.manual_seed(5)
    losses, step = [], 0
    for _ in range(epochs):
        for rows in torch.randperm(len(ids)).split(size):
            each(step)
            out = model(**padded([ids[i] for i in rows.tolist()], side))
            scores = out.logits if hasattr(out, "logits") else out
            loss = nn.functional.cross_entropy(scores, labels[rows])
            loss = loss if loss_of is None else loss_of(out, labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            step += 1
    return losses


class Pooled(nn.Module):
    """No model of transformers: word vectors, a bottom, a mean, a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(60, 8)
        self.bottom = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.pool = nn.Identity()
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        weight = attention_mask[..., None]
        mean = (self.bottom(self.words(input_ids)) * weight).sum(1) / weight.sum(1)
        scores: Tensor = self.head(self.pool(mean))
        return scores


def sent(
    folder: Path, channel: Channel = Channel.REPRESENTATIONS, split: str = "train"
) -> list[dict[int, np.ndarray]]:
    """Of each recorded round: row → its numbers."""
    _, seen = read_transcript(folder)
    found = []
    for r in seen.rounds(channel, split):
        block = seen.collect(channel, split, r)
        lengths = np.ones(len(block.rows), int) if block.lengths is None else block.lengths
        parts = np.split(block.values, np.cumsum(lengths)[:-1])
        found.append(dict(zip(block.rows.tolist(), parts, strict=True)))
    return found


def hooks(model: nn.Module) -> int:
    """How many hooks there are on all modules."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, kind)) for module in model.modules() for kind in kinds)
