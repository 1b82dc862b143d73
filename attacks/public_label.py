"""public-label: label inference by a classifier that learnt from public labelled texts of the task."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from leakboard.bench.attacking import inversion, round_matrices
from leakboard.bench.backbones import (
    Backbone,
    Network,
    PublicModel,
    Ragged,
    Tokens,
    autocast,
    by_length,
    load_backbone,
)
from leakboard.bench.contracts import (
    Channel,
    Claim,
    Goal,
    Guess,
    Ints,
    Knows,
    Precision,
    ThreatModel,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import Loop
from leakboard.bench.methods import Attack, Auxiliary, Knowledge, Silent, Source, spec_of

TEXT = (Channel.TOKENS, Channel.REPRESENTATIONS)
"""Channels from which it reads words: the first of these that was sent."""
SIGNED = (Channel.LOGIT_GRADIENTS, Channel.GRADIENTS)
"""Channels of gradients, which form one cluster for each label that training uses."""
DEPTH, MANY = 3, 4000
"""With that many public texts it reads hidden states behind a third of the blocks, which takes a third of the time. On SST-2
with MiniLM they then tell as much of labels as the last ones from texts in the clear, and more from noisy ones. With fewer
public texts the last ones tell more."""
PENALTY = 4.0
"""Inverse strength of the regularisation (C of scikit-learn)."""

Floats = NDArray[np.float64]


class PublicLabel(Attack):
    """Classify the received words by logistic regression on public labelled texts.

    Its features are TF-IDF of the words and the mean hidden state of the public model. The attacker knows the labels
    of the task's public texts, which are of other sources than the customer's, and no label of the customer. Words
    are the token ids that were sent, or those nearest to the vectors at the embedding cut. With `epochs` a copy of the
    public model, or of a larger one (`model`), is also fine-tuned on these texts, sent through the mechanism. Where
    the defense randomises labels by a public law, `combine` multiplies the classifier's probabilities by those of the
    label that training uses (Bayes). That label is sent, or it is the cluster of the gradients, which are matched to
    classes by the classifier.
    """

    name: ClassVar[str] = "public-label"
    source: ClassVar[Source] = Source(
        "Leakboard", "adaptive attack; Bayes' rule against randomised response (Warner 1965)"
    )
    version: ClassVar[int] = 4
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL},
        reads={*TEXT, *SIGNED, Channel.LABELS},
        knows={Knows.BASE_WEIGHTS, Knows.MECHANISM, Knows.AUXILIARY_TEXT},
    )

    younger: ClassVar[frozenset[str]] = frozenset({"epochs", "model", "precision"})

    combine: bool = True
    """Whether it also uses the randomised labels, by the law that the defense states."""
    epochs: int = Field(0, ge=0)
    """Passes over the public texts, each with new noise, in which a copy of the public model is fine-tuned. Its
    log-probabilities are averaged with those of the logistic regression. 0: logistic regression alone."""
    model: PublicModel | None = None
    """Name of a public model that is fine-tuned in place of the vendor's, such as mpnet. It reads the words as text, so
    its tokeniser may be another."""
    precision: Precision = "float32"
    """Number format of fine-tuning."""

    @property
    def needs(self) -> frozenset[Knows]:
        told = self.combine or self.epochs
        return self.threat.knows if told else self.threat.knows - {Knows.MECHANISM}

    def readable(self, cut: int) -> frozenset[Channel]:
        """Without words it guesses nothing; behind a block the nearest word means nothing."""
        return frozenset(TEXT if cut == 0 else TEXT[:1])

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        public = knowledge.auxiliary
        assert public is not None
        if len(np.unique(public.labels)) < 2:
            raise Silent("the labels of the public text are not known, or all the same")
        readable = self.readable(knowledge.cut)
        channel = next((c for c in TEXT if c in readable and "train" in seen.splits(c)), None)
        if channel is None:
            return []
        assert knowledge.base is not None
        base = knowledge.base
        rows, rounds = read_words(seen, channel, knowledge)
        classifier = public.learned.recall(self.name, lambda rng: Classifier.of(public, base))
        scores = classifier.log_probabilities(rounds, knowledge.classes)
        if self.epochs:
            scores = (scores + self._tuned_scores(public, channel, rounds, knowledge)) / 2
        parts = knowledge.mechanism.parts if knowledge.mechanism and self.combine else ()
        claims = [claim for part in parts if (claim := part.claim()) and claim.unit == "label"]
        for claim in claims:
            scores += randomised_label_scores(seen, rows, scores, claim, rng)
        return [Guess(Goal.LABEL, channel, "train", rows, scores.argmax(1), view="train")]

    def _tuned_scores(
        self, public: Auxiliary, channel: Channel, rounds: Sequence[Tokens], knowledge: Knowledge
    ) -> Floats:
        """[n, C] log-probabilities of the fine-tuned network, averaged over the rounds.

        All cells in which the words arrive alike share the network, since it depends on public data alone.
        """
        base, inputs = knowledge.base, None
        assert base is not None
        # Token ids arrive as they are, whatever the mechanism.
        if channel != Channel.TOKENS and knowledge.mechanism:
            inputs = knowledge.mechanism.input_part
        reader = base
        if self.model:
            reader = public.learned.recall(
                f"model {self.model}", lambda _: load_backbone(str(self.model), knowledge.device)
            )

        def read(tokens: Tokens) -> Tokens:
            return tokens if reader is base else retokenised(tokens, base, reader)

        def tuned(rng: Generator) -> Network:
            if inputs:
                sent = [
                    read(words_of(inversion.simulate_vectors(inputs, base, tokens, 0, rng), base))
                    for tokens in [public.tokens] * self.epochs
                ]
            else:
                sent = [read(public.tokens)] * self.epochs
            return self._tuned(sent, public, reader, knowledge, rng)

        law = spec_of(inputs).model_dump() if inputs else None
        key = json.dumps([self.name, self.epochs, self.model, self.precision, law])
        network = public.learned.recall(key, tuned)
        with torch.no_grad(), autocast(self.precision, knowledge.device):
            logs = [self._log_probabilities(network, read(tokens)) for tokens in rounds]
        averaged: Floats = np.mean(logs, axis=0, dtype=np.float64)
        return averaged

    def _tuned(
        self,
        sent: Sequence[Tokens],
        public: Auxiliary,
        reader: Backbone,
        knowledge: Knowledge,
        rng: Generator,
    ) -> Network:
        """A copy of the reader, fine-tuned on the public texts as they are `sent` in each epoch."""
        truth = torch.from_numpy(np.asarray(public.labels, np.int64)).to(knowledge.device)
        settings, seed = TrainSettings(epochs=self.epochs), int(rng.integers(2**31))
        torch.manual_seed(seed)
        network = Network(reader, 0, knowledge.classes, settings, slice(None)).train()

        def step(rows: Tensor, epoch: int) -> float:
            with autocast(self.precision, knowledge.device):
                scores = network.scores(network.vectors(sent[epoch].take(rows)))
            loss = cross_entropy(scores, truth[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        groups: list[dict[str, object]] = [{"params": network.trained()}]
        Loop(settings, seed, knowledge.classes).fit(step, groups, sent[0].lengths)
        return network.eval()

    @staticmethod
    def _log_probabilities(network: Network, tokens: Tokens) -> NDArray[np.float32]:
        batches = by_length(tokens.lengths)
        scores = [network.scores(network.vectors(tokens.take(rows))) for rows in batches]
        logs = torch.cat([log_softmax(part, 1).cpu() for part in scores])
        found: NDArray[np.float32] = logs[torch.cat(batches).argsort()].numpy()
        return found


def words_of(received: Ragged, base: Backbone) -> Tokens:
    """Texts of token ids [T], or of the words nearest to vectors [T, d], with the segments that the model gives them."""
    ids = received
    if received.values.ndim > 1:
        ids = received.with_values(inversion.nearest(base, received).cpu())
    return Tokens(ids, base.segments(ids), torch.zeros_like(ids.values).bool())


def retokenised(tokens: Tokens, base: Backbone, reader: Backbone) -> Tokens:
    """The texts of tokens of `base` as tokens of another model."""
    kinds, halves = tokens.ids.with_values(tokens.types).sequences(), list[list[str]]()
    for half in range(2):
        ids = [
            [i for i, kind in zip(*both, strict=True) if kind == half]
            for both in zip(tokens.ids.sequences(), kinds, strict=True)
        ]
        halves.append(base.tokenizer.batch_decode(ids, skip_special_tokens=True))
    longest = 2 * int(tokens.lengths.max())  # words may be of more tokens there
    longest = min(longest, reader.family.positions(reader.model) or longest)
    return reader.encode(halves[0], halves[1] if tokens.types.any() else None, longest)


def read_words(
    seen: Transcript, channel: Channel, knowledge: Knowledge
) -> tuple[Ints, list[Tokens]]:
    """Rows of `train` [n] and their tokens in each round; ids in the clear are the same in all rounds."""
    base = knowledge.base
    assert base is not None
    rounds, rows = list[Tokens](), np.zeros(0, np.int64)
    for round in seen.rounds(channel)[: None if channel == Channel.REPRESENTATIONS else 1]:
        block = seen.collect(channel, round=round)
        assert block.lengths is not None
        sent = Ragged(torch.from_numpy(block.values.copy()), torch.from_numpy(block.lengths.copy()))
        rows, first = np.unique(block.rows, return_index=True)  # ids may go to several servers
        rounds.append(words_of(sent.take(torch.from_numpy(first)), base))
    return rows, rounds


@dataclass(frozen=True)
class Classifier:
    """Logistic regression on TF-IDF of tokens and on mean hidden states, both about of norm 1.

    Attributes:
        blocks: number of blocks before the hidden states; None for all.
    """

    base: Backbone
    blocks: int | None
    words: Any
    scale: Any
    model: Any

    @classmethod
    def of(cls, public: Auxiliary, base: Backbone) -> Self:
        from sklearn.feature_extraction.text import TfidfVectorizer  # here, since it takes a second
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        words = TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True, dtype=np.float32)
        words.fit(documents([public.tokens]))
        blocks = max(1, base.blocks // DEPTH) if len(public.tokens) >= MANY else None
        scale = StandardScaler().fit(base.pooled(public.tokens, blocks).cpu().numpy())
        unfitted = cls(base, blocks, words, scale, LogisticRegression(C=PENALTY, max_iter=1000))
        unfitted.model.fit(unfitted.features([public.tokens]), public.labels)
        return unfitted

    def features(self, rounds: Sequence[Tokens]) -> Any:
        """[n, W + d] sparse; the words of all rounds count, and hidden states are averaged over them."""
        from scipy.sparse import csr_array, hstack

        states = [self.base.pooled(tokens, self.blocks).cpu().numpy() for tokens in rounds]
        pooled = np.mean(states, axis=0)
        scaled = self.scale.transform(pooled) / math.sqrt(pooled.shape[1])
        return hstack([self.words.transform(documents(rounds)), csr_array(scaled)]).tocsr()

    def log_probabilities(self, rounds: Sequence[Tokens], classes: int) -> Floats:
        """[n, C] of each class, finite for classes that public text lacks."""
        features = self.features(rounds)
        found = np.full((features.shape[0], classes), np.finfo(np.float32).tiny, np.float64)
        found[:, self.model.classes_] += self.model.predict_proba(features)
        logs: Floats = np.log(found)
        return logs


def documents(rounds: Sequence[Tokens]) -> list[str]:
    """Token ids of each text in all rounds, joined by blanks."""
    each = zip(*(tokens.ids.sequences() for tokens in rounds), strict=True)
    return [" ".join(str(i) for ids in texts for i in ids) for texts in each]


def randomised_label_scores(
    seen: Transcript, rows: Ints, scores: Floats, claim: Claim, rng: Generator
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


def labels_used(seen: Transcript, rows: Ints, scores: Floats, rng: Generator) -> Ints | None:
    """[n] the labels with which the rows were trained on, as the transcript shows them; −1 or None if it does not."""
    classes = scores.shape[1]
    if "train" in seen.splits(Channel.LABELS):
        sent = seen.collect(Channel.LABELS)
        return sent.values.clip(0, classes - 1) if np.array_equal(sent.rows, rows) else None
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans

    places, directions = list[Ints](), list[Floats]()
    for matrix in (m for channel in SIGNED for m in round_matrices(seen, channel)):
        mine, at = np.flatnonzero(np.isin(rows, matrix.rows)), np.isin(matrix.rows, rows)
        size = np.linalg.norm(matrix.values[at], axis=1, keepdims=True)
        own = matrix.values[at] / np.maximum(size, np.finfo(np.float32).tiny)
        if len(mine) == len(own) and len(np.unique(own.round(3), axis=0)) >= classes:
            places.append(mine)
            directions.append(own)
    if not directions:
        return None
    # Directions change slowly, so rounds are clustered together: the words of one hardly name its clusters.
    place, seed = np.concatenate(places), int(rng.integers(2**31))
    found = KMeans(classes, n_init=4, random_state=seed).fit_predict(np.concatenate(directions))
    _, names = linear_sum_assignment(np.eye(classes)[found].T @ scores[place], maximize=True)
    votes = np.zeros((len(rows), classes))
    np.add.at(votes, (place, names[found]), 1)
    return np.where(votes.any(1), votes.argmax(1), -1)
