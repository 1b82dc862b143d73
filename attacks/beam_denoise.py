"""beam-denoise: inversion of noisy words whose mechanism is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.attacking import Expected, NoiseLaw, Reader, Smoothing, WordChain, inversion
from leakboard.bench.backbones import Backbone, Ragged, by_length
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Auxiliary, Knowledge, Source
from leakboard.bench.tasks import TASK_ITSELF, PublicText

LEARN = 128
"""Texts from which the noise is estimated; more are only read."""
ROUNDS, STOP = 12, 1e-3
"""Most rounds of estimation, and the gain in log-likelihood per word below which it ends."""
PLACES = 1024
"""Places of texts that are read at once."""
EXACT = 1e-2
"""Distance from a row of E, relative to the mean norm, up to which a vector is that row."""
EVIDENCE = 0.02
"""Log-likelihood per word by which the law must explain more than no noise, and more than noise without a text."""


class BeamDenoise(Attack):
    """Estimate the noise and the text together, without being told the mechanism.

    The law of the noise has three parameters: how fast the chance of an output falls with its distance and its squared
    distance from the word, and how often the word stays. They are estimated by expectation maximisation on the received
    texts alone. The prior is a Markov chain of words in public text. For it, sums over all texts are exact, so they
    replace the paper's beam of likely texts; the guess at each place is the likeliest word. A network as prior, which
    would need a beam, and noise that depends on the text or shifts words are not modelled.

    Rounds of the same text add up. As `eia-nn` does, it gives as many candidates for a token as there were rounds. If no
    noise, or noise that does not depend on the text, explains about as well what arrived, the guess is that of `eia-nn`.
    The public text should be of the customer's domain, since words that are rare in it are taken for noise.
    """

    name: ClassVar[str] = "beam-denoise"
    source: ClassVar[Source] = Source(
        "Beam search with Bayesian denoising under an unknown mechanism",
        "joint estimation of noise and text",
        "https://arxiv.org/abs/2505.13758",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.INVERSION}),
        reads=frozenset({Channel.REPRESENTATIONS, Channel.TOKENS}),
        knows=frozenset({Knows.BASE_WEIGHTS, Knows.AUXILIARY_TEXT}),
    )
    costly: ClassVar[bool] = True

    auxiliary: PublicText = TASK_ITSELF
    """Public text of the prior: `own` for that of the task, or the name of another task."""

    def readable(self, cut: int) -> frozenset[Channel]:
        """Channels at a cut; only at the embedding cut are words compared with rows of E."""
        return self.threat.reads if cut == 0 else frozenset({Channel.TOKENS})

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        base, public = knowledge.base, knowledge.auxiliary
        assert base is not None
        assert public is not None
        by_vector = Channel.REPRESENTATIONS in seen.channels & self.readable(knowledge.cut)
        channel = Channel.REPRESENTATIONS if by_vector else Channel.TOKENS

        def vectors(values: Tensor) -> Tensor:
            return values.float().cpu() if by_vector else base.embeddings[values].cpu()

        def reader(rounds: int) -> Reader:
            return lambda sent: Denoising.of(base, public, sent).read(rng)

        return inversion.reader_guesses(seen, channel, vectors, reader)


@dataclass
class Denoising:
    """Texts of one split under a law of noise and a prior.

    Attributes:
        sent: vectors [T, d] of each round, relative to the mean norm of E.
        rows: [V, d] E, likewise.
        words: [T, R] nearest words.
        fixed: [T] True for special tokens, which have no noise.
        chain: the prior, whose states include `words`.
        law: law of the noise.
    """

    sent: Sequence[Ragged]
    rows: Tensor
    words: Tensor
    fixed: Tensor
    chain: WordChain
    law: NoiseLaw

    @classmethod
    def of(cls, base: Backbone, public: Auxiliary, sent: Sequence[Ragged]) -> Denoising:
        unit = base.embeddings.norm(dim=1).mean().cpu()
        words = torch.stack([inversion.nearest(base, each).cpu() for each in sent], 1)
        rows = base.embeddings.detach().float().cpu() / unit
        scaled = [each.with_values(each.values / unit) for each in sent]
        far = torch.stack(
            [(s.values - rows[w]).norm(dim=1) for s, w in zip(scaled, words.T, strict=True)], 1
        )
        special = torch.isin(words, torch.tensor(sorted(base.special_ids)))
        fixed = (special & (far <= EXACT)).all(1)
        smoothing = public.learned.recall("words in pairs", lambda _: Smoothing.of(public.tokens))
        chain = WordChain.learned(public.tokens, words.flatten(), len(rows), smoothing)
        far = far[~fixed]
        if (far <= EXACT).float().mean() > 0.99:
            law = NoiseLaw.between_rows(rows[chain.words], rows)
        else:
            law = NoiseLaw.around_rows(rows.shape[1], float(far.median()))
        return cls(scaled, rows, words, fixed, chain, law)

    def read(self, rng: np.random.Generator) -> Tensor:
        """[T, R] as many of the likeliest words at each place as there were rounds, or the received ones without noise."""
        some = torch.from_numpy(rng.permutation(len(self.sent[0]))[:LEARN])
        places = self.sent[0].positions(some)
        n, before = max(1, int((~self.fixed[places]).sum())), -np.inf
        for _ in range(ROUNDS):
            batches = [self._batch(rows) for rows in self._rows(some)]
            total = sum(batch.log_likelihood for batch in batches) / n
            if total - before < STOP:
                break
            expected = reduce(add, (batch.expected for batch in batches))
            before, self.law = total, self.law.fitted(expected)
        arrived = self.sent[0].with_values(self.words[:, 0]).take(some)
        clear = self.chain.log_likelihood(arrived) * (len(places) + len(some)) / n
        if not self.law.atom or (self.words != self.words[:, :1]).any():
            clear = -np.inf
        blind = self._without_text()
        nothing = sum(self._batch(rows, blind).log_likelihood for rows in self._rows(some)) / n
        if before - max(clear, nothing) < EVIDENCE:
            return self.words
        found = self.words.clone()
        for rows in self._rows(torch.arange(len(self.sent[0]))):
            found[self.sent[0].positions(rows)] = self._batch(rows).words
        return found

    def _rows(self, of: Tensor) -> Iterator[Tensor]:
        """Texts of similar length, with at most `PLACES` places together."""
        lengths = self.sent[0].lengths[of]
        size = max(1, PLACES // int(lengths.max()))
        return (of[rows] for rows in by_length(lengths, size))

    def _without_text(self) -> Tensor:
        """[T] log-likelihood of the vectors of each place if they have nothing to do with words."""
        if self.law.atom:
            return torch.full((len(self.words),), -len(self.sent) * float(np.log(len(self.rows))))
        norms = torch.stack([each.values.norm(dim=1) for each in self.sent])
        free = norms[:, ~self.fixed]
        sums = (free.sum(), free.square().sum(), torch.zeros(()), torch.full((1,), free.numel()))
        law = NoiseLaw.around_rows(self.rows.shape[1], float(free.median())).fitted(Expected(*sums))
        return law.scores(norms, torch.zeros_like(norms, dtype=torch.bool)).sum(0)

    def _batch(self, rows: Tensor, blind: Tensor | None = None) -> Batch:
        """Some texts, read under the present law; or as if each word explained a vector with log-likelihood `blind` [T]."""
        places, n = self.sent[0].positions(rows), len(self.chain.words)
        words, fixed, known = self.words[places], self.fixed[places], self.chain.words
        distances = torch.stack([self._distances(each.values[places]) for each in self.sent])
        same = (words.T[:, :, None] == known) & self.law.atom
        distances[same] = 0
        scores = torch.stack(
            [self.law.scores(d, s) for d, s in zip(distances, same, strict=True)]
        ).sum(0)
        # Words that are no state are about as likely to give the vector as those that are.
        others = scores.masked_fill(same.any(0), -torch.inf)
        spread = others.softmax(1)
        scores = torch.cat([scores, others.logsumexp(1, keepdim=True) - np.log(n)], 1)
        if blind is not None:
            scores = blind[places, None].repeat(1, n + 1)
        certain = torch.full((int(fixed.sum()), n + 1), -torch.inf)
        certain.scatter_(1, torch.searchsorted(known, words[fixed, :1].contiguous()), 0.0)
        scores[fixed] = certain
        most = scores.amax(1, keepdim=True)
        texts = Ragged((scores - most).exp(), self.sent[0].lengths[rows])
        chances, total = self.chain.posterior(texts.padded(1.0), texts.lengths)
        posterior = texts.unpadded(chances)
        best = posterior.topk(words.shape[1], 1).indices
        guess = torch.where(best < n, known[best.clamp(max=n - 1)], words[:, :1])
        weights = (posterior[:, :n] + posterior[:, n:] * spread)[~fixed]
        distances, same = distances[:, ~fixed], same[:, ~fixed]
        expected = Expected(
            (weights * distances).sum(),
            (weights * distances.square()).sum(),
            (weights * same).sum(),
            len(self.sent) * weights.sum(0),
        )
        return Batch(guess, total + float(most.sum()), expected)

    def _distances(self, vectors: Tensor) -> Tensor:
        """[t, N] distances of vectors [t, d] from the words that are states."""
        rows = self.rows[self.chain.words]
        squared = torch.addmm(rows.square().sum(1), vectors, rows.T, alpha=-2)
        return squared.add_(vectors.square().sum(1, keepdim=True)).clamp_(min=0).sqrt_()


@dataclass(frozen=True)
class Batch:
    """The likeliest words [t, R] of some texts, their log-likelihood, and what the next law is fitted on."""

    words: Tensor
    log_likelihood: float
    expected: Expected
