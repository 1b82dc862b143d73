"""eia-bayes: inversion of text-to-text mechanisms by Bayes' rule, one token at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from leakboard.bench.attacking import (
    Posterior,
    Reader,
    ReceivedWords,
    StatedPosterior,
    inversion,
    posterior_bound,
)
from leakboard.bench.backbones import Ragged, Tokens
from leakboard.bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from leakboard.bench.defending import Substituting
from leakboard.bench.methods import Attack, Knowledge, Source, spec_of
from leakboard.bench.tasks import TASK_ITSELF, PublicText

PAIRS, HELD_OUT = 1000, 1500
"""Public tokens on which a likelihood of five parameters is fitted, and on which it is validated."""
SURE = 2.0
"""Standard errors by which it must beat the nearest neighbour on validation text to replace it."""


class BayesInversion(Attack):
    """Combine the frequency of each token with its probability of producing the received token.

    It uses the mechanism and token frequencies of public text, but no context, which `eia-map` reads. Mechanisms
    that draw words state the likelihood; for mechanisms that take the nearest neighbour of a noisy vector it is
    fitted. Log-likelihoods of repeated messages add up, and as `eia-nn` does, it gives as many candidates for a token as
    there were messages. If it does not clearly beat the nearest neighbour on held-out public text, its guess is that of
    `eia-nn`, as it is without a mechanism. It misses words that public text lacks, which are more if that is of
    another domain.

    The record also holds the largest success that the mechanism's guarantee permits to any attacker with this
    knowledge of single tokens.
    """

    name: ClassVar[str] = "eia-bayes"
    source: ClassVar[Source] = Source(
        "Leakboard",
        "adaptive attack; Bayesian adversaries as in Privacy- and Utility-Preserving Textual "
        "Analysis (Feyisetan et al. 2020)",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION},
        reads={Channel.REPRESENTATIONS, Channel.TOKENS},
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT},
    )

    version: ClassVar[int] = 4

    auxiliary: PublicText = TASK_ITSELF
    """Public text in which tokens are counted: `own` for that of the task, or the name of another task."""

    def readable(self, cut: int) -> frozenset[Channel]:
        """Channels at a cut; words are replaced only at the embedding cut, or where ids are sent."""
        return self.threat.reads if cut == 0 else frozenset({Channel.TOKENS})

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        arrived = ReceivedWords.of(seen, knowledge, self.readable(knowledge.cut))
        base, mechanism, public = arrived.base, arrived.mechanism, arrived.public
        embeddings = base.embeddings
        if not arrived.simulated(rng):
            return arrived.guesses(lambda rounds: arrived.copied)

        def learn(rng: Generator) -> tuple[Posterior | StatedPosterior, Tokens, Tensor]:
            used, held_out, rest = (
                public.tokens.take(torch.from_numpy(part)) for part in parts(public.tokens, rng)
            )
            counts = inversion.token_counts(rest, len(embeddings))
            if isinstance(mechanism, Substituting) and not mechanism.undefended:
                stated = StatedPosterior.of(partial(mechanism.log_chances, base=base), counts)
                return stated, held_out, counts
            sent = inversion.nearest(base, arrived.query(used, rng)).cpu()[~used.special]
            truth = used.ids.values[~used.special]
            return Posterior.fitted(embeddings, counts, truth, sent), held_out, counts

        specs = spec_of(self).model_dump_json(), spec_of(mechanism).model_dump_json()
        posterior, held_out, counts = public.learned.recall(" against ".join(specs), learn)

        def inferred(rounds: Sequence[Ragged]) -> Tensor:
            return posterior.read(arrived.copied(rounds))

        @cache
        def reader(rounds: int) -> Reader:
            tried = [arrived.query(held_out, rng) for _ in range(rounds)]
            ahead = right(inferred(tried), held_out) - right(arrived.copied(tried), held_out)
            sure = ahead.sum() > SURE * ahead.square().sum().sqrt()
            return inferred if sure else arrived.copied

        found = arrived.guesses(reader)
        claim = mechanism.claim()
        if claim is None or "eta" not in claim.parameters:
            return found

        @cache
        def most(times: int) -> float:
            return posterior_bound(embeddings, counts, times * claim.parameters["eta"], times)

        return [replace(guess, bound=most(guess.values.shape[1])) for guess in found]


def parts(tokens: Tokens, rng: Generator) -> tuple[Ints, Ints, Ints]:
    """Texts with `PAIRS` tokens, texts with `HELD_OUT` tokens, and texts of other sources.

    Words that the third part lacks are then as frequent as for customers' texts (`inversion.sample_sources`).
    With too few texts or sources, each part gets a third of the texts.
    """
    needed = 2 * (PAIRS + HELD_OUT) / max(1, int(tokens.lengths.sum()))
    known = inversion.sample_sources(tokens, max(1 / 3, 1 - needed))
    order = rng.permutation(len(tokens))
    like = order[~known[order]]
    held = np.cumsum(tokens.lengths.numpy()[like])
    first, last = np.searchsorted(held, (PAIRS, PAIRS + HELD_OUT)) + 1
    if last > len(like) or not known.any():
        first, last = len(order) // 3, 2 * (len(order) // 3)
        return order[:first], order[first:last], order[last:]
    return like[:first], like[first:last], np.flatnonzero(known)


def right(words: Tensor, tokens: Tokens) -> Tensor:
    """[t] 1 for each token that is not special and is among its guesses, [T] or [T, R]."""
    truth = tokens.ids.values[:, None]
    hit = (words.reshape(len(truth), -1) == truth).any(1)
    return hit[~tokens.special].double()
