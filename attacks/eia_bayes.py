"""Inversion of text-to-text mechanisms by Bayes' rule, one token at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from attacks.eia_map import candidates, nearest
from bench.attacking import Posterior, Reader, inverting, posterior_bound
from bench.backbones import Ragged, Tokens
from bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from bench.methods import Attack, Knowledge, Source, spec_of
from bench.tasks import OWN, PublicText

PAIRS, HELD_OUT = 1000, 1500
"""Public tokens from which the likelihood is fitted, five numbers, and on which it is tried."""
SURE = 2.0
"""Standard errors by which it must be ahead of the nearest neighbour there, to take its place."""


class BayesInversion(Attack):
    """Weighs how frequent a token is against how likely the mechanism makes of it what arrived.

    It knows what `eia-nn` knows, the mechanism, and how frequent tokens are in public text; nothing of
    contexts, which `eia-map` reads. Where it is not clearly ahead of the nearest neighbour on public
    text that it did not fit, its guess is that of `eia-nn`, as without a mechanism. Customers' words that
    public text lacks are what it loses; where that is of another domain there are more of them.

    Beside its success stands the largest one that the guarantee of the mechanism leaves to anybody who
    knows as much of single tokens.
    """

    name: ClassVar[str] = "eia-bayes"
    source: ClassVar[Source] = Source(
        "Leakboard",
        "adaptive attack; Bayesian adversaries as in Privacy- and Utility-Preserving Textual "
        "Analysis (Feyisetan et al. 2020)",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.INVERSION}),
        reads=frozenset({Channel.REPRESENTATIONS, Channel.TOKENS}),
        knows=frozenset({Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT}),
    )

    auxiliary: PublicText = OWN
    """Public text to count tokens in: that of the task itself, or of another task, by its name."""

    def readable(self, cut: int) -> frozenset[Channel]:
        """Words are replaced only at the embedding cut, or where ids are sent."""
        return self.threat.reads if cut == 0 else frozenset({Channel.TOKENS})

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        base, mechanism, public = knowledge.base, knowledge.mechanism, knowledge.auxiliary
        assert base is not None
        assert mechanism is not None
        assert public is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels & self.readable(knowledge.cut)
        channel = Channel.REPRESENTATIONS if by_vector else Channel.TOKENS
        embeddings = base.embeddings

        def vectors(values: Tensor) -> Tensor:
            values = values.to(base.device)
            return values if by_vector else embeddings[values]

        copied = partial(candidates, base, by_vector)
        if mechanism.simulate(base, public.tokens.take(torch.arange(1)), 0, rng) is None:
            return inverting.guesses(seen, channel, vectors, lambda rounds: copied)

        def query(tokens: Tokens, rng: np.random.Generator) -> Ragged:
            return inverting.received(mechanism, base, tokens, 0, rng)

        def learn(rng: np.random.Generator) -> tuple[Posterior, Tokens, Tensor]:
            order = rng.permutation(len(public.tokens))
            used, held_out, rest = (
                public.tokens.take(torch.from_numpy(part)) for part in parts(public.tokens, order)
            )
            # Elsewhere than where it is fitted and tried: of the customers' words some are not in it, either.
            counts = counted(rest, len(embeddings))
            sent = nearest(base, query(used, rng)).cpu()[~used.special]
            truth = used.ids.values[~used.special]
            return Posterior.fitted(embeddings, counts, truth, sent), held_out, counts

        specs = spec_of(self).model_dump_json(), spec_of(mechanism).model_dump_json()
        posterior, held_out, counts = public.learned.recall(" against ".join(specs), learn)

        def inferred(rounds: Sequence[Ragged]) -> Tensor:
            return posterior.read(torch.stack([nearest(base, each).cpu() for each in rounds], 1))

        @cache
        def reader(rounds: int) -> Reader:
            seen = [query(held_out, rng) for _ in range(rounds)]
            ahead = right(inferred(seen), held_out) - right(copied(seen), held_out)
            return inferred if ahead.sum() > SURE * ahead.square().sum().sqrt() else copied

        found = inverting.guesses(seen, channel, vectors, reader)
        claim = mechanism.claim()
        if claim is None or "eta" not in claim.parameters:
            return found
        times = len(seen.rounds(channel, found[0].split))
        most = posterior_bound(embeddings, counts, times * claim.parameters["eta"])
        return [replace(guess, bound=most) for guess in found]


def counted(tokens: Tokens, vocabulary: int) -> Tensor:
    """[V] how often each token occurs, special ones left out."""
    return torch.bincount(tokens.ids.values[~tokens.special], minlength=vocabulary)


def parts(tokens: Tokens, order: Ints) -> tuple[Ints, Ints, Ints]:
    """Of texts in that order so many as hold `PAIRS` tokens, those behind them that hold `HELD_OUT`, the rest.

    Where there are too few, a third of them each.
    """
    held = np.cumsum(tokens.lengths.numpy()[order])
    first, last = np.searchsorted(held, (PAIRS, PAIRS + HELD_OUT))
    most = len(order) // 3
    first = min(int(first) + 1, most)
    last = min(int(last) + 1, first + most)
    return order[:first], order[first:last], order[last:]


def right(words: Tensor, tokens: Tokens) -> Tensor:
    """[t] 1 where a token that is not special is among those guessed of it, [T] or [T, R]."""
    truth = tokens.ids.values[:, None]
    hit = (words.reshape(len(truth), -1) == truth).any(1)
    return hit[~tokens.special].double()
