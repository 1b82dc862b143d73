"""Untuned: the public model without any fine-tuning."""

from typing import ClassVar

import torch

from leakboard.bench.backbones import Tokens
from leakboard.bench.contracts import EVERY_OBJECTIVE, Channel, Objective, TrainSettings
from leakboard.bench.exchange import Predictor, Session, Tuned, model_release
from leakboard.bench.methods import Defense, Source


class Untuned(Defense):
    """Use the public model without tuning: the utility that every defense has to exceed.

    A language model predicts unchanged. A classifier has no head before tuning, so it predicts the most frequent
    class of the training examples. The released model is the public one with untrained adapters and an untrained
    head, so attacks on it find only what the public model contains.
    """

    name: ClassVar[str] = "untuned"
    display_name: ClassVar[str] = "Untuned model"
    source: ClassVar[Source] = Source("Leakboard", "reference")
    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.MODEL})
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    colour: ClassVar[str] = "#4b4b69"
    marker: ClassVar[str] = "x"

    def tried(self, settings: TrainSettings, n: int, classes: int) -> tuple[()]:
        """Nothing is trained."""
        return ()

    def fine_tune(self, session: Session) -> Tuned:
        network = session.trainee()
        session.wire.release(model_release.vector_of(network), 0, 0)
        if not session.classes:
            return model_release.Released(network)
        shares = session.constant_scores

        def score(tokens: Tokens, rows: torch.Tensor, split: str) -> torch.Tensor:
            return shares.expand(len(rows), -1)

        return Predictor(score)
