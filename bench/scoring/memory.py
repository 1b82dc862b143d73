"""Scoring of memorisation: guesses about canaries and about membership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from leakboard.bench.attacking import expected_unseen, exposure
from leakboard.bench.contracts import Estimate, Guess, Measure, Point, Transcript
from leakboard.bench.scoring import metrics, one_run
from leakboard.bench.scoring.guesses import BadGuess, Truth
from leakboard.bench.scoring.metrics import GAINED
from leakboard.bench.tasks import (
    CEILING,
    DIGITS,
    LIKELY,
    SAMPLES,
    TRIES,
    UNTUNED,
    Canary,
    planted_view,
)

LOW = 0.01
"""False positive rate at which the true positive rate is reported."""

EXTRACTED: dict[Measure, str] = {
    "extraction": "extracted",
    "beam extraction": "extracted by beam search",
    "sampled extraction": f"extracted in {TRIES['sampled extraction']} tries",
}
"""Metric of printed secrets, by measure."""


def score_canaries(
    guesses: Sequence[Guess], seen: Transcript, truth: Truth
) -> list[dict[str, Any]]:
    """Leak fields from guesses about canaries: exposure, and its gain by training, for each number of copies.

    Exposure (Carlini et al. 2019, definition 5) is log2(10^6) − log2(rank of the secret). The gain subtracts the
    exposure under the public model, since digits differ by several bits in likelihood. It needs a guess before
    training. Intervals are Student's t over canaries; a single canary gets the whole range.

    Args:
        guesses: of one attack by one measure. One for each release of the model, of which the last one counts, and
            optionally one for the public model (view `UNTUNED`).

    Raises:
        BadGuess: wrong shape, rows or type.
    """
    assert truth.planted is not None
    drawn, measure = truth.planted.drawn, guesses[0].measure
    steps = {m.round: m.step for m in seen.messages if m.channel == guesses[0].channel}
    forms = 1 + max(canary.form for canary in drawn)
    sampled = measure == "sampled extraction"
    score = _exposures if measure == "exposure" else _printed if sampled else _extracted
    before, after = None, {}
    for guess in sorted(guesses, key=lambda guess: guess.round):
        values = score(_checked(guess, forms), drawn)
        if guess.view == UNTUNED:
            before = values
        else:
            after[guess.round] = values
    fields = []
    for copies in sorted({canary.copies for canary in drawn}, reverse=True):
        is_group = np.array([canary.copies == copies for canary in drawn])
        by_round = {round: values[is_group] for round, values in after.items()}
        leak: dict[str, Any] = {"view": planted_view(copies)}
        leak |= {"units": int(is_group.sum()), "step": steps[max(by_round)]}
        last = by_round[max(by_round)]
        if measure != "exposure":
            raw = {"printed" if sampled else "hit": _rounded(last)}
            leak |= {"metric": EXTRACTED[measure], "raw": raw}
            if sampled:
                by_round = {round: discoverable(values) for round, values in by_round.items()}
            fields.append(leak | _release_curve(by_round, steps, measure))
            continue
        raw = {"twice_rank": _ranks(last)}
        if before is not None:
            gained = {round: values - before[is_group] for round, values in by_round.items()}
            both = {"metric": GAINED, "ceiling": CEILING}
            both |= {"raw": raw | {"twice_rank_before": _ranks(before[is_group])}}
            fields.append(leak | both | _release_curve(gained, steps, GAINED))
        leak |= {"metric": measure, "ceiling": CEILING, "raw": raw}
        fields.append(leak | _release_curve(by_round, steps, measure))
    return fields


def _release_curve(
    values: Mapping[int, NDArray[np.float64]], steps: Mapping[int, int], measure: str
) -> dict[str, Any]:
    """Success of the last release, and the curve over releases if there are several.

    Args:
        values: [n] scores of canaries by round.
    """
    successes = {round: estimate(own, measure) for round, own in values.items()}
    curve = [
        Point(step=steps[round], part=0, recipient="public", success=success)
        for round, success in successes.items()
    ]
    return {"success": successes[max(successes)], "curve": curve if len(curve) > 1 else []}


def _ranks(bits: NDArray[np.float64]) -> list[int]:
    """Twice the ranks, since candidates with equal likelihood have a rank that ends in a half."""
    return _rounded(2 * 2 ** (CEILING - bits))


def score_members(guesses: Sequence[Guess], seen: Transcript, truth: Truth) -> list[dict[str, Any]]:
    """Leak fields from a ranking of the audited examples: AUC with a lower bound on ε, and TPR at a low FPR.

    If coins decide on authors, authors are ranked by the mean of their examples. For the bound see
    `leakboard.bench.scoring.one_run`.

    Raises:
        BadGuess: wrong shape, rows or type.
    """
    assert truth.planted is not None
    members, coins = truth.planted.members, truth.planted.coins
    assert members is not None
    guess = max(guesses, key=lambda guess: guess.round)
    rows, values = np.asarray(guess.rows), np.asarray(guess.values)
    if not np.array_equal(rows, np.arange(len(members))) or values.shape != members.shape:
        raise BadGuess(
            f"a guess about membership must rank the {len(members)} candidates, in order; "
            f"rows have shape {rows.shape} and values {values.shape}"
        )
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise BadGuess("the numbers of a ranking must be finite")
    if len(coins):
        values = np.bincount(coins, values) / np.bincount(coins)
        members = members[np.unique(coins, return_index=True)[1]]
    if members.all() or not members.any():
        raise BadGuess("all examples are members, or none; audit more examples")
    ranks = metrics.mean_ranks(values)
    return [
        {
            "metric": "AUC",
            "success": one_run.auc(ranks, members),
            "units": len(members),
            "epsilon": one_run.audit(ranks, members, *one_run.claim_terms(truth.claim)),
            "epsilon_ceiling": one_run.ceiling(len(members), *one_run.claim_terms(truth.claim)),
            "raw": {
                "twice_rank": _rounded(2 * ranks),
                "member": _rounded(members.astype(int)),
                "millionths": _rounded(1e6 * values),
            },
        },
        {
            "metric": f"TPR at {LOW:.0%} FPR",
            "view": f"at {LOW:.0%} false positives",
            "success": one_run.tpr_at(LOW, ranks, members),
            "units": len(members),
        },
    ]


def _rounded(values: NDArray[Any]) -> list[int]:
    return [round(value) for value in values]


def _checked(guess: Guess, forms: int) -> Guess:
    values = np.asarray(guess.values)
    if not np.array_equal(guess.rows, np.arange(forms)) or values.ndim != 2 or len(values) != forms:
        raise BadGuess(
            f"a guess about canaries needs one row for each of {forms} sentences, in order"
        )
    if guess.measure == "exposure":
        if values.shape[1] != 10**DIGITS or not np.isfinite(values).all():
            raise BadGuess(f"exposure takes a finite number for each of 10^{DIGITS} secrets")
    elif guess.measure not in TRIES or values.dtype.kind not in "iu":
        raise BadGuess("a guess about canaries needs the measure 'exposure', or integer values")
    elif guess.measure == "sampled extraction":
        if values.shape[1] != SAMPLES:
            raise BadGuess(f"{guess.measure} takes {SAMPLES} random continuations of each sentence")
    elif values.shape[1] > TRIES[guess.measure]:
        raise BadGuess(
            f"{guess.measure} prints at most {TRIES[guess.measure]} secrets for each sentence, "
            f"not {values.shape[1]}"
        )
    return guess


def _exposures(guess: Guess, drawn: Sequence[Canary]) -> NDArray[np.float64]:
    """[n] exposure of each canary in bits, ranked among digits that were not planted in its sentence."""
    known: dict[int, set[int]] = {canary.form: set() for canary in drawn}
    for canary in drawn:
        known[canary.form] |= {canary.secret} if canary.copies else set()
    return np.array(
        [exposure(guess.values[c.form], c.secret, known[c.form] - {c.secret}) for c in drawn]
    )


def _extracted(guess: Guess, drawn: Sequence[Canary]) -> NDArray[np.float64]:
    """[n] 1 for each canary whose digits were printed."""
    return np.array([float(c.secret in guess.values[c.form]) for c in drawn])


def _printed(guess: Guess, drawn: Sequence[Canary]) -> NDArray[np.float64]:
    """[n] number of random continuations of its sentence that are the canary's digits."""
    return np.array([float((guess.values[c.form] == c.secret).sum()) for c in drawn])


def discoverable(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """[n] 1 for each canary that n tries print with probability p or more, from its count in `SAMPLES` tries.

    1 − (1 − p_z)ⁿ ≥ p (Hayes et al. 2024, definition of (n, p)-discoverable extraction).
    """
    tries = TRIES["sampled extraction"]
    return (1 - (1 - counts / SAMPLES) ** tries >= LIKELY).astype(np.float64)


def estimate(values: NDArray[np.float64], measure: str) -> Estimate:
    """Success over canaries [n]: exposure or its gain by training, in bits, or the share that was printed."""
    n = len(values)
    if measure in TRIES:
        chance = TRIES[measure] * 10.0**-DIGITS
        return metrics.share(values.astype(np.int64), np.ones(n, np.int64), chance)
    half = (
        float("inf") if n == 1 else float(stdtrit(n - 1, 0.975)) * values.std(ddof=1) / np.sqrt(n)
    )
    mean, least = float(values.mean()), -CEILING if measure == GAINED else 0.0
    return Estimate(
        value=mean,
        low=max(least, mean - half),
        high=min(CEILING, mean + half),
        n=n,
        chance=0.0 if measure == GAINED else expected_unseen(10**DIGITS),
    )
