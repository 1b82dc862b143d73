"""Audit by canaries: their exposure, and the lower bound on ε that their coins allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.membership import Membership
from leakboard.bench.attacking import expected_unseen, exposure
from leakboard.bench.backbones import evaluated, wrap_language_model
from leakboard.bench.contracts import Channel, Estimate, Goal, Leak, MethodSpec
from leakboard.bench.external.canary_planting import CanarySet
from leakboard.bench.external.listed_secrets import CANDIDATES, CEILING, mean_bits
from leakboard.bench.external.outcome import Audit
from leakboard.bench.external.token_readings import read_tokens
from leakboard.bench.methods import spec_of
from leakboard.bench.scoring import GAINED, advantage_low, metrics, one_run
from leakboard.bench.tasks import DIGITS

LONGEST = 128
"""Largest number of tokens of a canary."""


@dataclass(frozen=True)
class CanaryReadings:
    """−ln p of sentences under one model.

    Attributes:
        canaries: [n] of the canaries.
        others: [999] of sentences with other random digits, which are the same for all models.
    """

    canaries: NDArray[np.float64]
    others: NDArray[np.float64]

    def bits(self) -> NDArray[np.float64]:
        """[n] exposure of each canary among itself and the others (Carlini et al. 2019, section 4.3)."""
        return np.array([exposure(np.append(own, self.others), 0) for own in self.canaries])

    def decrease(self, before: CanaryReadings) -> NDArray[np.float64]:
        """[n] by how much training lowered −ln p of each canary, more than of the others on average."""
        usual = (before.others - self.others).mean()
        found: NDArray[np.float64] = before.canaries - self.canaries - usual
        return found


def read_canaries(canaries: CanarySet, model: Any, tokenizer: Any) -> CanaryReadings:
    """Read all canaries and the other sentences in one batched pass; the model stays as it was.

    Args:
        model: a causal language model of transformers, or of peft.

    Raises:
        LeakboardError: see `wrap_language_model`.
    """
    rng = np.random.default_rng([canaries.seed, CANDIDATES])
    free = np.setdiff1d(rng.choice(10**DIGITS, 2 * CANDIDATES, replace=False), canaries.secrets)
    others = rng.permutation(free)[: CANDIDATES - 1]
    texts = [canaries.text(each) for each in (*canaries.secrets, *others)]
    with evaluated(model):
        backbone = wrap_language_model(model, tokenizer)
        tokens = backbone.encode(texts, None, LONGEST, opened=True)
        totals = read_tokens(backbone, tokens).totals().numpy()
    n = len(canaries.secrets)
    return CanaryReadings(totals[:n], totals[n:])


def audit_canaries(
    canaries: CanarySet,
    before: CanaryReadings,
    after: CanaryReadings,
    delta: float,
    checked: bool = True,
) -> Audit:
    """Exposure of planted canaries against held-out ones, and what the coins prove about ε at `delta`.

    Args:
        checked: whether it was checked that the training saw the planted canaries.
    """
    planted, copies = canaries.planted, canaries.copies
    bits, scores = after.bits(), after.decrease(before)
    held_out = mean_bits(bits[~planted])
    spec = spec_of(CanaryExposure())
    spec = MethodSpec(name=spec.name, params={"candidates": CANDIDATES}, version=spec.version)
    about: dict[str, Any] = {"status": "ok", "channel": Channel.MODEL}
    secrets = {"attack": spec, "goal": Goal.MEMORISATION, "ceiling": CEILING, **about}
    secrets["units"] = int(planted.sum())
    exposed = mean_bits(bits[planted])
    gained = mean_bits((bits - before.bits())[planted], gained=True)
    auc = _auc(scores, planted)
    bound = one_run.audit(scores, planted, delta)
    most = one_run.ceiling(len(planted), delta)
    leaks = [
        Leak(metric="exposure", success=exposed, floor=held_out, **secrets),
        Leak(metric=GAINED, success=gained, **secrets),
        Leak(
            attack=spec_of(Membership()),
            goal=Goal.MEMBERSHIP,
            view="canaries",
            metric="AUC",
            success=auc,
            units=len(planted),
            epsilon=bound,
            epsilon_ceiling=most,
            **about,
        ),
    ]
    word = (
        "memorised the planted canaries"
        if (advantage_low(leaks[0]) or 0.0) > 0
        else "is not shown to have memorised the planted canaries"
    )
    unit = (
        ""
        if copies == 1
        else f" A canary counts with its {copies} copies, so this is no bound for a single text."
    )
    refuted = (
        f"The training is not (ε, δ = {delta:g})-private for any ε below {bound:.2g} (95 % confidence)."
        if bound > 0
        else f"The audit refutes no ε at δ = {delta:g} (95 % confidence)."
    )
    summary = [
        f"The model {word}: their mean exposure is {exposed.value:.1f} bits of {CEILING:.1f} (95 % interval "
        f"{exposed.low:.1f} to {exposed.high:.1f}), and that of the held-out ones is {held_out.value:.1f}. By chance it "
        f"is {expected_unseen(CANDIDATES):.1f}.",
        f"An attack ranks a planted canary above a held-out one in {auc.value * 100:.0f} % of pairs (95 % interval "
        f"{auc.low * 100:.0f} to {auc.high * 100:.0f}; chance 50).",
        f"{refuted} With {len(planted)} coins at most {most:.2g} can be proven.{unit}",
    ]
    if not checked:
        summary.append("It was not checked whether the training saw the planted canaries.")
    return Audit(tuple(leaks), summary=tuple(summary))


def _auc(scores: NDArray[np.float64], planted: NDArray[np.bool_]) -> Estimate:
    """AUC, whose bootstrap interval is widened to Wilson's over the smaller group.

    A bootstrap of few canaries is too narrow, and has no width at all where all scores are equal.
    """
    found = one_run.auc(scores, planted)
    fewest = int(min(planted.sum(), (~planted).sum()))
    low, high = metrics.wilson(found.value * fewest, fewest)
    return found.model_copy(update={"low": min(found.low, low), "high": max(found.high, high)})
