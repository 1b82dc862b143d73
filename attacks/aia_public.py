"""aia-public: attribute inference without labels of the customer, learnt from privatised public texts."""

from __future__ import annotations

import json
import math
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from leakboard.attacks.aia_mlp import CHANNELS, mean_vectors, standardised
from leakboard.bench.backbones import Ragged, Tokens
from leakboard.bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from leakboard.bench.defending import Pooling, as_sequences
from leakboard.bench.methods import Attack, Knowledge, Silent, Source, spec_of

Floats = NDArray[np.float32]

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the regularisation (C of scikit-learn), of which cross-validation chooses one: noise asks for less."""
FOLDS = 5


class PublicAttributes(Attack):
    """Logistic regression on public texts with known authors, sent through the mechanism.

    On blogs it reads 1 to 4 points more than the network of `aia-mlp` does from the same texts, with noise and without.
    It needs no labelled share of the customer's rows, so all rows are scored. It reads the vector of a text, or the
    mean over its tokens. Repeated messages with new noise are averaged, and the public texts are sent through the
    mechanism equally often.
    """

    name: ClassVar[str] = "aia-public"
    source: ClassVar[Source] = Source(
        "Leakboard",
        "adaptive attack; attribute inference as in Privacy-Preserving Prompt Tuning (Li et al. 2023)",
    )
    version: ClassVar[int] = 2
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.ATTRIBUTE},
        reads=CHANNELS,
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT, Knows.QUERIES},
    )
    costly: ClassVar[bool] = True

    access: Literal["mechanism", "query"] = "mechanism"
    """Mechanism: the attacker knows the base model and the mechanism with its noise. Query: it sees what the
    customer's side sends, after training, for texts of the attacker's choice."""
    sentences: int = Field(4000, ge=1)
    """Maximum number of public texts; the first ones are used."""

    @property
    def needs(self) -> frozenset[Knows]:
        # Token ids are embedded by the base model with either access.
        other = Knows.MECHANISM if self.access == "query" else Knows.QUERIES
        return self.threat.knows - {other}

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.auxiliary is not None
        public = knowledge.auxiliary.take(self.sentences)
        channel = next((c for c in CHANNELS if "train" in seen.splits(c)), None)
        if channel is None:
            return []
        if not public.attributes:
            raise Silent("nothing is known of the authors of the public text")
        rows, features = mean_vectors(seen, channel, knowledge)
        rounds = 1 if channel == Channel.TOKENS else len(seen.rounds(channel))
        sent = [self._means(public.tokens, channel, knowledge, rng) for _ in range(rounds)]
        own = torch.stack(sent).mean(0)
        if own.shape[1] != features.shape[1]:
            raise Silent(
                f"what was sent has {features.shape[1]} numbers per text, and what the attacker makes of public "
                f"text {own.shape[1]}"
            )
        # Centred separately, since a shift that training adds to all texts reveals nothing.
        features, own = (standardised(part) / math.sqrt(part.shape[1]) for part in (features, own))
        guesses = []
        for name, values in public.attributes.items():
            known = values >= 0
            guess = _classified(features.numpy(), own.numpy()[known], values[known])
            guesses.append(
                Guess(Goal.ATTRIBUTE, channel, "train", rows, guess, attribute=name, view="train")
            )
        return guesses

    def _means(
        self, tokens: Tokens, channel: Channel, knowledge: Knowledge, rng: Generator
    ) -> Tensor:
        """[n, d] the mean vector that would be received for each public text, with new noise."""
        received = self._received(tokens, channel, knowledge, rng)
        return received.with_values(received.values.detach().float().cpu()).means()

    def _received(
        self, tokens: Tokens, channel: Channel, knowledge: Knowledge, rng: Generator
    ) -> Ragged:
        if self.access == "query":
            assert knowledge.query is not None
            return knowledge.query(tokens, rng)
        base, mechanism = knowledge.base, knowledge.mechanism
        assert base is not None
        assert mechanism is not None
        if isinstance(mechanism, Pooling):
            return as_sequences(mechanism.noisy(self._pooled(tokens, mechanism, knowledge), rng))
        cut = 0 if channel == Channel.TOKENS else knowledge.cut
        simulated = mechanism.simulate(base, tokens, cut, rng)
        if simulated is not None:
            return simulated
        if channel == Channel.ACTIVATIONS:
            raise Silent(f"{mechanism.name} has no mechanism that public text could go through")
        return tokens.ids.embedded(base.embeddings)

    def _pooled(self, tokens: Tokens, mechanism: Pooling, knowledge: Knowledge) -> Tensor:
        """[n, d] encodings of public texts before noise, which are the same for every ε."""
        base, auxiliary = knowledge.base, knowledge.auxiliary
        assert base is not None
        assert auxiliary is not None
        if not mechanism.public:
            raise Silent(
                f"{mechanism.name} sends what the customer's own layers make of a text; with `access: query` "
                "it asks the customer's side"
            )
        without = mechanism.model_copy(update={"epsilon": None, "as_released": False})
        key = json.dumps([self.name, len(tokens), without.name, spec_of(without).params])
        return auxiliary.learned.recall(
            key, lambda rng: mechanism.public_vectors(base, tokens, rng)
        )


def _classified(features: Floats, public: Floats, truth: Ints) -> Ints:
    """[n] class of each of `features` [n, d], learnt from `public` [m, d] and its classes `truth` [m].

    With fewer than two classes, or one example of a class, the most frequent class is the guess.
    """
    from sklearn.linear_model import LogisticRegression  # here, since it takes a second
    from sklearn.model_selection import GridSearchCV

    counts = np.bincount(truth, minlength=1)
    rarest = int(counts[counts > 0].min(initial=len(truth)))
    if np.count_nonzero(counts) < 2 or rarest < 2:
        return np.full(len(features), counts.argmax())
    search = GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": STRENGTHS},
        scoring="neg_log_loss",
        cv=min(FOLDS, rarest),
    )
    guess: Ints = search.fit(public, truth).predict(features)
    return guess
