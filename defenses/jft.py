"""JFT: fine-tune twice, first on redacted texts, then with DP-SGD on the originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from leakboard.bench.contracts import LeakboardError, Objective, TrainSettings
from leakboard.bench.defending import (
    Private,
    Redacting,
    Spans,
    all_secrets,
    dp_sgd,
    missed_share,
    sgd,
)
from leakboard.bench.exchange import Session, Tuned, model_release
from leakboard.bench.methods import Conditions, Defense, Source
from leakboard.defenses.dpsgd import unprotected

PHASE1 = ("epochs", "learning_rate", "batch_size")
"""Settings of training that phase 1 may have of its own."""
PHASE2_RATES = (0.3, 1)
"""Factors of the learning rate of phase 2, in turns; it has eight batches per epoch."""

UNKNOWN = (
    "jft: a budget for what the detector misses says nothing without a miss rate, and the task "
    "marks no secrets to measure it on; write miss_rate: 0.05, as `leakboard detect` measures it "
    "on texts of the same kind"
)


class JFT(Redacting, Private):
    """Train on redacted texts first (phase 1), then on the originals with DP-SGD (phase 2).

    Secrets that the detector finds reach the model through DP-SGD only. Secrets that it misses are trained on in
    phase 1 without protection, unless a person checks the texts (`manual`) or that phase has a little noise
    (`light-noise`).
    """

    name: ClassVar[str] = "jft"
    display_name: ClassVar[str] = "JFT"
    source: ClassVar[Source] = Source(
        "Just Fine-tune Twice: Selective Differential Privacy for Large Language Models "
        "(Shi et al. 2022)",
        "section 4",
        "https://arxiv.org/abs/2204.07667",
    )
    knob: ClassVar[str | None] = "epsilon"
    colour: ClassVar[str] = "#e10f4b"
    marker: ClassVar[str] = "X"

    phase1: Literal["direct", "manual", "light-noise"] = "direct"
    """Phase 1: the redacted texts as they are, a manually checked share of them, or DP-SGD with little noise."""
    checked: float = Field(0.1, gt=0, le=1)
    """For `manual`: the share of checked texts, in which all known secrets are masked."""
    light: float | None = Field(None, gt=0)
    """For `light-noise`: the noise multiplier σ of phase 1; by default it follows from ε at the miss rate."""
    miss_rate: float | None = Field(None, gt=0, le=1)
    """For `light-noise`: the share of secrets that the detector misses, as measured by `leakboard detect`; by
    default it is measured on the marked secrets of the task. The resulting ε is an estimate, as in the paper,
    and not a guarantee."""

    phase1_epochs: int | None = Field(None, ge=1, le=10_000)
    """Epochs of phase 1; by default those of the row. What is best for DP-SGD in phase 2 need not be for phase 1."""
    phase1_learning_rate: float | None = Field(None, gt=0)
    """Learning rate of phase 1; by default that of the row."""
    phase1_batch_size: int | None = Field(None, ge=1)
    """Batch size of phase 1; by default that of the row."""

    younger: ClassVar[frozenset[str]] = frozenset(
        {"phase1_epochs", "phase1_learning_rate", "phase1_batch_size"}
    )

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        return unprotected(objective)

    def tried(self, settings: TrainSettings, n: int, classes: int) -> Sequence[Mapping[str, Any]]:
        """Phase 1 as training on redacted texts alone is tuned, which decides most, and phase 2 in large batches.

        With light noise, both phases are tuned as DP-SGD.
        """
        if self.undefended or self.phase1 == "light-noise":
            return super().tried(settings, n, classes)
        alone = Defense.tried(self, settings, n, classes)
        return [
            {
                **{f"phase1_{name}": each.get(name, getattr(settings, name)) for name in PHASE1},
                "learning_rate": rate * settings.learning_rate,
                "batch_size": max(settings.batch_size, n // 8),
            }
            for each, rate in zip(alone, cycle(PHASE2_RATES), strict=False)
        ]

    def skip(self, conditions: Conditions) -> str | None:
        # Canaries count as secrets where the detector does with them what it does.
        found = conditions.has_canaries and self.canaries == "found"
        known = conditions.has_marked_secrets or self.miss_rate is not None or found
        return UNKNOWN if self.phase1 == "light-noise" and not known else None

    def fine_tune(self, session: Session) -> Tuned:
        network = session.trainee()
        found = self.secret_spans(session)
        everything = torch.arange(len(session.train))
        settings = session.settings
        session.settings = self.of_phase1(settings)
        estimate, spent = "", dict[str, float]()
        if self.phase1 == "manual":
            rows = self._checked(session)
            assert session.texts is not None
            whole = all_secrets(session.texts, session.canaries, found)
            tokens, _ = self.redacted(session, whole)
            model_release.train(session, network, tokens, rows, release=False)
        elif self.phase1 == "light-noise":
            tokens, _ = self.redacted(session, found)
            spent = self._light(session, found)
            sigma = spent["light_sigma"]
            sgd(session, network, tokens, everything, sigma, self.clip, release=False)
            estimate = (
                f"; of what it misses ({spent['miss_rate']:.2g} of the secrets), an estimate: "
                f"ε = {spent['light_epsilon']:.3g} in phase 1, whose noise has σ = {sigma:.2g}"
            )
        else:
            tokens, _ = self.redacted(session, found)
            model_release.train(session, network, tokens, release=False)
        session.settings = settings
        claim = self.train_privately(session, network, session.train, everything)
        covers = "what the detector finds, in phase 2; what it misses is not covered in phase 1"
        changes = {"covers": covers + estimate, "parameters": claim.parameters | spent}
        session.claim = claim.model_copy(update={**changes, "unit": "secret"})
        return model_release.Released(network)

    def of_phase1(self, settings: TrainSettings) -> TrainSettings:
        """The settings of phase 1."""
        own = {name: getattr(self, f"phase1_{name}") for name in PHASE1}
        return settings.model_copy(update={k: v for k, v in own.items() if v is not None})

    def _checked(self, session: Session) -> torch.Tensor:
        """Sorted rows that count as manually checked."""
        n = len(session.train)
        rows = session.noise.permutation(n)[: max(1, round(self.checked * n))]
        return torch.from_numpy(np.sort(rows))

    def _light(self, session: Session, found: Spans) -> dict[str, float]:
        """The noise of phase 1, and the ε that it spends on missed secrets, at their sampling rate."""
        n, size = len(session.train), session.settings.batch_size
        steps = -(-n // size) * session.settings.epochs
        missed = self.miss_rate or self._missed(session, found)
        rate, delta = min(1.0, size / n) * missed, self.delta or 0.1 / n
        sigma, epsilon = self.light, self.epsilon
        if sigma is None:
            if epsilon is None:
                raise LeakboardError(
                    "jft: the light noise of phase 1 follows from a budget, and `epsilon: none` gives "
                    "none; give phase 1 a noise multiplier, such as light: 0.4"
                )
            sigma = dp_sgd.noise_for(epsilon, delta, rate, steps)
        else:
            epsilon = dp_sgd.epsilon_spent(sigma, rate, steps, delta)
        return {"light_sigma": sigma, "light_epsilon": epsilon, "miss_rate": missed}

    def _missed(self, session: Session, found: Spans) -> float:
        """The share of known secrets that the detector missed; canaries count if the detector decides on them.

        Raises:
            LeakboardError: no secrets are known.
        """
        assert session.texts is not None
        studied = session.canaries if self.canaries != "found" else {}
        share = missed_share(session.texts, found, session.canaries, leave_out=studied)
        if share is None:
            raise LeakboardError(UNKNOWN)
        return share
