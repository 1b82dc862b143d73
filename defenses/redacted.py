"""Redacted fine-tuning: secrets that a detector finds are masked before training."""

from __future__ import annotations

from typing import ClassVar

from leakboard.bench.contracts import Objective
from leakboard.bench.defending import Redacting
from leakboard.bench.exchange import Session, Tuned, model_release
from leakboard.bench.methods import Defense, Source
from leakboard.defenses.dpsgd import unprotected


class Redacted(Redacting):
    """Mask secrets, train on the redacted texts, and release the model.

    Secrets that the detector misses are trained on without protection.
    """

    name: ClassVar[str] = "redacted"
    display_name: ClassVar[str] = "Redaction"
    source: ClassVar[Source] = Source(
        "Just Fine-tune Twice: Selective Differential Privacy for Large Language Models "
        "(Shi et al. 2022)",
        "section 4.2, phase 1 alone",
        "https://arxiv.org/abs/2204.07667",
    )
    knob: ClassVar[str | None] = "detector"
    colour: ClassVar[str] = "#56b4e9"
    marker: ClassVar[str] = "v"

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        return unprotected(objective)

    def fine_tune(self, session: Session) -> Tuned:
        tokens, _ = self.redacted(session, self.secret_spans(session))
        network = session.trainee()
        model_release.train(session, network, tokens)
        return model_release.Released(network)
