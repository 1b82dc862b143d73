"""retrieval: identification of the sent text among N candidates, by the likelihood of the message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import embedding

from leakboard.bench.attacking import inversion
from leakboard.bench.backbones import Backbone, Ragged, manhattan
from leakboard.bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from leakboard.bench.defending import Pooling, Substituting, as_sequences, rescale_rows, words_of
from leakboard.bench.methods import Attack, Auxiliary, Knowledge, Silent, Source

CHANNELS = (Channel.REPRESENTATIONS, Channel.TOKENS, Channel.ACTIVATIONS)
"""The first of these that was sent is read."""
DRAWS = 8
"""Answers of the customer's side to each candidate, whose mean is taken, with `access: query`."""
IMPOSSIBLE = -1e4
"""Log-likelihood of a special token in another place, since these are sent unchanged."""

EQUAL = 1e-5
"""Squared distance, relative to the sum of the squared norms, that single precision cannot tell from 0. It is subtracted, so
that vectors that are equal are at distance 0."""
SAMPLE, COMMON = 16, 0.9
"""If a vector that is common to candidates, as a sample of them shows, has this share of their squared norms, it is subtracted
first, since it costs precision."""
ENTRIES = 1 << 24
"""Distances that are computed at once, which bounds memory."""

Scorer = Callable[[Ragged, Ragged], Tensor]
"""Received examples and candidates, all of one length → log-likelihoods [m, k] up to a factor."""


class Retrieval(Attack):
    """Choose the candidate under which the received message is the likeliest.

    Under the Laplace noise of pooled vectors the log-likelihood is −ε times the L1 distance to the vector of the
    candidate, which the attacker rescales as the mechanism does. Under dχ noise it is about −η times the sum of
    the Euclidean distances of all tokens; where a token is replaced by a noisy neighbour, that is an approximation.
    Mechanisms that draw words state the probability of each. Without noise the match is exact. Log-likelihoods
    of repeated messages add up. Lengths are not protected, so only candidates of the received length count, and
    chance accounts for that.
    """

    name: ClassVar[str] = "retrieval"
    source: ClassVar[Source] = Source(
        "Leakboard",
        "adaptive attack; matching by likelihood as in Unique in the Crowd (de Montjoye et al. 2013)",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.REIDENTIFICATION},
        reads=CHANNELS,
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.CANDIDATES, Knows.QUERIES},
    )
    idle_in_clear: ClassVar[bool] = True

    access: Literal["mechanism", "query"] = "mechanism"
    """Mechanism: the attacker knows the base model and the mechanism. Query: it sees what the customer's side sends,
    after training, for the candidates."""
    candidates: int = Field(1000, ge=2)
    """Number N of texts among which the truth is: recorded texts of the customer and public ones. It is larger where
    more texts are recorded, and smaller where there are too few."""
    absent: bool = False
    """Leave out half of the recorded texts from the candidates, and rank all by how likely they are among them: by
    how far the best candidate is ahead of the second, relative to its own distance, since the size of the noise says
    nothing. Success is then the AUC."""

    younger: ClassVar[frozenset[str]] = frozenset({"absent"})

    @property
    def needs(self) -> frozenset[Knows]:
        other = Knows.MECHANISM if self.access == "query" else Knows.QUERIES
        return self.threat.knows - {other}

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.texts is not None
        channel = next((each for each in CHANNELS if seen.splits(each)), None)
        if channel is None:
            return []
        scorer, found = self._scorer(knowledge, channel), []
        for split in seen.splits(channel):
            if split not in knowledge.texts:  # answers, which no candidate contains
                continue
            blocks = [seen.collect(channel, split, r) for r in seen.rounds(channel, split)]
            rounds = []
            for block in blocks:
                values = torch.from_numpy(block.values.copy()).to(knowledge.device)
                lengths = block.lengths
                if lengths is None:
                    rounds.append(as_sequences(values))
                    continue
                if channel == Channel.TOKENS:
                    assert knowledge.base is not None
                    values = embedding(values, knowledge.base.embeddings)
                rounds.append(Ragged(values, torch.from_numpy(lengths.copy())))
            best, likely = self._best(
                rounds, knowledge.texts[split], knowledge, channel, scorer, rng
            )
            rows, goal = blocks[0].rows, Goal.REIDENTIFICATION
            found.append(
                Guess(goal, channel, split, rows, likely, view=split, measure="auc")
                if self.absent
                else Guess(goal, channel, split, rows, best, view=split)
            )
        return found

    def _best(
        self,
        rounds: Sequence[Ragged],
        texts: Auxiliary,
        knowledge: Knowledge,
        channel: Channel,
        scorer: Scorer,
        rng: Generator,
    ) -> tuple[Ints, NDArray[np.float64]]:
        """[n] the likeliest candidate of each example, and [n] how far it is ahead of the second (`lead`)."""
        pooled = channel == Channel.ACTIVATIONS
        lengths = torch.ones(len(texts.tokens)).long() if pooled else texts.tokens.lengths
        best = torch.zeros(len(rounds[0]), dtype=torch.long)
        likely = torch.full((len(rounds[0]),), IMPOSSIBLE, dtype=torch.double)
        for length in np.unique(rounds[0].lengths):
            mine = (rounds[0].lengths == length).nonzero()[:, 0]
            like = (lengths == length).nonzero()[:, 0]
            if not len(like):
                continue
            clean = self._sent(texts, like, knowledge, channel, rng)
            width = rounds[0].values.shape[1]
            if clean.values.shape[1] != width:
                raise Silent(
                    f"what was sent has {width} numbers per text, and what the attacker makes of a candidate "
                    f"{clean.values.shape[1]}"
                )
            total = sum(scorer(each.take(mine), clean) for each in rounds)
            assert isinstance(total, Tensor)
            best[mine] = like[total.argmax(1).cpu()]
            likely[mine] = lead(total)
        return best.numpy(), likely.numpy()

    def _sent(
        self,
        texts: Auxiliary,
        rows: Tensor,
        knowledge: Knowledge,
        channel: Channel,
        rng: Generator,
    ) -> Ragged:
        """Messages for some candidates, without noise."""
        tokens, base, mechanism = texts.tokens.take(rows), knowledge.base, knowledge.mechanism
        if self.access == "query":
            assert knowledge.query is not None
            answers = [knowledge.query(tokens, rng) for _ in range(DRAWS)]
            return answers[0].with_values(torch.stack([each.values for each in answers]).mean(0))
        assert base is not None
        if channel == Channel.ACTIVATIONS:
            if isinstance(mechanism, Pooling) and not mechanism.public:
                raise Silent(
                    f"{mechanism.name} sends what the customer's own layers make of a text; with `access: query` "
                    "the attacker asks the customer's side"
                )
            return as_sequences(rescale_rows(base.pooled_singly(tokens)))
        words = tokens.ids.embedded(base.embeddings)
        cut = 0 if channel == Channel.TOKENS else knowledge.cut
        with torch.no_grad():
            return base.bottom(words, tokens.types, cut)

    def _scorer(self, knowledge: Knowledge, channel: Channel) -> Scorer:
        base, mechanism = knowledge.base, knowledge.mechanism
        if self.access == "query" or mechanism is None:
            return lambda received, clean: -distances(received, clean)
        if isinstance(mechanism, Pooling):
            return lambda received, clean: (
                -manhattan(rescaled(received, mechanism).values, clean.values)
            )
        if isinstance(mechanism, Substituting) and not mechanism.undefended:
            assert base is not None
            return lambda received, clean: log_chances(received, clean, mechanism, base)
        return lambda received, clean: -distances(received, clean)


