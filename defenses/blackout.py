"""Blackout: sends noise only. No attack may find more than the number of tokens."""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from leakboard.bench.backbones import Ragged, Tokens, pieces
from leakboard.bench.contracts import EVERY_OBJECTIVE, Channel, Envelope, Objective, TrainSettings
from leakboard.bench.exchange import Predictor, Session, Tuned, model_release
from leakboard.bench.methods import Defense, Source

NOISE = 0.01
"""Standard deviation of the noise on released weights."""


class Blackout(Defense):
    """Send noise of the right shape on every channel; the customer predicts the most frequent class.

    Shapes are not hidden: the number of tokens of a text may depend on its label. The released model is the
    public one with noise in the weights that training would change. For a language model, noise is sent for
    each token, and as wide as the vocabulary where logits are expected.
    """

    name: ClassVar[str] = "blackout"
    display_name: ClassVar[str] = "Noise only"
    source: ClassVar[Source] = Source("Leakboard", "control")
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {
            Channel.TOKENS,
            Channel.REPRESENTATIONS,
            Channel.ACTIVATIONS,
            Channel.GRADIENTS,
            Channel.LOGIT_GRADIENTS,
            Channel.LABELS,
            Channel.MODEL,
        }
    )
    hides_tokens: ClassVar[bool] = True
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    colour: ClassVar[str] = "#1e1e5a"
    marker: ClassVar[str] = "X"

    def tried(self, settings: TrainSettings, n: int, classes: int) -> tuple[()]:
        """Nothing is trained."""
        return ()

    def fine_tune(self, session: Session) -> Tuned:
        rng, width = session.noise, session.backbone.width_at(session.cut)
        vocabulary = len(session.backbone.embeddings)
        (coins,) = rng.spawn(1)  # a separate stream, so that published records stay reproducible

        def normal(*shape: int) -> Tensor:
            return torch.from_numpy(rng.standard_normal(shape, dtype="float32"))

        def release() -> Tuned:
            network = session.trainee()
            vector = model_release.vector_of(network).cpu()
            noisy = vector + NOISE * normal(len(vector))
            session.wire.release(noisy, 0, 0)
            return model_release.Released(model_release.restore(network, noisy.to(session.device)))

        def send(tokens: Tokens, rows: Tensor, split: str) -> None:
            ids, n, where = tokens.ids, len(tokens), Envelope(split=split)
            total = len(ids.values)
            random_ids = torch.from_numpy(rng.integers(vocabulary, size=total))
            session.wire.send(Channel.TOKENS, ids.with_values(random_ids), rows, where)
            vectors = ids.with_values(normal(total, width))
            session.wire.send(Channel.REPRESENTATIONS, vectors, rows, where)
            answer = replace(where, sender="vendor")
            if not session.classes:
                session.wire.send(
                    Channel.ACTIVATIONS, ids.with_values(normal(total, width)), rows, answer
                )
                session.wire.send(Channel.GRADIENTS, ids.with_values(normal(total, width)), rows)
                for examples, at in pieces(ids.lengths, vocabulary):
                    noisy = Ragged(normal(at.stop - at.start, vocabulary), ids.lengths[examples])
                    session.wire.send(Channel.LOGIT_GRADIENTS, noisy, rows[examples])
                return
            session.wire.send(Channel.ACTIVATIONS, normal(n, width), rows, answer)
            if split == "train":
                session.wire.send(Channel.GRADIENTS, normal(n, width), rows)
                session.wire.send(Channel.LOGIT_GRADIENTS, normal(n, session.classes), rows)
                labels = torch.from_numpy(coins.integers(session.classes, size=n))
                session.wire.send(Channel.LABELS, labels, rows)

        if not session.classes:
            tuned = release()
            for rows in torch.split(session.all_rows, 512):
                send(session.train.take(rows), rows, "train")
            return tuned
        for rows in torch.split(session.all_rows, 512):  # in parts, which bounds the memory
            send(session.train.take(rows), rows, "train")
        release()
        shares = session.constant_scores

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            send(tokens, rows, split)
            return shares.expand(len(rows), -1)

        return Predictor(score)
