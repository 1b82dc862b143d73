"""pooled-inversion: infers the tokens of a text from its single vector."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.attacking import inversion
from leakboard.bench.backbones import Tokens
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.defending import Pooling, rescale_rows
from leakboard.bench.methods import Attack, Knowledge, Silent, Source, spec_of
from leakboard.bench.tasks import TASK_ITSELF, PublicText

RIDGE = 1e-2
"""Ridge relative to the mean variance, which keeps the covariance invertible."""
SHRINKAGES = (0.1, 0.5, 2.0, 8.0, math.inf)
"""Pseudo-counts that shrink the mean vector of a token's texts to the overall mean; with infinity only the
token's frequency counts. The best on held-out public text is used."""
TOKENS_NAMED = 512
"""Number of tokens guessed for each text, likeliest first: more than a text of 128 tokens holds."""
DRAWS = 4
"""Noise draws per public text."""


@dataclass(frozen=True)
class Public:
    """Public texts and their vectors, before noise if the mechanism is known.

    Attributes:
        vectors, held_out: [N, d] and [M, d].
        texts, checks: the examples of these.
    """

    vectors: Tensor
    texts: Tokens
    held_out: Tensor
    checks: Tokens


class PooledInversion(Attack):
    """Classify for each token whether the text of a vector contains it (linear discriminant analysis).

    Vectors of texts with and without the token are modelled as normal distributions with a common covariance, to
    which the noise of the mechanism is added; the prior is the token's frequency in public text. On SST-2 this
    reads as much as logistic regression, which takes ten times as long, and more under noise. Repeated messages
    with new noise are averaged. Tokens are scored as a bag: F1 at the known number of different tokens.
    """

    name: ClassVar[str] = "pooled-inversion"
    source: ClassVar[Source] = Source(
        "Information Leakage in Embedding Models (Song & Raghunathan 2020)",
        "section 4.3, multi-label classification",
        "https://arxiv.org/abs/2004.00053",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION},
        reads={Channel.ACTIVATIONS},
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT, Knows.QUERIES},
    )
    idle_in_clear: ClassVar[bool] = True
    version: ClassVar[int] = 2

    access: Literal["mechanism", "encoder", "query"] = "mechanism"
    """Mechanism: knows the base model and the mechanism with its noise. Encoder: the base model alone,
    whose mean vectors it takes for what was sent, whatever scale and shift each was given. Query: sees what the customer's side, as it is after
    training, sends for texts of its own."""
    auxiliary: PublicText = TASK_ITSELF
    """Public text to learn from: `own` for that of the task, or the name of another task."""
    sentences: int = Field(15_000, ge=2)
    """Maximum number of auxiliary texts; a tenth of them is held out."""

    @property
    def needs(self) -> frozenset[Knows]:
        if self.access == "query":
            return frozenset({Knows.QUERIES, Knows.AUXILIARY_TEXT})
        needs = self.threat.knows - {Knows.QUERIES}
        return needs if self.access == "mechanism" else needs - {Knows.MECHANISM}

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        channel, mechanism = Channel.ACTIVATIONS, knowledge.mechanism
        if isinstance(mechanism, Pooling) and not mechanism.public:
            raise Silent(
                f"{mechanism.name} sends what the customer's own layers make of a text; with `access: query` "
                "it asks the customer's side"
            )
        public = self._public(knowledge, rng)
        width = public.vectors.shape[1]
        found, readers = [], dict[int, Reader]()
        for split in seen.splits(channel):
            blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
            if blocks[0].values.shape[1] != width:
                raise Silent(
                    f"what was sent has {blocks[0].values.shape[1]} numbers per text, and what the public "
                    f"encoder makes {width}"
                )
            n = len(blocks)
            if n not in readers:
                readers[n] = self._reader(public, knowledge, n, rng)
            mean = torch.from_numpy(np.mean([block.values for block in blocks], axis=0))
            if self.access == "encoder":
                mean = rescale_rows(mean)
            tokens = readers[n].read(mean.to(public.vectors.device)).cpu().numpy()
            found.append(
                Guess(
                    Goal.INVERSION,
                    channel,
                    split,
                    blocks[0].rows,
                    tokens,
                    view=split,
                    measure="bag",
                )
            )
        return found

    def _public(self, knowledge: Knowledge, rng: Generator) -> Public:
        """Public texts, and the vectors that the customer's side would send for them."""
        auxiliary, mechanism = knowledge.auxiliary, knowledge.mechanism
        assert auxiliary is not None

        def made(rng: Generator) -> Public:
            texts, checks = inversion.split_public(auxiliary.tokens, self.sentences, rng)
            held_out, vectors = (self._vectors(part, knowledge, rng) for part in (checks, texts))
            return Public(vectors, texts, held_out, checks)

        if self.access == "query":
            return made(rng)
        # Before noise a mechanism is the same for every ε, so this is computed once.
        how: dict[str, object] = {}
        if isinstance(mechanism, Pooling):
            how = spec_of(mechanism.model_copy(update={"epsilon": None})).params
        key = json.dumps(
            [self.name, self.sentences, mechanism and mechanism.name, how], sort_keys=True
        )
        return auxiliary.learned.recall(key, made)

    def _vectors(self, tokens: Tokens, knowledge: Knowledge, rng: Generator) -> Tensor:
        """[n, d]"""
        if self.access == "query":
            assert knowledge.query is not None
            answered = knowledge.query(tokens, rng)
            if len(answered.values) != len(tokens):
                raise Silent("what it is answered is not one vector per text")
            return answered.values
        assert knowledge.base is not None
        if isinstance(knowledge.mechanism, Pooling):
            return knowledge.mechanism.public_vectors(knowledge.base, tokens, rng)
        return rescale_rows(knowledge.base.pooled(tokens))

    def _reader(self, public: Public, knowledge: Knowledge, rounds: int, rng: Generator) -> Reader:
        """The reader for vectors averaged over `rounds`, with the shrinkage that is best on public text."""
        mechanism = knowledge.mechanism

        def received(vectors: Tensor) -> Tensor:
            if not isinstance(mechanism, Pooling):
                return vectors
            return torch.stack([mechanism.noisy(vectors, rng) for _ in range(rounds)]).mean(0)

        counts = Counts.of(public.texts, knowledge.vocabulary)
        centred = torch.cat([received(public.vectors) for _ in range(DRAWS)]) - public.vectors.mean(
            0
        )
        covariance = centred.T @ centred / len(centred)
        seen = received(public.held_out)
        readers = [Reader.of(public.vectors, counts, covariance, s) for s in SHRINKAGES]
        right = [hits(reader.read(seen), public.checks) for reader in readers]
        return readers[int(np.argmax(right))]


