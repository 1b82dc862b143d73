"""DP-SGD: per-example gradients are clipped, and Gaussian noise is added to their sum."""

from __future__ import annotations

from typing import ClassVar

import torch

from leakboard.bench.contracts import Claim, Objective, TrainSettings
from leakboard.bench.defending import Private
from leakboard.bench.exchange import Session, Tuned, model_release
from leakboard.bench.methods import Defense, Source
from leakboard.defenses.none import NoDefense


class DPSGD(Private):
    """Train with DP-SGD and release the model.

    Without ε and σ this is ordinary training, the undefended twin of other defenses of released models.
    """

    name: ClassVar[str] = "dpsgd"
    display_name: ClassVar[str] = "DP-SGD"
    source: ClassVar[Source] = Source(
        "Deep Learning with Differential Privacy (Abadi et al. 2016)",
        "algorithm 1",
        "https://arxiv.org/abs/1607.00133",
    )
    colour: ClassVar[str] = "#009e73"
    marker: ClassVar[str] = "^"

    @property
    def undefended(self) -> bool:
        return self.epsilon is None and self.sigma is None

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        return () if self.undefended else unprotected(objective)

    def promises(self, n: int, settings: TrainSettings, whole: bool = True) -> Claim | None:
        return None if self.undefended else self.claim_for(n, settings, whole)

    def fine_tune(self, session: Session) -> Tuned:
        network = session.trainee()
        if self.undefended:
            model_release.train(session, network, session.train)
        else:
            rows = torch.arange(len(session.train))
            session.claim = self.train_privately(session, network, session.train, rows)
        return model_release.Released(network)


def unprotected(objective: Objective) -> tuple[Defense, ...]:
    """Undefended twins of defenses that release a model: ordinary training on the original texts."""
    plain = DPSGD(epsilon=None)
    return (NoDefense(), plain) if objective == "language modelling" else (plain,)
