"""Code shared by defenses that replace words independently by random words (SanText+, CusText+)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from leakboard.bench.backbones import Backbone, Ragged, Tokens
from leakboard.bench.contracts import WITH_HEAD, Channel, Goal, Objective
from leakboard.bench.defending.mechanisms import Epsilon
from leakboard.bench.defending.splitting import fit_on_sent, predictor
from leakboard.bench.exchange import OutputLayer, Session, Tuned
from leakboard.bench.methods import Conditions, Defense, Stage


class Substituting(Defense):
    """The customer sends other words; all else is as in SAP at the embedding cut with a frozen bottom.

    Their papers hand out sanitised text and leave open how a model is tuned on it; so they differ from SAP
    in the mechanism alone. They draw words of GloVe or of counter-fitted vectors, here it is tokens of
    the model, by its own embeddings, as SAP has it.
    """

    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.REPRESENTATIONS, Channel.LOGITS, Channel.LOGIT_GRADIENTS}
    )
    objectives: ClassVar[frozenset[Objective]] = WITH_HEAD
    knob: ClassVar[str | None] = "epsilon"
    switch: ClassVar[str | None] = "epsilon"
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.INVERSION})
    stage: ClassVar[Stage | None] = "inputs"

    epsilon: Epsilon
    """Privacy parameter ε, above 0; smaller hides more; "none" sends all words as they are."""

    def skip(self, conditions: Conditions) -> str | None:
        return (
            f"{self.name} replaces words, before the first block; set cut: 0"
            if conditions.cut
            else None
        )

    @abstractmethod
    def drawn(self, ids: Tensor, base: Backbone, rng: np.random.Generator) -> Tensor:
        """[T] what stands for each of the words `ids` [T], none of which is special; ε is not "none"."""

    @abstractmethod
    def log_chances(self, words: Tensor, base: Backbone) -> Callable[[Tensor], Tensor]:
        """Of ids [n] the log-probabilities [n, K] that they are sent for each of `words` [K]; ε is not "none"."""

    def replaced(self, tokens: Tokens, base: Backbone, rng: np.random.Generator) -> Ragged:
        """Ids [T] with fresh draws for all that are not special."""
        ids = tokens.ids.values.clone()
        if self.epsilon is not None:
            ids[~tokens.special] = self.drawn(ids[~tokens.special], base, rng)
        return tokens.ids.with_values(ids)

    def simulate(
        self, base: Backbone, tokens: Tokens, cut: int, rng: np.random.Generator
    ) -> Ragged | None:
        ids = self.replaced(tokens, base, rng)
        return ids.with_values(embedding(ids.values.to(base.device), base.embeddings))

    def protected_inputs(self, session: Session) -> Callable[[Tokens], Ragged]:
        rows = session.backbone.embeddings

        def sends(tokens: Tokens) -> Ragged:
            ids = self.replaced(tokens, session.backbone, session.noise)
            return ids.with_values(embedding(ids.values.to(rows.device), rows))

        return sends

    def fine_tune(self, session: Session) -> Tuned:
        network = session.network(cut=session.cut)
        output = OutputLayer.held(session, network.head, "vendor")
        sends = self.protected_inputs(session)
        fit_on_sent(session, network, output, sends)
        return predictor(session, network, output, sends)


def words_of(base: Backbone) -> Tensor:
    """[W] the ids of all tokens that are not special, and of that for unknown words.

    Tokenisers list them by how frequent they were in the text that they were made from, the most frequent
    first (behind single characters, which they need in any case).
    """
    every = torch.ones(len(base.embeddings), dtype=torch.bool)
    every[list(base.special_ids)] = False
    if base.tokenizer.unk_token_id is not None:
        every[base.tokenizer.unk_token_id] = True
    return every.nonzero()[:, 0]
