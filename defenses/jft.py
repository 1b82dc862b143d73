"""JFT: fine-tune twice, first on redacted text, then privately on the original."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from bench.contracts import Objective
from bench.defending import Private, Redacting, all_secrets, private, sgd
from bench.exchange import Session, Tuned, released
from bench.methods import Defense, Source
from defenses.dpsgd import unprotected


class JFT(Redacting, Private):
    """Phase 1 learns from the redacted texts, phase 2 from the originals with DP-SGD.

    What the detector finds reaches the model through DP-SGD only. What it misses is in phase 1 in
    the clear, unless a person checks (`manual`) or that phase has a little noise (`light-noise`).
    """

    name: ClassVar[str] = "jft"
    source: ClassVar[Source] = Source(
        "Just Fine-tune Twice: Selective Differential Privacy for Large Language Models "
        "(Shi et al. 2022)",
        "section 4",
        "https://arxiv.org/abs/2204.07667",
    )
    knob: ClassVar[str | None] = "epsilon"
    colour: ClassVar[str] = "#e31a1c"
    marker: ClassVar[str] = "X"

    phase1: Literal["direct", "manual", "light-noise"] = "direct"
    """How the redacted texts are used: as they are; a share of them that a person has checked; or
    with DP-SGD of little noise."""
    checked: float = Field(0.1, gt=0, le=1)
    """Of `manual`: the share that is checked, where every secret that is known is masked."""
    light: float = Field(0.1, gt=0)
    """Of `light-noise`: the noise multiplier σ of phase 1."""
    miss_rate: float = Field(0.05, gt=0, le=1)
    """Of `light-noise`: the share of secrets that the detector misses, as `leakboard detect` measures
    it. Its accounting is an estimate by the paper, and no claim."""

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        return unprotected(objective)

    def fine_tune(self, session: Session) -> Tuned:
        network = session.trainee()
        found = self.found(session)
        everything = torch.arange(len(session.train))
        estimate = ""
        if self.phase1 == "manual":
            rows = self._checked(session)
            assert session.texts is not None
            whole = all_secrets(session.texts, session.canaries, found)
            tokens, _ = self.redacted(session, whole)
            released.train(session, network, tokens, rows, release=False)
        elif self.phase1 == "light-noise":
            tokens, _ = self.redacted(session, found)
            sgd(session, network, tokens, everything, self.light, self.clip, release=False)
            estimate = (
                f"; of what it misses, an estimate: ε = {self._light(session):.3g} in phase 1"
            )
        else:
            tokens, _ = self.redacted(session, found)
            released.train(session, network, tokens, release=False)
        claim = self.train_privately(session, network, session.train, everything)
        covers = "what the detector finds, in phase 2; what it misses is not covered in phase 1"
        session.claim = claim.model_copy(update={"covers": covers + estimate, "unit": "secret"})
        return released.Released(network)

    def _checked(self, session: Session) -> torch.Tensor:
        """Sorted rows that a person has looked at."""
        n = len(session.train)
        rows = session.noise.permutation(n)[: max(1, round(self.checked * n))]
        return torch.from_numpy(np.sort(rows))

    def _light(self, session: Session) -> float:
        """What phase 1 spends on the missed secrets, sampled at the rate of missed ones."""
        n, size = len(session.train), session.settings.batch_size
        steps = -(-n // size) * session.settings.epochs
        rate = min(1.0, size / n) * self.miss_rate
        return private.spent(self.light, rate, steps, self.delta or 0.1 / n)
