"""eia-map: embedding inversion by a denoiser that knows the mechanism and reads context."""

from __future__ import annotations

import copy
from functools import cache
from typing import ClassVar

import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor, nn

from leakboard.bench.attacking import Inverter, Reader, ReceivedWords, inversion
from leakboard.bench.backbones import Backbone, Ragged, Tokens, autocast
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Knows,
    Precision,
    ThreatModel,
    TrainSettings,
    Transcript,
)
from leakboard.bench.methods import Attack, Knowledge, Query, Source, spec_of
from leakboard.bench.tasks import TASK_ITSELF, PublicText

BATCH = 16
WARMUP = 0.1
NEW_LAYERS = 1e-3
"""Learning rate of layers that are not from the public model."""
GEOMETRY = 3.0
"""Initial weight of the inner product between the received vector and a candidate."""
DEEP_GEOMETRY = 20.0
"""The same at deeper cuts, where no token can be copied."""
COPY = 3.0
"""Initial bonus of the received token."""


class Denoiser(Inverter):
    """The public encoder, which reads all received vectors, with an output layer tied to E.

    Args:
        counts: [V] occurrences in public text, from which the bias of a word starts.
        start: [d + 1, d] from received vectors to rows of E, which it is to read as the nearest;
            None where rows of E are what is received.
        precision: number format of the network.
    """

    def __init__(
        self,
        base: Backbone,
        cut: int,
        counts: Tensor,
        start: Tensor | None = None,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        d, device = base.width, base.device
        self.base, self.cut, self.precision = base, cut, precision
        # The encoder gets vectors as input, so its own embedding is not needed.
        words = base.family.embeddings(base.model)
        self.encoder = copy.deepcopy(base.model, {id(words): words}).requires_grad_(True)
        words.requires_grad_(False)
        sent, words_width = base.width_at(cut), base.width_at(0)
        self.context = nn.Linear(d, words_width, device=device)
        self.direct = nn.Linear(sent, words_width, device=device)
        self.copied = nn.Linear(d, 1, device=device)
        # Embedding norms differ between models, so the constants are relative to them.
        self.unit = float(base.embeddings.norm(dim=1).mean())
        self.bias = nn.Parameter((counts + 0.5).log().to(device))
        with torch.no_grad():
            self.context.weight.zero_()
            if start is None:
                self.direct.weight.copy_(GEOMETRY * torch.eye(sent))
                self.direct.bias.zero_()
            else:
                self.direct.weight.copy_(DEEP_GEOMETRY * start[:-1].T)
                self.direct.bias.copy_(DEEP_GEOMETRY * start[-1] / self.unit)
                # With this bias the largest score is that of the nearest row.
                self.bias.sub_(DEEP_GEOMETRY / 2 * (base.embeddings / self.unit).square().sum(1))
            self.copied.weight.zero_()
            self.copied.bias.fill_(COPY)

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        """Parameter groups for AdamW; new layers have a separate learning rate."""
        old = [p for p in self.encoder.parameters() if p.requires_grad]
        layers = (self.context, self.direct, self.copied)
        new = [self.bias, *(p for layer in layers for p in layer.parameters())]
        return [{"params": old, "lr": learning_rate}, {"params": new, "lr": NEW_LAYERS}]

    def forward(self, received: Ragged) -> Tensor:
        with autocast(self.precision, self.base.device):
            return self._scores(received).float()

    def _scores(self, received: Ragged) -> Tensor:
        mask, base = received.mask(), self.base
        # Segments are not sent, so all tokens count as the first text.
        types = torch.zeros(mask.shape, dtype=torch.long, device=mask.device)
        padded = received.padded()
        hidden = base.family.top(self.encoder, padded, mask, types, self.cut)[mask]
        words = self.context(hidden) + self.direct(received.values / self.unit)
        scores: Tensor = words @ (base.embeddings.T / self.unit) + self.bias
        if self.cut == 0:
            nearest = inversion.nearest(base, received)[:, None]
            # Autocast knows no rule for `scatter_add`.
            scores = scores.scatter_add(1, nearest, self.copied(hidden).to(scores.dtype))
        return scores


class ContextualDenoiser(Attack):
    """Train a denoiser on privatised public text, then read every token in its context.

    The denoiser copies or replaces each received token. Log-probabilities of several rounds are summed, and like `eia-nn`
    it gives a candidate per round. If it is not better than `eia-nn` on held-out public text, the guess is that of
    `eia-nn`, as it is without noise. If the public text is of another domain than the customer's, the comparison
    is made on that domain and may be wrong for the customer's.

    It is trained once for each mechanism and public text, and reused for all cells that share them. It also uses
    what has no noise: lengths, positions and special tokens.
    """

    name: ClassVar[str] = "eia-map"
    source: ClassVar[Source] = Source("Leakboard", "adaptive attack")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION},
        reads={Channel.REPRESENTATIONS, Channel.TOKENS},
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT},
    )
    costly: ClassVar[bool] = True
    version: ClassVar[int] = 4

    younger: ClassVar[frozenset[str]] = frozenset({"precision"})

    auxiliary: PublicText = TASK_ITSELF
    """Public text to learn from: `own` for that of the task, or the name of another task."""
    sentences: int = Field(6000, ge=2)
    """Maximum number of auxiliary texts; a tenth of them is held out."""
    epochs: int = Field(1, ge=1)
    """Passes over them, each with new noise."""
    learning_rate: float = Field(3e-4, gt=0)
    """Learning rate of the copy of the public encoder."""
    precision: Precision = "float32"
    """Number format of the denoiser."""

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        arrived = ReceivedWords.of(seen, knowledge, self.readable(knowledge.cut))
        base, cut, mechanism = arrived.base, arrived.cut, arrived.mechanism
        if not arrived.simulated(rng):
            # Nothing to learn from; at deeper cuts, the rows of E are no candidates either.
            return arrived.guesses(lambda rounds: arrived.copied)

        def learn(rng: Generator) -> tuple[Denoiser, Tokens]:
            return self._trained(base, cut, arrived.public.tokens, arrived.query, rng)

        specs = spec_of(self).model_dump_json(), spec_of(mechanism).model_dump_json()
        name = f"{self.name}: {specs[0]} against {specs[1]} at {cut}"
        denoiser, held_out = arrived.public.learned.recall(name, learn)

        @cache
        def reader(rounds: int) -> Reader:
            readers = [arrived.copied, denoiser.read]
            return inversion.best_reader(readers, arrived.query, held_out, rounds, rng)

        return arrived.guesses(reader)

    def _trained(
        self, base: Backbone, cut: int, public: Tokens, query: Query, rng: Generator
    ) -> tuple[Denoiser, Tokens]:
        """The denoiser and the held-out texts."""
        train, held_out = inversion.split_public(public, self.sentences, rng)
        torch.manual_seed(int(rng.integers(2**31)))
        counts = inversion.token_counts(train, len(base.embeddings))
        start = inversion.least_squares(train, base.embeddings, query, rng) if cut else None
        denoiser = Denoiser(base, cut, counts, start, self.precision)
        settings = TrainSettings(
            epochs=self.epochs,
            batch_size=BATCH,
            learning_rate=self.learning_rate,
            warmup=WARMUP,
        )
        groups = denoiser.groups(self.learning_rate)
        inversion.fit(denoiser, groups, query, train, settings, rng)
        return denoiser, held_out