@dataclass(frozen=True)
class Counts:
    """Occurrences of tokens in public texts.

    Attributes:
        text, token: [P] distinct pairs of a text and a token that it contains, without special tokens.
        held: [V] number of texts that contain each token.
    """

    text: Tensor
    token: Tensor
    held: Tensor
    texts: int

    @classmethod
    def of(cls, tokens: Tokens, vocabulary: int) -> Counts:
        text, token = pairs(tokens)
        return cls(text, token, torch.bincount(token, minlength=vocabulary), len(tokens))


def pairs(tokens: Tokens) -> tuple[Tensor, Tensor]:
    """[P] the example and the id of each different token of each example, without special tokens."""
    real = ~tokens.special
    example = torch.repeat_interleave(torch.arange(len(tokens)), tokens.lengths)[real]
    both = torch.stack([example, tokens.ids.values[real]], 1)
    found: Tensor = both.unique(dim=0)  # type: ignore[no-untyped-call]
    return found[:, 0], found[:, 1]


@dataclass(frozen=True)
class Reader:
    """Log-odds that a text contains each of K tokens, linear in its vector.

    Attributes:
        tokens: [K] their ids.
        weight, offset: [d, K] and [K].
    """

    tokens: Tensor
    weight: Tensor
    offset: Tensor

    @classmethod
    def of(cls, vectors: Tensor, counts: Counts, covariance: Tensor, shrinkage: float) -> Reader:
        """Discriminants from the vectors [N, d] of public texts and the covariance [d, d] as received."""
        device, n = vectors.device, counts.texts
        tokens = counts.held.nonzero()[:, 0]
        held = counts.held[tokens].to(device).float()
        mean = vectors.mean(0)
        sums = vectors.new_zeros(len(counts.held), vectors.shape[1])
        sums.index_add_(0, counts.token.to(device), (vectors - mean)[counts.text.to(device)])
        # Mean vectors of rare tokens are noisy, so they are shrunk to the mean of all texts.
        with_it = sums[tokens.to(device)] / (held + shrinkage)[:, None]
        without = -with_it * (held / (n - held).clamp(min=1))[:, None]
        ridge = RIDGE * covariance.diagonal().mean() * torch.eye(len(covariance), device=device)
        left, right = (covariance + ridge).cpu(), (with_it - without).T.cpu()
        weight = torch.linalg.solve(left.double(), right.double()).to(vectors)
        half_way = ((with_it + without) / 2 * weight.T).sum(1)
        share = (held + 0.5) / (n + 1)
        return cls(tokens, weight, share.logit() - half_way - mean @ weight)

    def read(self, vectors: Tensor) -> Tensor:
        """[n, R] the likeliest tokens of each text, the likeliest first."""
        scores = vectors.to(self.weight.dtype) @ self.weight + self.offset
        best = scores.topk(min(TOKENS_NAMED, len(self.tokens)), 1).indices
        return self.tokens.to(best.device)[best]


def hits(named: Tensor, tokens: Tokens) -> int:
    """Number of correct tokens among the first k guesses of each text, where k is its number of tokens."""
    text, token = pairs(tokens)
    sizes = torch.bincount(text, minlength=len(tokens)).tolist()
    held = [set(part.tolist()) for part in torch.split(token, sizes)]
    rows: Sequence[list[int]] = named.cpu().tolist()
    return sum(len(own.intersection(row[: len(own)])) for own, row in zip(held, rows, strict=True))
