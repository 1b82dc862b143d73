"""RAPT: the customer sends privatised text; the vendor tunes a prompt and reconstructs noisy public tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones import Backbone, Prompted, Ragged, Tokens, score_loss
from leakboard.bench.contracts import (
    WITH_HEAD,
    Channel,
    Claim,
    Envelope,
    Goal,
    LeakboardError,
    Objective,
)
from leakboard.bench.defending import Eta, privatise_tokens
from leakboard.bench.exchange import Predictor, Session, Tuned
from leakboard.bench.methods import Defense, Source

LENGTHS = {"prompt": 150, "prefix": 10}
"""Number of vectors in front of a text, as in the paper."""


class RAPT(Defense):
    """Replace tokens by noisy neighbours, sent once as ids, with the labels in the clear.

    The same m plain tokens k precede each text and are privatised with it, again for every example. The vendor
    holds a frozen model; it trains the prompt, the head of the task, and a head that reconstructs k from the
    outputs at these tokens. k reveals nothing about a text: it is public, and its noise is independent.
    """

    name: ClassVar[str] = "rapt"
    display_name: ClassVar[str] = "RAPT"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving Prompt Tuning for Large Language Model Services (Li et al. 2023)",
        "first version, section 3",
        "https://arxiv.org/abs/2305.06212v1",
    )
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.TOKENS, Channel.LABELS, Channel.LOGITS}
    )
    objectives: ClassVar[frozenset[Objective]] = WITH_HEAD
    knob: ClassVar[str | None] = "eta"
    switch: ClassVar[str | None] = "eta"
    colour: ClassVar[str] = "#cc79a7"
    marker: ClassVar[str] = "^"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {
        Goal.INVERSION: ("eia-nn",),
        Goal.ATTRIBUTE: ("aia-mlp",),
    }
    """Appendix A.3: the nearest neighbour, and a network of 768 units on the mean of the received vectors."""

    eta: Eta = 75.0
    """Privacy parameter η of dχ-privacy, above 0; smaller values hide more; "none" sends the original text."""
    kind: Literal["prefix", "prompt"] = "prefix"
    """A prefix consists of keys and values in each block, a prompt of word embeddings; the paper has both."""
    length: int | None = Field(None, ge=1)
    """Number of these vectors; None for the paper's: 10 for a prefix, 150 for a prompt."""
    rate: float | None = Field(None, gt=0)
    """Learning rate of all trained parts; None for that of the suite. A rate for LoRA is too small for a prompt;
    at the paper's 6e-5 a small model hardly changes."""
    reconstruction: bool = True
    """Whether plain tokens are reconstructed; without this it is prompt tuning on privatised text."""
    plain: int = Field(40, ge=1)
    """m, the length of k."""
    contents: int = Field(0, ge=0)
    """Number of the draw of k; the paper finds that it does not matter (its Table 5)."""
    sequences: int = Field(1, ge=1)
    """Number of sequences k from which that of each example is drawn (its Figure 4a)."""
    says: str = ""
    """Text of k, repeated up to its length, instead of a random draw."""
    width: int = Field(96, ge=1)
    """c, the width between the two layers of the reconstruction head."""
    targets: int = Field(7630, ge=1)
    """|T|, the number of tokens that the head tells apart, including those of k; at most the vocabulary."""

    def claim(self) -> Claim | None:
        if self.eta is None:
            return None
        return Claim(
            guarantee="dχ-privacy (Euclidean distance of the word embeddings)",
            parameters={"eta": self.eta},
            covers="each token, once; special tokens, lengths and labels are not covered",
            unit="vector",
        )

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        """The privatised `tokens`, without plain tokens, whose noise is independent."""
        ids = self._privatised(base, tokens.ids.values, tokens.special, rng)
        return tokens.ids.with_values(ids).embedded(base.embeddings)

    def _privatised(self, base: Backbone, ids: Tensor, special: Tensor, rng: Generator) -> Tensor:
        """[T] ids with those that are not special replaced, by the mechanism of SAP at cut 0."""
        out = ids.clone()
        if self.eta is not None:
            out[~special] = privatise_tokens(
                ids[~special], base.embeddings, base.neighbours, self.eta, rng
            )
        return out

    def fine_tune(self, session: Session) -> Tuned:
        wire, train, base = session.wire, session.train, session.backbone
        if self.plain > session.settings.max_length:
            raise LeakboardError(
                f"plain: {self.plain} plain tokens are more than an example has, which is at most "
                f"train.max_length = {session.settings.max_length}"
            )
        public = self._plain_tokens(base, len(train), session.seeds.initialisation)
        vendor = Vendor(self, session, public)
        received = self._sent(session, train, session.all_rows, "train", public.of_rows())
        labels = wire.send(Channel.LABELS, session.labels, session.all_rows)
        targets = public.targets().to(session.device)

        def step(rows: Tensor, epoch: int) -> float:
            with session.autocast():
                plain, features = vendor(received.take(rows))
            task = score_loss(vendor.scores(features), labels[rows].to(session.device))
            total = task
            if self.reconstruction:
                total = total + cross_entropy(vendor.rebuilt(plain), targets[rows].flatten())
            total.backward()  # type: ignore[no-untyped-call]
            return task.item()  # of this guessing is known, by which divergence is judged

        group: dict[str, object] = {"params": [vendor.prompted.front, *vendor.heads()]}
        own = {} if self.rate is None else {"lr": self.rate}
        session.fit(step, group | own, lengths=received.lengths)

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            first = public.sequences[:1].expand(len(rows), -1)
            arrived = self._sent(session, tokens, rows, split, first)
            with session.autocast():
                _, features = vendor(arrived)
            answer = Envelope(split=split, sender="vendor")
            return wire.send(Channel.LOGITS, vendor.scores(features), rows, answer)

        return Predictor(score, vendor)

    def _plain_tokens(self, base: Backbone, n: int, seed: int) -> Plain:
        """k and the vocabulary of its head, both drawn by a public rule."""
        rng = np.random.default_rng([seed, self.contents])
        special = set(base.special_ids)
        words = np.array([i for i in range(len(base.embeddings)) if i not in special])
        if self.says:
            ids = base.tokenizer(self.says, add_special_tokens=False)["input_ids"]
            tokens = np.unique(np.resize(ids, self.plain)) if ids else words[:0]
            if not 0 < len(tokens) <= self.targets:
                raise LeakboardError(
                    f"targets: must hold the tokens of k; says = {self.says!r:.60} has {len(tokens)} "
                    f"different ones, got {self.targets}"
                    if ids
                    else f"says: {self.says!r:.60} has no token"
                )
            k = np.resize(ids, (1, self.plain))
            rest = np.setdiff1d(words, tokens)
            vocabulary = np.append(tokens, rng.permutation(rest)[: self.targets - len(tokens)])
        else:
            vocabulary = rng.permutation(words)[: self.targets]
            k = rng.choice(vocabulary, (self.sequences, self.plain))
        which = rng.integers(len(k), size=n)
        return Plain(*(torch.from_numpy(each) for each in (k, np.sort(vocabulary), which)))

    def _sent(
        self, session: Session, tokens: Tokens, rows: Tensor, split: str, plain: Tensor
    ) -> Received:
        """Send texts and the plain tokens [B, m] in front of each, and return what arrives.

        They are sent as two messages, so that an attack reads the text alone; the vendor joins them.
        """
        base, rng, ids = session.backbone, session.noise, tokens.ids
        text = ids.with_values(self._privatised(base, ids.values, tokens.special, rng))
        text = session.wire.send(Channel.TOKENS, text, rows, Envelope(split=split))
        # Plain tokens are inserted behind the special tokens at the start of a text.
        lead = tokens.special[ids.starts].long()
        if not self.reconstruction:
            return Received(text, tokens.types, text.with_values(torch.zeros_like(tokens.special)))
        m = plain.shape[1]
        flat = plain.flatten()
        noisy = self._privatised(base, flat, torch.zeros_like(flat, dtype=torch.bool), rng)
        sent = Ragged(noisy, torch.full((len(rows),), m))
        sent = session.wire.send(Channel.TOKENS, sent, rows, Envelope(split=split, part=1))
        return joined(sent, text, tokens.types, lead)


