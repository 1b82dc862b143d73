"""Code shared by defenses that replace words independently by random words (SanText+, CusText+)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from numpy.random import Generator
from torch import Tensor

from leakboard.bench.backbones import Backbone, Ragged, Tokens
from leakboard.bench.contracts import WITH_HEAD, Channel, Goal, Objective
from leakboard.bench.defending.mechanisms import Epsilon
from leakboard.bench.defending.splitting import fit_on_sent, predictor
from leakboard.bench.exchange import OutputLayer, Session, Tuned
from leakboard.bench.methods import Conditions, Defense, Stage


class Substituting(Defense):
    """A defense that sends random replacements of words, and otherwise trains as SAP at cut 0 with a frozen bottom.

    The papers release sanitised text and do not specify the fine-tuning. They draw words by GloVe or counter-fitted
    vectors. We draw tokens by the embeddings of the model, as SAP does.
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
    """Privacy parameter ε, above 0; smaller hides more; "none" sends all words unchanged."""

    def skip(self, conditions: Conditions) -> str | None:
        return (
            f"{self.name} replaces words, before the first block; set cut: 0"
            if conditions.cut
            else None
        )

    @abstractmethod
    def draw_replacements(self, ids: Tensor, base: Backbone, rng: Generator) -> Tensor:
        """[T] replacement of each of the words `ids` [T], none of which is special; ε is not "none"."""

    @abstractmethod
    def log_chances(self, words: Tensor, base: Backbone) -> Callable[[Tensor], Tensor]:
        """Function from sent ids [n] to their log-probabilities [n, K] given each of `words` [K]; ε is not "none"."""

    def replaced(self, tokens: Tokens, base: Backbone, rng: Generator) -> Ragged:
        """Ids [T] with fresh replacements of all that are not special."""
        ids = tokens.ids.values.clone()
        if self.epsilon is not None:
            ids[~tokens.special] = self.draw_replacements(ids[~tokens.special], base, rng)
        return tokens.ids.with_values(ids)

    def simulate(self, base: Backbone, tokens: Tokens, cut: int, rng: Generator) -> Ragged | None:
        ids = self.replaced(tokens, base, rng)
        return ids.embedded(base.embeddings)

    def protected_inputs(self, session: Session) -> Callable[[Tokens], Ragged]:
        rows = session.backbone.embeddings

        def sends(tokens: Tokens) -> Ragged:
            return self.replaced(tokens, session.backbone, session.noise).embedded(rows)

        return sends

    def fine_tune(self, session: Session) -> Tuned:
        network = session.network(cut=session.cut)
        output = OutputLayer.held(session, network.head, "vendor")
        sends = self.protected_inputs(session)
        fit_on_sent(session, network, output, sends)
        return predictor(session, network, output, sends)


def words_of(base: Backbone) -> Tensor:
    """[W] ids of all tokens that are not special, and of the token for unknown words.

    Tokenisers list tokens by frequency, the most frequent first, after single characters.
    """
    is_word = torch.ones(len(base.embeddings), dtype=torch.bool)
    is_word[list(base.special_ids)] = False
    if base.tokenizer.unk_token_id is not None:
        is_word[base.tokenizer.unk_token_id] = True
    return is_word.nonzero()[:, 0]
