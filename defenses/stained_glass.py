"""Stained glass: Gaussian noise on word embeddings whose mean and variance a small network learns from the text."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones import Backbone, Ragged, Tokens
from leakboard.bench.contracts import Channel, Goal, Objective
from leakboard.bench.defending import Epsilon, fit_on_sent, predictor
from leakboard.bench.exchange import OutputLayer, Predictor, Session, Tuned
from leakboard.bench.methods import Conditions, Defense, Source
from leakboard.defenses.sap import SAP

WIDTH, HEADS = 128, 4
"""Width and attention heads of the network, which has one transformer layer."""
SPREAD = 1.0
"""Standard deviation of the noise before training, as a multiple of that of the coordinates of all word embeddings."""
TOKENS = 256
"""Tokens of a batch between which the mutual information is estimated."""
RATE = 1e-3
"""Learning rate of the network and of the customer's own head. The paper tunes language models; for an encoder nothing is
stated."""
CHUNK = 256
"""Texts that pass the network at once."""


class StainedGlass(Defense):
    """Send word embeddings plus Gaussian noise whose mean and variance depend on the whole sequence.

    Before anything is sent, the customer trains a small network on its texts and labels, against the public model with a
    head of its own. The loss is the task's plus `weight` times an estimate of the mutual information between embeddings
    and what is sent. All else is as in SAP at the embedding cut with a frozen bottom. The weights of the network stay
    with the customer, so that attackers know it by queries only.
    """

    name: ClassVar[str] = "stained-glass"
    display_name: ClassVar[str] = "Stained Glass"
    source: ClassVar[Source] = Source(
        "Learning Obfuscations Of LLM Embedding Sequences: Stained Glass Transform (2025)",
        "the transform and its loss",
        "https://arxiv.org/abs/2506.09452",
    )
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.REPRESENTATIONS, Channel.LOGITS, Channel.LOGIT_GRADIENTS}
    )
    knob: ClassVar[str | None] = "weight"
    switch: ClassVar[str | None] = "weight"
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.INVERSION})
    colour: ClassVar[str] = "#2d4bb4"
    marker: ClassVar[str] = "h"

    weight: Epsilon = 0.001
    """Weight λ of the mutual information, in nats; larger values hide more; "none" sends embeddings without noise.
    The default was chosen on one seed of 400 examples of SST-2: at 0.01 the model learns nothing."""
    passes: int = Field(3, ge=1, le=1000)
    """Passes over the training texts by which the network is trained before anything is sent."""

    def skip(self, conditions: Conditions) -> str | None:
        return (
            "it changes word embeddings, before the first block; set cut: 0"
            if conditions.cut
            else None
        )

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        own = super().twins(objective)
        return (*own, SAP(eta=None)) if own else ()  # without noise, SAP sends the same messages

    def fine_tune(self, session: Session) -> Tuned:
        glass = None if self.weight is None else self.learnt(session, self.weight)
        network = session.network(cut=session.cut)
        output = OutputLayer.held(session, network.head, "vendor")
        base = session.backbone

        def sends(tokens: Tokens) -> Ragged:
            return sent_through(glass, base, tokens, session.noise)

        fit_on_sent(session, network, output, sends)
        tuned = predictor(session, network, output, sends)
        assert isinstance(tuned, Predictor)
        return tuned if glass is None else Queried(tuned, glass, base)

    def learnt(self, session: Session, weight: float) -> Glass:
        """The network, trained by the customer alone; all draws are of the mechanism."""
        rng, base, train = session.noise, session.backbone, session.train
        local = session.network(adapted=False).eval()
        local.encoder.requires_grad_(False)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            glass = Glass(base.width, SPREAD * float(base.embeddings.std())).to(base.device)
        optimiser = torch.optim.Adam([*glass.parameters(), *local.head.parameters()], RATE)
        size = session.settings.batch_size
        batches = [
            torch.from_numpy(rng.permutation(len(train))[at : at + size])
            for _ in range(self.passes)
            for at in range(0, len(train), size)
        ]
        for rows in session.progress("stained glass", batches, len(batches)):
            tokens = train.take(rows)
            words = tokens.ids.embedded(base.embeddings)
            mean, spread = glass(words)
            noise = normal(spread, rng)
            sent = torch.where(
                tokens.special[:, None].to(noise.device), words.values, mean + spread * noise
            )
            scores = local(words.with_values(sent), tokens.types)
            loss = cross_entropy(scores, session.truth(rows))
            free = (~tokens.special).nonzero()[:, 0]
            some = free[torch.from_numpy(rng.permutation(len(free))[:TOKENS])]
            known = information(mean[some], spread[some], tokens.ids.values[some])
            optimiser.zero_grad()
            (loss + weight * known).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return glass.requires_grad_(False)


class Glass(nn.Module):
    """Mean and standard deviation of what is sent for each word embedding, from all of the sequence."""

    def __init__(self, width: int, spread: float) -> None:
        super().__init__()
        self.spread = spread
        self.inner = nn.Linear(width, WIDTH)
        self.layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True
        )
        self.outer = nn.Linear(WIDTH, 2 * width)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, words: Ragged) -> tuple[Tensor, Tensor]:
        """Means and standard deviations [T, d] for word embeddings [T, d]."""
        mask = words.mask()
        hidden = self.layer(self.inner(words.padded()), src_key_padding_mask=~mask)[mask]
        shift, log = self.outer(hidden).chunk(2, 1)
        return words.values + shift, self.spread * log.clamp(-10, 10).exp()


class Queried(Predictor):
    """A classifier whose network of noise answers for texts that others choose."""

    def __init__(self, tuned: Predictor, glass: Glass, base: Backbone) -> None:
        super().__init__(tuned.score)
        self.glass, self.base = glass, base

    @torch.no_grad()
    def sends(self, tokens: Tokens, rng: Generator) -> Ragged | None:
        return sent_through(self.glass, self.base, tokens, rng)


@torch.no_grad()
def sent_through(glass: Glass | None, base: Backbone, tokens: Tokens, rng: Generator) -> Ragged:
    """Vectors [T, d] that are sent for texts; special tokens are sent as they are."""
    words = tokens.ids.embedded(base.embeddings)
    if glass is None:
        return words
    parts = []
    for rows in torch.split(torch.arange(len(tokens)), CHUNK):
        mean, spread = glass(words.take(rows))
        parts.append(mean + spread * normal(spread, rng))
    special = tokens.special[:, None].to(words.values.device)
    return words.with_values(torch.where(special, words.values, torch.cat(parts)))


def information(mean: Tensor, spread: Tensor, ids: Tensor) -> Tensor:
    """Estimate in nats of what a sent vector tells of its token, from [N, d] means, standard deviations and ids [N].

    It is −log of the mean of exp(−KL(pᵢ‖pⱼ)) over tokens j of other ids, averaged over i: the bound of Kolchinsky and
    Tracey (2017) for the entropy of a mixture, without the token itself. With it, the bound is flat where distributions
    do not overlap; and a word is not hidden by its own repetitions.
    """
    inverse = spread**-2
    squares = (spread**2 + mean**2) @ inverse.T - 2 * mean @ (mean * inverse).T
    logs = spread.log().sum(1)
    distance = (squares + (mean**2 * inverse).sum(1) - mean.shape[1]) / 2 + logs - logs[:, None]
    other = (ids[:, None] != ids).to(mean.device)
    near = torch.logsumexp(distance.neg().masked_fill(~other, -torch.inf), 1)
    counted = other.any(1)
    if not counted.any():
        return mean.sum() * 0
    return (other.sum(1)[counted].log() - near[counted]).mean()


def normal(like: Tensor, rng: Generator) -> Tensor:
    """Standard normal noise; drawn by NumPy, it is the same on every device."""
    return torch.from_numpy(rng.standard_normal(like.shape, dtype=np.float32)).to(like.device)