@dataclass(frozen=True)
class Plain:
    """Plain tokens, known to both parties.

    Attributes:
        sequences: [S, m] token ids.
        vocabulary: [|T|] sorted token ids, those of the sequences among them.
        which: [n] the sequence in front of each training example.
    """

    sequences: Tensor
    vocabulary: Tensor
    which: Tensor

    def of_rows(self) -> Tensor:
        """[n, m] the sequence of each training example."""
        return self.sequences[self.which]

    def targets(self) -> Tensor:
        """[n, m] where the tokens of each stand in the vocabulary."""
        return torch.searchsorted(self.vocabulary, self.of_rows())


@dataclass(frozen=True)
class Received:
    """Texts with plain tokens in front, as the vendor has them.

    Attributes:
        ids: token ids.
        types: [T] segments.
        plain: [T] True at plain tokens, in the lengths of `ids`.
    """

    ids: Ragged
    types: Tensor
    plain: Ragged

    @property
    def lengths(self) -> Tensor:
        return self.ids.lengths

    def take(self, rows: Tensor) -> Received:
        ids, plain = self.ids.take(rows), self.plain.take(rows)
        return Received(ids, self.types[self.ids.positions(rows)], plain)


def joined(plain: Ragged, text: Ragged, types: Tensor, lead: Tensor) -> Received:
    """Insert the plain tokens, equally many everywhere, behind the first `lead` [B] tokens of each text."""
    lengths = plain.lengths + text.lengths
    first = lengths.cumsum(0) - lengths + lead
    inside = torch.zeros(int(lengths.sum()), dtype=torch.bool)
    inside[first[:, None] + torch.arange(len(plain.values) // len(text))] = True
    ids, segments = (torch.zeros(len(inside), dtype=torch.long) for _ in range(2))
    ids[inside], ids[~inside] = plain.values, text.values
    segments[~inside] = types.long()
    return Received(Ragged(ids, lengths), segments, Ragged(inside, lengths))


class Vendor(nn.Module):
    """A frozen model with a prompt or prefix, a head for the task, and one that reconstructs plain tokens."""

    def __init__(self, defense: RAPT, session: Session, public: Plain) -> None:
        super().__init__()
        length = defense.length or LENGTHS[defense.kind]
        self.prompted = Prompted(session.network(adapted=False), defense.kind, length)
        self.rebuild: nn.Module | None = None
        if defense.reconstruction:
            # Two linear layers without an activation function between them.
            inner = nn.Linear(session.backbone.width, defense.width, bias=False)
            outer = nn.Linear(defense.width, len(public.vocabulary), bias=False)
            self.rebuild = nn.Sequential(inner, outer).to(session.device)
        self.train()

    def heads(self) -> list[nn.Parameter]:
        rebuild = self.rebuild.parameters() if self.rebuild else ()
        return [*self.prompted.network.head.parameters(), *rebuild]

    def forward(self, received: Received) -> tuple[Tensor, Tensor]:
        """Outputs at the plain tokens [B·m, d], and the mean [B, d] of the others of each example."""
        out = self.prompted(received.ids, received.types)
        # Indices are found on the CPU, since a mask would wait for a GPU.
        marked = received.plain.values.cpu()
        plain, others = (which.nonzero()[:, 0].to(out.device) for which in (marked, ~marked))
        example = torch.arange(len(received.lengths)).repeat_interleave(received.lengths)[~marked]
        sizes = example.bincount(minlength=len(received.lengths)).to(out.device)
        sums = out.new_zeros(len(sizes), out.shape[1])
        sums = sums.index_add(0, example.to(out.device), out[others])
        return out[plain], sums / sizes[:, None]

    def scores(self, features: Tensor) -> Tensor:
        """Class scores [B, C]."""
        return self.prompted.network.head(features.float())  # type: ignore[no-any-return]

    def rebuilt(self, plain: Tensor) -> Tensor:
        """Scores [B·m, |T|] of the original plain tokens."""
        assert self.rebuild is not None
        return self.rebuild(plain.float())  # type: ignore[no-any-return]
