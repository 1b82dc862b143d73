"""Scores of all membership attacks from one pass over the texts, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.attacks.ez_mia import ErrorZone
from leakboard.attacks.lira import Lira
from leakboard.attacks.membership import PREDICTED, Membership, prediction_scores
from leakboard.attacks.min_k import MinK
from leakboard.attacks.rmia import Rmia, gains
from leakboard.attacks.wbc import WindowComparison
from leakboard.bench.contracts import Channel, Goal, Leak, LeakboardError
from leakboard.bench.external.token_readings import TokenReadings
from leakboard.bench.methods import Attack, spec_of
from leakboard.bench.scoring import one_run, roc

Scores = NDArray[np.float64]
Attempts: TypeAlias = "dict[str, tuple[Attack, Callable[[], Scores] | str]]"
"""By view each attack with its scores of all texts, larger for likely members, or why it has none."""
RATES = {0.001: "TPR at 0.1% FPR", 0.01: "TPR at 1% FPR"}
"""Metric of the true positive rate, by false positive rate."""
CONFIDENCE = 0.95
BASE_MISSING = "it compares with the base model; give --base MODEL"
PUBLIC_MISSING = "it compares with more texts that the model was not trained on; give --public FILE"
SHADOWS_MISSING = "it needs shadow models that are trained like this one; `plant: {audit: …}` in a suite trains them"
TOKENS_MISSING = "it needs the loss of every token, which a classifier does not have"


@dataclass(frozen=True)
class ClassReadings:
    """What a classifier predicts for each text.

    Attributes:
        logs: [n, C] ln p of each class.
        labels: [n] the true classes.
        reference: [n] ln p of the true class by a model that was not trained on the texts; None without one.
        population: rows of public texts with which RMIA compares.
    """

    logs: Tensor
    labels: Tensor
    reference: Tensor | None
    population: slice

    def true(self) -> Scores:
        """[n] ln p of the true class."""
        found: Scores = self.logs.gather(1, self.labels[:, None])[:, 0].double().numpy()
        return found


def attempts_on_classifier(found: ClassReadings, missing: str) -> Attempts:
    """Attacks on a classifier.

    Args:
        missing: why there is no reference.
    """
    true, (_, classes) = found.true(), found.logs.shape
    loss, calibrated, rmia = Membership(score="loss"), Membership(score="calibrated"), Rmia()
    attempts: Attempts = {"loss": (loss, lambda: true)}
    for score in PREDICTED:
        scores = prediction_scores(score, found.logs.double(), found.labels).numpy()
        attempts[score] = Membership(score=score), partial(np.copy, scores)
    if found.reference is None:
        attempts["calibrated"] = calibrated, missing
        out = np.full(len(true), 1 / classes)
    else:
        known = found.reference.double().numpy()
        attempts["calibrated"] = calibrated, lambda: true - known
        out = np.exp(known)
    z = found.population
    compared = len(true[z])
    attempts["rmia"] = rmia, (lambda: _rmia(rmia, true, out, z)) if compared else PUBLIC_MISSING
    for attack in (MinK(), ErrorZone(), WindowComparison()):
        attempts[attack.name] = attack, TOKENS_MISSING
    return attempts | {"lira": (Lira(), SHADOWS_MISSING)}


def attempts_on_language_model(
    tuned: TokenReadings, base: TokenReadings | None, candidates: int
) -> Attempts:
    """Attacks on a language model.

    Args:
        candidates: number of members and others; the texts behind them are public.
    """
    loss, calibrated, windows = Membership(score="loss"), Membership(), WindowComparison()
    least, zone, rmia = MinK(), ErrorZone(), Rmia()
    attempts: Attempts = {
        "loss": (loss, lambda: -tuned.means().numpy()),
        "min-k": (least, lambda: _least(least, tuned)),
    }
    if base is None:
        for view, attack in (
            ("calibrated", calibrated),
            ("ez-mia", zone),
            ("wbc", windows),
            ("rmia", rmia),
        ):
            attempts[view] = attack, BASE_MISSING
    else:
        before, compared = base, len(tuned.losses) - candidates
        z = slice(candidates, candidates + rmia.population)
        attempts["calibrated"] = calibrated, lambda: (before.means() - tuned.means()).numpy()
        attempts["ez-mia"] = zone, lambda: _zone(zone, tuned, before)
        attempts["wbc"] = windows, lambda: _windows(windows, tuned, before)
        attempts["rmia"] = (
            rmia,
            (lambda: _rmia(rmia, -tuned.means().numpy(), np.exp(-before.means().numpy()), z))
            if compared
            else PUBLIC_MISSING,
        )
    return attempts | {"lira": (Lira(), SHADOWS_MISSING)}


def membership_leaks(
    attempts: Attempts, member: NDArray[np.bool_], coins: bool, delta: float
) -> tuple[list[Leak], roc.CrossFitted]:
    """Results of all attacks with the reasons why others have none, and the best one, cross-fitted.

    Args:
        member: [n] whether each of the first n texts was trained on.
        coins: whether fair coins decided, so that guesses prove a bound on ε at `delta`.

    Raises:
        LeakboardError: an attack has a score that is not finite.
    """
    n = len(member)
    scores = {view: own()[:n] for view, (_, own) in attempts.items() if not isinstance(own, str)}
    for view, own in scores.items():
        if not np.isfinite(own).all():
            raise LeakboardError(
                f"model: {int((~np.isfinite(own)).sum())} texts have a loss that is not finite ({view}): its weights "
                "hold numbers that are too large, or its precision is too low"
            )
    leaks = []
    for view, (attack, reason) in attempts.items():
        spec = spec_of(attack)
        if isinstance(reason, str):
            leaks.append(Leak(attack=spec, status="skipped", reason=reason, goal=Goal.MEMBERSHIP))
            continue
        about = {
            "attack": spec,
            "status": "ok",
            "goal": Goal.MEMBERSHIP,
            "view": view if view != attack.name else "",
            "channel": Channel.MODEL,
            "units": n,
        }
        proven = _proven(scores[view], member, delta, len(scores)) if coins else {}
        leaks.append(
            Leak(metric="AUC", success=one_run.auc(scores[view], member), **about, **proven)
        )
        for rate, metric in RATES.items():
            success = one_run.tpr_at(rate, scores[view], member)
            leaks.append(Leak(metric=metric, success=success, **about))
    return leaks, roc.cross_fitted(scores, member, tuple(RATES))


def _proven(
    scores: Scores, member: NDArray[np.bool_], delta: float, attacks: int
) -> Mapping[str, float]:
    # The largest bound of all attacks is reported, so that each has its share of the 5 %.
    confidence = 1 - (1 - CONFIDENCE) / attacks
    return {
        "epsilon": one_run.audit(scores, member, delta, confidence=confidence),
        "epsilon_ceiling": one_run.ceiling(len(member), delta, confidence=confidence),
    }


def _least(attack: MinK, tuned: TokenReadings) -> Scores:
    each = torch.split(tuned.standardised.values, tuned.standardised.lengths.tolist())
    return torch.stack([attack.least(own) for own in each]).double().numpy()


def _zone(attack: ErrorZone, tuned: TokenReadings, base: TokenReadings) -> Scores:
    shift = (base.losses.values - tuned.losses.values) * ~tuned.hits.values
    scores: Scores = attack.log_ratio(tuned.losses.with_values(shift).padded()).double().numpy()
    return scores


def _windows(attack: WindowComparison, tuned: TokenReadings, base: TokenReadings) -> Scores:
    gain = base.losses.values - tuned.losses.values
    return attack.shares(torch.split(gain, tuned.losses.lengths.tolist()))


def _rmia(attack: Rmia, after: Scores, out: Scores, population: slice) -> Scores:
    """[n] scores of all texts, against those of the population.

    Args:
        after: [n] ln p(x|θ).
        out: [n] p_out(x), by the reference.
    """
    assert isinstance(attack.a, float)
    every = gains(after, out, attack.a)
    return attack.shares(every, every[population][: attack.population])
