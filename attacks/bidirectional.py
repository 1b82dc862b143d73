"""bidirectional: inversion of a language model's training texts from representations and gradients together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from leakboard.attacks.token_gradient import cosines, lengths_of
from leakboard.bench.attacking import ReceivedWords, inversion
from leakboard.bench.backbones import NO_LABEL, Backbone, Ragged, Tokens, next_tokens, pieces
from leakboard.bench.contracts import (
    Channel,
    Collected,
    Goal,
    Guess,
    Knows,
    ThreatModel,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import Loop
from leakboard.bench.methods import Attack, Knowledge, Silent, Source, spec_of
from leakboard.bench.tasks import TASK_ITSELF, PublicText

BATCH, PLACES = 16, 256
"""Texts per batch, and positions per batch that are trained on; each position has a score for every word."""
LEARNING_RATE, OF_WEIGHTS, WARMUP = 1e-3, 1e-2, 0.1
"""Learning rates of the linear maps and of the weights of the directions, and the share of warm-up steps."""
RANK = 8
"""Rank of the random change that imitates a secret output layer."""
GATE = 16
"""Units of the layer that weights the directions."""
START = torch.tensor([1.0, 20.0, 0.5, 0.5])
"""Initial weights of the four terms, which are then fitted on public text."""


@dataclass(frozen=True)
class Evidence:
    """For t positions: the received representation of the word, and the gradient at the vector before it.

    Attributes:
        front: [t, d] representations; None if none were sent.
        g, h: [t, d] the gradient and the vector at which it is taken; 0 where there is no label.
    """

    front: Tensor | None
    g: Tensor
    h: Tensor

    def take(self, places: Tensor | slice) -> Evidence:
        front = None if self.front is None else self.front[places]
        return Evidence(front, self.g[places], self.h[places])


class TwoDirections(nn.Module):
    """Scores of words from both directions, weighted by the margin of the best word in each.

    Forward, a linear map leads to rows of E, as in `eia-learned`. Backward, the word is the row of the public
    output layer W for which Wᵀp − W_y is aligned with the gradient, after a linear map, as in `token-gradient`.
    Two more terms are the public model's probability of the word after the noisy text, and the frequency of the
    word. Maps and weights are learnt.

    Args:
        counts: [V] occurrences in public text.
        start: [d + 1, d] initial forward map, with its offset in the last row; None if rows of E are received.
    """

    def __init__(self, base: Backbone, counts: Tensor, start: Tensor | None = None) -> None:
        super().__init__()
        d, device = base.width, base.device
        self.rows, self.head = base.embeddings, base.output_layer()
        self.frequent = ((counts + 0.5) / (counts + 0.5).sum()).log().to(device)
        self.front, self.back = (
            nn.Linear(d, d, device=device),
            nn.Linear(d, d, False, device=device),
        )
        self.spread = self.rows.var(0).sum()
        self.weights = nn.Parameter(START.log().to(device))
        self.gate = nn.Sequential(
            nn.Linear(2, GATE, device=device), nn.Tanh(), nn.Linear(GATE, 4, device=device)
        )
        with torch.no_grad():
            start = torch.eye(d + 1, d) if start is None else start
            self.front.weight.copy_(start[:-1].T)
            self.front.bias.copy_(start[-1])
            self.back.weight.copy_(torch.eye(d))
            for parameter in self.gate[2].parameters():
                parameter.zero_()

    def terms(self, seen: Evidence) -> Tensor:
        """[4, t, V] the forward, backward, language model and frequency scores of every word."""
        has_label = seen.g.norm(dim=1, keepdim=True) > 0
        back = cosines(self.back(seen.g), seen.h, self.head) * has_label
        near = torch.zeros_like(back)
        if seen.front is not None:
            x = self.front(seen.front)
            near = (2 * x @ self.rows.T - self.rows.square().sum(1)) / self.spread
        likely = (seen.h @ self.head.T).log_softmax(1)
        return torch.stack([near, back, likely, self.frequent.expand_as(near)])

    def forward(self, seen: Evidence) -> Tensor:
        """[t, V] scores of every word."""
        terms = self.terms(seen)
        first, second = terms[:2].topk(2).values.unbind(2)
        weights = (self.weights + self.gate((first - second).T)).exp()
        return torch.einsum("ktv,tk->tv", terms, weights)

    def suited(self, seen: Evidence, words: Tensor) -> None:
        """Fit the weights by maximum likelihood of words [t] of public text, with L-BFGS."""
        with torch.no_grad():
            terms = self.terms(seen)
        optimiser = torch.optim.LBFGS([self.weights], max_iter=40, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimiser.zero_grad()
            scores = torch.einsum("ktv,k->tv", terms, self.weights.exp())
            found: Tensor = cross_entropy(scores, words)
            found.backward()  # type: ignore[no-untyped-call]
            return found

        optimiser.step(loss)  # type: ignore[no-untyped-call]


class Bidirectional(Attack):
    """Learn from public text to read words from noisy representations and gradients together.

    The output layer may be secret, but it started as the public one. The attacker imitates it by the public layer
    with random changes of low rank, sends public text through the mechanism, and computes the gradients that such
    a layer would return. Each direction gives scores of every word at every position; their weights depend on how
    well the best word explains the observation. The first pass over the examples is read.

    The authors invert representations with a learned network, and then search for an input with the same
    gradients. Here words are read from their gradients directly, so no search is needed.
    """

    name: ClassVar[str] = "bidirectional"
    source: ClassVar[Source] = Source(
        "Unveiling the Vulnerability of Private Fine-Tuning in Split-Based Frameworks for Large Language "
        "Models: A Bidirectionally Enhanced Attack (Chen et al. 2024)",
        "learning-based attack and bidirectional enhancement, adapted",
        "https://arxiv.org/abs/2409.00960",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL, Goal.INVERSION},
        reads={Channel.REPRESENTATIONS, Channel.GRADIENTS, Channel.ACTIVATIONS},
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT},
    )
    costly: ClassVar[bool] = True
    labels: ClassVar[Literal["classes", "next tokens"]] = "next tokens"

    auxiliary: PublicText = TASK_ITSELF
    """Public text to learn from: `own` for that of the task, or the name of another task."""
    sentences: int = Field(1000, ge=2)
    """Maximum number of auxiliary texts."""
    epochs: int = Field(1, ge=1)
    """Passes over them, each with new noise and new imitated output layers."""
    secrecy: float = Field(0.5, ge=0)
    """Maximum distance of an imitated output layer from the public one, relative to its norm."""

    def readable(self, cut: int) -> frozenset[Channel]:
        """Channels at a cut; without gradients, `eia-learned` and `eia-map` read the representations."""
        return frozenset({Channel.GRADIENTS})

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        arrived = ReceivedWords.of(seen, knowledge, frozenset({Channel.REPRESENTATIONS}))
        if any(m.part for m in seen.messages if m.channel == Channel.GRADIENTS):
            raise Silent(
                "several vectors stand for each gradient; `token-gradient` puts them together"
            )
        sent = _first(seen, Channel.GRADIENTS)
        down = _first(seen, Channel.ACTIVATIONS)
        lengths = torch.from_numpy(lengths_of(sent).copy())
        forward = Channel.REPRESENTATIONS in seen.channels
        front = _first(seen, Channel.REPRESENTATIONS).values if forward else None

        def learn(rng: Generator) -> TwoDirections:
            return self._trained(arrived, forward, rng)

        specs = spec_of(self).model_dump_json(), spec_of(arrived.mechanism).model_dump_json()
        name = f"{self.name}: {specs[0]} against {specs[1]} at {knowledge.cut}, {forward}"
        both = arrived.public.learned.recall(name, learn)

        def held(values: NDArray[Any]) -> Tensor:
            return torch.from_numpy(values.copy()).to(both.head.device)

        places = Evidence(
            None if front is None else held(front),
            *(shift_right(held(each.values), lengths) for each in (sent, down)),
        )
        text = np.zeros(len(sent.values), np.int64)
        with torch.no_grad():
            for _, at in pieces(lengths, len(both.head)):
                text[at] = both(places.take(at)).argmax(1).cpu().numpy()
        labels = np.roll(text, -1)
        where = (Channel.GRADIENTS, "train", sent.rows)
        return [
            Guess(Goal.LABEL, *where, labels, sent.lengths, view="train"),
            Guess(Goal.INVERSION, *where, text, sent.lengths, view="train"),
        ]

    def _trained(self, arrived: ReceivedWords, forward: bool, rng: Generator) -> TwoDirections:
        base, public = arrived.base, arrived.public.tokens
        drawn = torch.from_numpy(rng.permutation(len(public))[: self.sentences])
        tokens = public.take(drawn)
        torch.manual_seed(int(rng.integers(2**31)))
        start = None
        if forward and arrived.cut:
            start = inversion.least_squares(tokens, base.embeddings, arrived.query, rng)
        counts = inversion.token_counts(tokens, len(base.embeddings))
        both = TwoDirections(base, counts, start)

        def imitated(rows: Tensor) -> tuple[Evidence, Tensor]:
            batch = tokens.take(rows)
            places = self._imitated(arrived, batch, forward, rng)
            real = (~batch.special).nonzero()[:, 0]
            real = real[torch.from_numpy(rng.permutation(len(real))[:PLACES])].to(base.device)
            return places.take(real), batch.ids.values.to(base.device)[real]

        def step(rows: Tensor, epoch: int) -> float:
            places, words = imitated(rows)
            loss = cross_entropy(both(places), words)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        both.suited(*imitated(torch.arange(min(BATCH, len(tokens)))))

        settings = TrainSettings(
            epochs=self.epochs,
            batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            weight_decay=0.0,
            warmup=WARMUP,
        )
        maps = [*both.front.parameters(), *both.back.parameters()]
        weighing = [both.weights, *both.gate.parameters()]
        groups: list[dict[str, object]] = [{"params": maps}, {"params": weighing, "lr": OF_WEIGHTS}]
        loop = Loop(settings, int(rng.integers(2**31)), len(base.embeddings))
        loop.fit(step, groups, tokens.lengths)
        return both.requires_grad_(False).eval()

    @torch.no_grad()
    def _imitated(
        self, arrived: ReceivedWords, tokens: Tokens, forward: bool, rng: Generator
    ) -> Evidence:
        """Observations for public tokens, with a random imitated output layer."""
        base, cut = arrived.base, arrived.cut
        front = arrived.query(tokens, rng)
        h = base.family.hidden(base.model, front, tokens.types, cut)
        g = gradients(h, next_tokens(tokens), base.output_layer(), self.secrecy * rng.random())
        lengths = tokens.lengths
        return Evidence(
            front.values if forward else None, shift_right(g, lengths), shift_right(h, lengths)
        )


def gradients(h: Tensor, labels: Tensor, head: Tensor, secrecy: float) -> Tensor:
    """[T, d] W′ᵀ(p′ − y) at vectors h [T, d], 0 without a label; W′ [V, d] is `head` plus a random change.

    Args:
        secrecy: norm of the change relative to `head`.
    """
    one, other = (torch.randn(len(side), RANK, device=head.device) for side in (head, head.T))
    change = one @ other.T
    own = head + secrecy * head.norm() / change.norm() * change
    found = torch.zeros_like(h)
    at = (labels != NO_LABEL).nonzero()[:, 0].to(h.device)
    for places in torch.split(at, PLACES):
        y = one_hot(labels.to(h.device)[places].long(), len(head)).to(h.dtype)
        found[places] = ((h[places] @ own.T).softmax(1) - y) @ own
    return found


def shift_right(values: Tensor, lengths: Tensor) -> Tensor:
    """Values of the preceding position; 0 at the start of a text."""
    moved = values.roll(1, 0)
    moved[Ragged(values, lengths).starts.to(values.device)] = 0
    return moved


def _first(seen: Transcript, channel: Channel) -> Collected:
    return seen.collect(channel, "train", seen.rounds(channel, "train")[0])
