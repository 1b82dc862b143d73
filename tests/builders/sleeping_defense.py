"""A defense that sleeps, in a module that workers can import."""

from __future__ import annotations

import time
from typing import ClassVar

import torch
from torch import Tensor

from leakboard.bench.backbones.ragged import Tokens
from leakboard.bench.contracts import Channel
from leakboard.bench.exchange import Predictor, Session, Tuned
from leakboard.bench.methods import Defense, Source


class Sleeping(Defense):
    """Sleeps instead of training."""

    name: ClassVar[str] = "sleeping"
    source: ClassVar[Source] = Source("for measuring workers")
    emits: ClassVar[frozenset[Channel]] = frozenset()

    number: int = 0
    """Tells cells apart."""
    seconds: float = 1.0

    def fine_tune(self, session: Session) -> Tuned:
        time.sleep(self.seconds)
        shares = torch.bincount(session.labels, minlength=session.classes).float()

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            return shares.expand(len(rows), -1)

        return Predictor(score)
