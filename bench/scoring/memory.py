"""What a released model remembers: guesses about canaries and about members against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bench.attacking import expected_unseen, exposure
from bench.contracts import Estimate, Guess, Measure, Point, Transcript
from bench.scoring import metrics, one_run
from bench.scoring.guesses import BadGuess, Truth
from bench.tasks import CEILING, DIGITS, TRIES, VIEWS, Canary

LOW = 0.01
"""Share of false alarms at which members are counted that an attack finds for sure."""

EXTRACTED: dict[Measure, str] = {
    "extraction": "extracted",
    "beam extraction": "extracted by beam search",
}
"""The metric of what was printed, by measure."""


def score_canaries(
    guesses: Sequence[Guess], seen: Transcript, truth: Truth
) -> list[dict[str, Any]]:
    """The fields of the leaks that guesses about canaries decide: one for each number of copies.

    Exposure (Carlini et al. 2019, definition 5) is log2(10^6) − log2(rank of the secret). Its
    interval is Student's t over canaries; one alone has none, and gets the whole range.

    Args:
        guesses: of one attack by one measure, one for each release of the model; the last one counts.

    Raises:
        BadGuess: wrong shape, rows or type.
    """
    assert truth.planted is not None
    guesses = sorted(guesses, key=lambda guess: guess.round)
    steps = {m.round: m.step for m in seen.messages if m.channel == guesses[0].channel}
    drawn = truth.planted.drawn
    forms = 1 + max(canary.form for canary in drawn)
    score = _exposures if guesses[0].measure == "exposure" else _extracted
    found = {guess.round: score(_checked(guess, forms), drawn) for guess in guesses}
    last, fields = found[guesses[-1].round], []
    for copies in sorted({canary.copies for canary in drawn}, reverse=True):
        here = np.array([canary.copies == copies for canary in drawn])
        estimates = {
            round: estimate(values[here], guesses[0].measure) for round, values in found.items()
        }
        told: dict[str, Any] = {"raw": {"hit": _whole(last[here])}}
        if guesses[0].measure == "exposure":
            # Twice, since a rank ends in a half where candidates are equally likely.
            ranks = 2 * 2 ** (CEILING - last[here])
            told = {"raw": {"twice_rank": _whole(ranks)}, "ceiling": CEILING}
        curve = [
            Point(step=steps[round], part=0, recipient="public", success=success)
            for round, success in estimates.items()
        ]
        fields.append(
            {
                **told,
                "metric": EXTRACTED.get(guesses[0].measure, "exposure"),
                "view": VIEWS.get(copies, f"planted {copies} times"),
                "success": estimates[guesses[-1].round],
                "units": int(here.sum()),
                "step": steps[guesses[-1].round],
                "curve": curve if len(curve) > 1 else [],
            }
        )
    return fields


def score_members(guesses: Sequence[Guess], seen: Transcript, truth: Truth) -> list[dict[str, Any]]:
    """The fields of the leaks that one ranking of the audited examples decides.

    AUC, with a bootstrap over examples, and what the ranking proves about ε (see `bench.scoring.one_run`);
    then the share of members that are found while hardly anyone is wrongly taken for one.

    Raises:
        BadGuess: wrong shape, rows or type.
    """
    members = truth.planted.members if truth.planted else None
    assert members is not None
    guess = max(guesses, key=lambda guess: guess.round)
    rows, values = np.asarray(guess.rows), np.asarray(guess.values)
    if not np.array_equal(rows, np.arange(len(members))) or values.shape != members.shape:
        raise BadGuess(
            f"a guess about membership ranks the {len(members)} candidates, in their order; its "
            f"rows have shape {rows.shape} and its values {values.shape}"
        )
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise BadGuess("a ranking has finite numbers")
    if members.all() or not members.any():
        raise BadGuess("all coins fell alike; audit more examples")
    from scipy.stats import rankdata  # here, since it takes a second to load

    ranks = rankdata(values)
    return [
        {
            "metric": "AUC",
            "success": one_run.auc(ranks, members),
            "units": len(members),
            "epsilon": one_run.audit(ranks, members, truth.delta),
            "epsilon_ceiling": one_run.ceiling(len(members), truth.delta),
            "raw": {
                "twice_rank": _whole(2 * ranks),
                "member": _whole(members.astype(int)),
                "millionths": _whole(1e6 * values),
            },
        },
        {
            "metric": f"TPR at {LOW:.0%} FPR",
            "view": f"at {LOW:.0%} false positives",
            "success": one_run.tpr_at(LOW, ranks, members),
            "units": len(members),
        },
    ]


def _whole(values: NDArray[Any]) -> list[int]:
    return [round(value) for value in values]


def _checked(guess: Guess, forms: int) -> Guess:
    values = np.asarray(guess.values)
    if not np.array_equal(guess.rows, np.arange(forms)) or values.ndim != 2 or len(values) != forms:
        raise BadGuess(f"a guess about canaries has a row for each of {forms} sentences, in order")
    if guess.measure == "exposure":
        if values.shape[1] != 10**DIGITS or not np.isfinite(values).all():
            raise BadGuess(f"exposure takes a finite number for each of 10^{DIGITS} secrets")
    elif guess.measure not in TRIES or values.dtype.kind not in "iu":
        raise BadGuess("a guess about canaries is of the measure 'exposure', or whole numbers")
    elif values.shape[1] > TRIES[guess.measure]:
        raise BadGuess(
            f"{guess.measure} prints at most {TRIES[guess.measure]} secrets for each sentence, "
            f"not {values.shape[1]}"
        )
    return guess


def _exposures(guess: Guess, drawn: Sequence[Canary]) -> NDArray[np.float64]:
    """[n] bits for each canary."""
    return np.array([exposure(guess.values[c.form], c.secret) for c in drawn])


def _extracted(guess: Guess, drawn: Sequence[Canary]) -> NDArray[np.float64]:
    """[n] 1 for each canary whose digits were printed."""
    return np.array([float(c.secret in guess.values[c.form]) for c in drawn])


def estimate(values: NDArray[np.float64], measure: str) -> Estimate:
    """Success over canaries: exposure in bits, or whether their digits were printed, [n]."""
    n = len(values)
    if measure in TRIES:
        chance = TRIES[measure] * 10.0**-DIGITS
        return metrics.share(values.astype(np.int64), np.ones(n, np.int64), chance)
    half = (
        float("inf") if n == 1 else float(stdtrit(n - 1, 0.975)) * values.std(ddof=1) / np.sqrt(n)
    )
    mean = float(values.mean())
    return Estimate(
        value=mean,
        low=max(0.0, mean - half),
        high=min(CEILING, mean + half),
        n=n,
        chance=expected_unseen(10**DIGITS),
    )
