"""public-label: label inference by a classifier that learnt from public labelled texts of the task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from leakboard.bench.attacking import inversion, matrices
from leakboard.bench.backbones import Ragged, Tokens
from leakboard.bench.contracts import (
    Channel,
    Claim,
    Goal,
    Guess,
    Ints,
    Knows,
    ThreatModel,
    Transcript,
)
from leakboard.bench.methods import Attack, Auxiliary, Knowledge, Silent, Source

TEXT = (Channel.TOKENS, Channel.REPRESENTATIONS)
"""Channels from which it reads words: the first of these that was sent."""
SIGNED = (Channel.LOGIT_GRADIENTS, Channel.GRADIENTS)
"""Channels of gradients, which form one cluster for each label that training uses."""
MOMENTS = 400
"""Largest number of windows of training whose gradients are read."""
PENALTY = 4.0
"""Inverse strength of the regularisation (C of scikit-learn)."""

Floats = NDArray[np.float64]


class PublicLabel(Attack):
    """Classify the received words by logistic regression on TF-IDF of public labelled texts.

    The attacker knows the labels of the task's public texts, which are of other sources than the customer's, and no
    label of the customer. Words are the token ids that were sent, or those nearest to the vectors at the embedding
    cut. Where the defense randomises labels by a public law, `combine` multiplies the classifier's probabilities by
    those of the label that training uses (Bayes). That label is sent, or it is the cluster of the gradients, which
    are matched to classes by the classifier.
    """

    name: ClassVar[str] = "public-label"
    source: ClassVar[Source] = Source(
        "Leakboard", "adaptive attack; Bayes' rule against randomised response (Warner 1965)"
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}),
        reads=frozenset({*TEXT, *SIGNED, Channel.LABELS}),
        knows=frozenset({Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT}),
    )

    combine: bool = True
    """Whether it also uses the randomised labels, by the law that the defense states."""

    @property
    def needs(self) -> frozenset[Knows]:
        return self.threat.knows if self.combine else self.threat.knows - {Knows.MECHANISM}

    def readable(self, cut: int) -> frozenset[Channel]:
        """Without words it guesses nothing; behind a block the nearest word means nothing."""
        return frozenset(TEXT if cut == 0 else TEXT[:1])

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        public = knowledge.auxiliary
        assert public is not None
        if len(np.unique(public.labels)) < 2:
            raise Silent("the labels of the public text are not known, or all the same")
        readable = self.readable(knowledge.cut)
        channel = next((c for c in TEXT if c in readable and "train" in seen.splits(c)), None)
        if channel is None:
            return []
        rows, words = read_words(seen, channel, knowledge)
        classifier = public.learned.recall(self.name, lambda rng: Classifier.of(public))
        scores = classifier.log_probabilities(words, knowledge.classes)
        parts = knowledge.mechanism.parts if knowledge.mechanism else ()
        claims = [claim for part in parts if (claim := part.claim()) and claim.unit == "label"]
        for claim in claims:
            scores += randomised_label_scores(seen, rows, scores, claim, rng)
        return [Guess(Goal.LABEL, channel, "train", rows, scores.argmax(1), view="train")]


def read_words(seen: Transcript, channel: Channel, knowledge: Knowledge) -> tuple[Ints, list[str]]:
    """Rows of `train` [n] and the token ids of each, joined by blanks; vectors are read in every round."""
    rounds = seen.rounds(channel)[: None if channel == Channel.REPRESENTATIONS else 1]
    rows, words = np.zeros(0, np.int64), list[str]()
    for round in rounds:
        block = seen.collect(channel, round=round)
        assert block.lengths is not None
        ids = Ragged(torch.from_numpy(block.values.copy()), torch.from_numpy(block.lengths.copy()))
        if channel == Channel.REPRESENTATIONS:
            assert knowledge.base is not None
            ids = ids.with_values(inversion.nearest(knowledge.base, ids).cpu())
        rows, first = np.unique(block.rows, return_index=True)  # ids may go to several servers
        every = ids.sequences()
        read = [" ".join(map(str, every[i])) for i in first]
        words = [" ".join(both) for both in zip(words, read, strict=True)] if words else read
    return rows, words


@dataclass(frozen=True)
class Classifier:
    """Logistic regression on TF-IDF of tokens."""

    features: Any
    model: Any

    @classmethod
    def of(cls, public: Auxiliary) -> Self:
        from sklearn.feature_extraction.text import TfidfVectorizer  # here, since it takes a second
        from sklearn.linear_model import LogisticRegression

        features = TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True, dtype=np.float32)
        x = features.fit_transform(documents(public.tokens))
        model = LogisticRegression(C=PENALTY, max_iter=1000)
        return cls(features, model.fit(x, public.labels))

    def log_probabilities(self, words: list[str], classes: int) -> Floats:
        """[n, C] of each class, finite for classes that public text lacks."""
        found = np.full((len(words), classes), np.finfo(np.float32).tiny, np.float64)
        found[:, self.model.classes_] += self.model.predict_proba(self.features.transform(words))
        logs: Floats = np.log(found)
        return logs


def documents(tokens: Tokens) -> list[str]:
    """Token ids of each text, joined by blanks."""
    return [" ".join(map(str, ids)) for ids in tokens.ids.sequences()]


def randomised_label_scores(
    seen: Transcript, rows: Ints, scores: Floats, claim: Claim, rng: np.random.Generator
) -> Floats:
    """[n, C] log-probability of the randomised label of each row, for each true class; 0 where none is seen.

    Args:
        scores: [n, C] of the classifier, by which clusters are matched to classes.
    """
    used, classes = labels_used(seen, rows, scores, rng), scores.shape[1]
    if used is None:
        return np.zeros_like(scores)
    kept = 1 / (1 + (classes - 1) * math.exp(-claim.parameters["epsilon"]))
    law = np.full((classes, classes), (1 - kept) / (classes - 1))
    np.fill_diagonal(law, kept)
    logs: Floats = np.log(law)[used]
    return np.where(used[:, None] >= 0, logs, 0.0)


def labels_used(
    seen: Transcript, rows: Ints, scores: Floats, rng: np.random.Generator
) -> Ints | None:
    """[n] the labels with which the rows were trained on, as the transcript shows them; −1 or None if it does not."""
    classes = scores.shape[1]
    if "train" in seen.splits(Channel.LABELS):
        sent = seen.collect(Channel.LABELS)
        return sent.values.clip(0, classes - 1) if np.array_equal(sent.rows, rows) else None
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans

    seed, votes = int(rng.integers(2**31)), np.zeros((len(rows), classes))
    for matrix in matrices(seen, MOMENTS, SIGNED):  # each shows the rows of one window of training
        mine, at = np.flatnonzero(np.isin(rows, matrix.rows)), np.isin(matrix.rows, rows)
        size = np.linalg.norm(matrix.values[at], axis=1, keepdims=True)
        looks = matrix.values[at] / np.maximum(size, np.finfo(np.float32).tiny)
        if len(mine) != len(looks) or len(np.unique(looks.round(3), axis=0)) < classes:
            continue
        found = KMeans(classes, n_init=4, random_state=seed).fit_predict(looks)
        agreement = np.eye(classes)[found].T @ scores[mine]
        _, names = linear_sum_assignment(agreement, maximize=True)
        named: Ints = names[found]
        votes[mine, named] += 1
    return np.where(votes.any(1), votes.argmax(1), -1) if votes.any() else None
