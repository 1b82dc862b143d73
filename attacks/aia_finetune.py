"""aia-finetune: attribute inference by fine-tuning the top model on received representations."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones import Network, Ragged, by_length
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Ints,
    Knows,
    ThreatModel,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import Loop
from leakboard.bench.methods import Attack, Knowledge, Labelled, Source

CHANNELS = (Channel.REPRESENTATIONS, Channel.TOKENS)
"""Channels in order of preference; pooled activations leave no blocks to fine-tune."""


class FineTune(Attack):
    """Fine-tune a copy of the public top model on a labelled share of the representations.

    The top gets LoRA and a new head, like the vendor's. One network learns all attributes: its head has a block of
    scores for each, and their losses are summed.

    Cost: `epochs` forward and backward passes over the labelled share, and one forward pass over all recorded
    examples. At the default share this is a quarter of the time of a `smoke` cell on one CPU thread.
    """

    name: ClassVar[str] = "aia-finetune"
    source: ClassVar[Source] = Source(
        "A Split-and-Privatize Framework for Large Language Model Fine-Tuning",
        "section 5.2, figure 3",
        "https://arxiv.org/abs/2312.15603",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.ATTRIBUTE}, reads=CHANNELS, knows={Knows.BASE_WEIGHTS, Knows.LABELLED_SHARE}
    )
    costly: ClassVar[bool] = True

    labelled: float = Field(0.1, gt=0, lt=1)
    """Share of the recorded training examples whose attributes the attacker knows."""
    epochs: int = Field(10, ge=1)
    """Passes over the labelled share; the paper does not state it."""
    learning_rate: float = Field(3e-3, gt=0)
    """Learning rate of AdamW for LoRA and head. The paper's 3e-4 learns nothing in ten passes over 250 examples (a
    quarter of 1,000 recorded ones); 1e-3 learns less than this."""
    batch_size: int = Field(16, ge=1)
    """Labelled examples per step."""

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        labelled = knowledge.labelled
        assert labelled is not None
        seed = int(rng.integers(2**31))
        channel = next((c for c in CHANNELS if "train" in seen.splits(c)), None)
        if channel is None or not labelled.attributes:
            return []
        rows, received = sequences(seen, channel, knowledge)
        places = torch.from_numpy(np.searchsorted(rows, labelled.rows))
        # A recipient of tokens holds the whole model.
        cut = knowledge.cut if channel == Channel.REPRESENTATIONS else 0
        network = self._fitted(received.take(places), labelled, knowledge, cut, seed)
        scores = _scores(network, received, knowledge.device)
        blocks = torch.split(scores, [labelled.values[name] for name in labelled.attributes], dim=1)
        return [
            Guess(
                Goal.ATTRIBUTE,
                channel,
                "train",
                rows,
                block.argmax(1).numpy(),
                attribute=name,
                view="train",
            )
            for name, block in zip(labelled.attributes, blocks, strict=True)
        ]

    def _fitted(
        self, received: Ragged, labelled: Labelled, knowledge: Knowledge, cut: int, seed: int
    ) -> Network:
        assert knowledge.base is not None
        settings = TrainSettings(
            epochs=self.epochs, learning_rate=self.learning_rate, batch_size=self.batch_size
        )
        sizes = [labelled.values[name] for name in labelled.attributes]
        truth = torch.from_numpy(np.stack(list(labelled.attributes.values()), axis=1))
        torch.manual_seed(seed)
        blocks = slice(cut, None)
        network = Network(knowledge.base, cut, sum(sizes), settings, blocks).train()

        def step(rows: Tensor, epoch: int) -> float:
            scores = _forward(network, received.take(rows), knowledge.device)
            columns = truth[rows].to(scores.device).T
            parts = [
                # A sum, since the mean over a batch without known values is NaN.
                cross_entropy(block, column, ignore_index=-1, reduction="sum") / len(rows)
                for block, column in zip(torch.split(scores, sizes, dim=1), columns, strict=True)
            ]
            loss = torch.stack(parts).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        # Divergence is judged against guessing all attributes: ln of the product of their sizes.
        classes = int(np.prod(sizes))
        groups: list[dict[str, object]] = [{"params": network.trained()}]
        Loop(settings, seed, classes).fit(step, groups, received.lengths)
        return network.eval()


def sequences(seen: Transcript, channel: Channel, knowledge: Knowledge) -> tuple[Ints, Ragged]:
    """The rows seen, and the vectors received for each, [T, d], averaged over rounds.

    Token ids are replaced by their initial embeddings. Rounds in which the number of vectors of an example differs
    from the first round are left out.
    """
    assert knowledge.base is not None
    # Ids sent in the clear are the same in every round.
    rounds = seen.rounds(channel)[: 1 if channel == Channel.TOKENS else None]
    blocks = [seen.collect(channel, round=r) for r in rounds]
    first = blocks[0]
    assert first.lengths is not None
    alike = [b.values for b in blocks if np.array_equal(b.lengths, first.lengths)]  # type: ignore[arg-type]
    values = torch.from_numpy(np.mean(alike, axis=0, dtype=alike[0].dtype))
    if channel == Channel.TOKENS:
        values = knowledge.base.embeddings.cpu()[values]
    return first.rows, Ragged(values, torch.tensor(first.lengths))


def _forward(network: Network, h: Ragged, device: str) -> Tensor:
    """Scores [B, K]. Segment types are not sent, so all tokens count as the first text."""
    values = h.values.to(device)
    types = torch.zeros(len(values), dtype=torch.long)
    scores: Tensor = network(h.with_values(values), types)
    return scores


@torch.no_grad()
def _scores(network: Network, received: Ragged, device: str) -> Tensor:
    """[n, K] scores of all examples, on the CPU."""
    batches = by_length(received.lengths)
    parts = [_forward(network, received.take(rows), device).cpu() for rows in batches]
    return torch.cat(parts)[torch.cat(batches).argsort()]
