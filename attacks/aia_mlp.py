"""aia-mlp: attribute inference by a small network on the mean of the received vectors."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones import Ragged, one_thread
from leakboard.bench.contracts import (
    Channel,
    Collected,
    Goal,
    Guess,
    Ints,
    Knows,
    ThreatModel,
    Transcript,
)
from leakboard.bench.methods import Attack, Knowledge, Source

HIDDEN = 768
"""Hidden units, as in the paper."""
EPOCHS = 10
"""Fixed, since accuracy on `reviews` varies by less than 0.02 from 5 to 40 epochs and for decays from 0.1 to 1;
early stopping would only cost examples. The paper states neither."""
LEARNING_RATE = 1e-3
"""Learning rate of AdamW."""
WEIGHT_DECAY = 0.1
BATCH = 32
"""Labelled examples per step."""
FOLDS = 5
"""Folds of the cross-validation that detects guesses worse than the majority class, as on pure noise with
unequal classes. The paper has no such step."""
CHANNELS = (Channel.REPRESENTATIONS, Channel.TOKENS, Channel.ACTIVATIONS)
"""Channels in order of preference: the customer's messages before the vendor's activations."""


class MeanMLP(Attack):
    """Average the vectors of each example, and learn attributes from a labelled share."""

    name: ClassVar[str] = "aia-mlp"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving Prompt Tuning for Large Language Model Services (Li et al. 2023)",
        "attribute inference attack",
        "https://arxiv.org/abs/2305.06212",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.ATTRIBUTE}, reads=CHANNELS, knows={Knows.BASE_WEIGHTS, Knows.LABELLED_SHARE}
    )

    labelled: float = Field(0.1, gt=0, lt=1)
    """Share of the recorded training examples whose attributes the attacker knows."""

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        granted = knowledge.labelled
        assert granted is not None
        seed = int(rng.integers(2**31))
        channel = next((c for c in CHANNELS if "train" in seen.splits(c)), None)
        if channel is None:
            return []
        rows, features = mean_vectors(seen, channel, knowledge)
        features = standardised(features).to(knowledge.device)
        at = np.searchsorted(rows, granted.rows)
        guesses = []
        for name, values in granted.attributes.items():
            known = values >= 0
            labelled = features[torch.from_numpy(at[known])]
            truth = torch.from_numpy(values[known]).to(features.device)
            with one_thread():
                guess = guessed(features, labelled, truth, granted.values[name], seed).cpu().numpy()
            guesses.append(
                Guess(Goal.ATTRIBUTE, channel, "train", rows, guess, attribute=name, view="train")
            )
        return guesses


def mean_vectors(seen: Transcript, channel: Channel, knowledge: Knowledge) -> tuple[Ints, Tensor]:
    """The rows seen, and [n, d] the mean vector of each over its tokens and over all rounds.

    Token ids are replaced by their initial embeddings.
    """
    # Ids sent in the clear are the same in every round.
    rounds = seen.rounds(channel)[: 1 if channel == Channel.TOKENS else None]
    means = []
    for r in rounds:
        read = [(b.rows, _means(b, knowledge)) for b in seen.blocks(channel, round=r)]
        rows = np.concatenate([part for part, _ in read])
        means.append(torch.cat([mean for _, mean in read]))
    return rows, torch.stack(means).mean(0)


def _means(block: Collected, knowledge: Knowledge) -> Tensor:
    values = torch.tensor(block.values)  # a copy, since transcripts are read-only
    if block.lengths is None:
        return values
    if not values.is_floating_point():
        assert knowledge.base is not None
        values = knowledge.base.embeddings.cpu()[values]
    return Ragged(values, torch.tensor(block.lengths)).means()


def standardised(features: Tensor) -> Tensor:
    """Features with mean 0 and variance 1 per dimension, over all rows seen; constant dimensions become 0."""
    centred = features - features.mean(0)
    return centred / centred.square().mean(0).sqrt().clamp(min=1e-8)


def guessed(features: Tensor, labelled: Tensor, truth: Tensor, classes: int, seed: int) -> Tensor:
    """[n] predicted class of each of `features` [n, d], learnt from `labelled` [m, d] and their `truth` [m].

    If cross-validation on the labelled rows is worse than their most frequent class by more than a standard
    error, that class is predicted for all. A stricter test would discard weak signals. Without labelled rows
    the prediction is class 0.
    """
    torch.manual_seed(seed)
    counts = truth.bincount(minlength=classes)
    fold = torch.randperm(len(truth)).to(truth.device) % FOLDS
    right = 0
    for i in range(FOLDS):
        inside, outside = fold == i, fold != i
        network = fitted(labelled[outside], truth[outside], classes)
        right += int((predicted(network, labelled[inside]) == truth[inside]).sum())
    most, n = int(counts.max()), len(truth)
    if not n or right < most - math.sqrt(most * (n - most) / n):
        return counts.argmax().expand(len(features))
    return predicted(fitted(labelled, truth, classes), features)


def fitted(x: Tensor, y: Tensor, classes: int) -> nn.Module:
    """The network, trained on features `x` [m, d] and classes `y` [m]; uses torch's global random state."""
    network = nn.Sequential(nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes))
    network.to(x.device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(EPOCHS if len(x) else 0):
        for batch in torch.split(torch.randperm(len(x)).to(x.device), BATCH):
            loss = cross_entropy(network(x[batch]), y[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return network


@torch.no_grad()
def predicted(network: nn.Module, x: Tensor) -> Tensor:
    """[n] classes of features `x` [n, d]."""
    scores: Tensor = network(x)
    return scores.argmax(1)
