"""CRT: confidential training on redacted, de-duplicated texts, with DP-SGD."""

from __future__ import annotations

from typing import ClassVar

import torch

from leakboard.bench.contracts import Objective
from leakboard.bench.defending import Private, Redacting, deduplicated_rows
from leakboard.bench.exchange import Session, Tuned, model_release
from leakboard.bench.methods import Defense, Source
from leakboard.defenses.dpsgd import unprotected


class CRT(Redacting, Private):
    """Mask secrets, remove duplicate examples, and train on the rest with DP-SGD."""

    name: ClassVar[str] = "crt"
    display_name: ClassVar[str] = "CRT"
    source: ClassVar[Source] = Source(
        "Provably Confidential Language Modelling (Zhao et al. 2022)",
        "algorithm 1",
        "https://arxiv.org/abs/2205.01863",
    )
    knob: ClassVar[str | None] = "epsilon"
    colour: ClassVar[str] = "#ffb4c3"
    marker: ClassVar[str] = "P"

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        return unprotected(objective)

    def fine_tune(self, session: Session) -> Tuned:
        tokens, redacted = self.redacted(session, self.secret_spans(session))
        network = session.trainee()
        rows = torch.from_numpy(deduplicated_rows(redacted))
        session.claim = self.train_privately(session, network, tokens, rows)
        return model_release.Released(network)