def rescaled(received: Ragged, mechanism: Pooling) -> Ragged:
    """Pooled vectors; as released code sends them, rescaling removes a number that is added to all dimensions."""
    return as_sequences(rescale_rows(received.values)) if mechanism.as_released else received


def lead(total: Tensor) -> Tensor:
    """[m] difference of the two largest log-likelihoods [m, k] ≤ 0 of each row, relative to the largest."""
    best, second = total.topk(min(2, total.shape[1]), 1).values.cpu().double().T[[0, -1]]
    if total.shape[1] == 1:
        second = best - 1
    ahead: Tensor = (best - second) / (-best).clamp(min=1e-9)
    return ahead


def distances(received: Ragged, clean: Ragged) -> Tensor:
    """[m, k] sums over all positions of the Euclidean distances of examples of one length, by matrix products."""
    length = int(received.lengths[0])
    far, near = (
        each.values.float().reshape(len(each), length, -1).transpose(0, 1)
        for each in (received, clean)
    )
    some = near[:, :SAMPLE]
    middle = some.mean(1, keepdim=True)
    if middle.square().sum() > COMMON * some.square().mean(1).sum():
        far, near = far - middle, near - middle
    one, other = (torch.linalg.vector_norm(each, dim=2).square() for each in (far, near))
    total = far.new_zeros(len(received), len(clean))
    step = max(1, ENTRIES // total.numel())
    for at in range(0, length, step):
        part = slice(at, at + step)
        squares = (one[part, :, None] + other[part, None]).mul_(1 - EQUAL)
        squared = torch.baddbmm(squares, far[part], near[part].transpose(1, 2), alpha=-2)
        total += squared.clamp_(min=0).sqrt_().sum(0)
    return total


def log_chances(received: Ragged, clean: Ragged, mechanism: Substituting, base: Backbone) -> Tensor:
    """[m, k] log-probabilities that each candidate is sent as the received words, of examples of one length."""
    length = int(received.lengths[0])
    got, own = (
        inversion.nearest(base, each).cpu().reshape(len(each), length) for each in (received, clean)
    )
    sent, sent_at = distinct(got)
    words, word_at = distinct(own)
    fixed = torch.ones(len(base.embeddings), dtype=torch.bool)
    fixed[words_of(base)] = False
    table = torch.full((len(sent), len(words)), IMPOSSIBLE)
    free, drawn = (~fixed[each] for each in (sent, words))
    if free.any() and drawn.any():
        chances = mechanism.log_chances(words[drawn], base)(sent[free]).float().cpu()
        table[free.nonzero(), drawn.nonzero()[:, 0]] = chances.clamp(min=IMPOSSIBLE)
    table[(sent[:, None] == words) & fixed[sent][:, None]] = 0.0
    return sum(table[sent_at[:, t]][:, word_at[:, t]] for t in range(length))  # type: ignore[return-value]


def distinct(ids: Tensor) -> tuple[Tensor, Tensor]:
    """The different ids, and the place of each of `ids` among them."""
    found: tuple[Tensor, Tensor] = ids.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    return found
