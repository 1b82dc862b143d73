"""Recomputation of scores from the raw guesses of a record, without data.

Estimates and their bootstrap intervals are functions of the raw guesses, so the stated numbers must be reproduced.
Numbers that raw guesses do not determine are listed as unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import METRICS as UTILITIES
from leakboard.bench.contracts import (
    Claim,
    Estimate,
    Goal,
    Guess,
    Ints,
    Leak,
    LeakboardError,
    Measure,
    Record,
    name_of,
)
from leakboard.bench.scoring import (
    classes,
    continuations,
    memory,
    metrics,
    moments,
    one_run,
    roc,
    targets,
)
from leakboard.bench.scoring.guesses import PRESENCE
from leakboard.bench.tasks import CEILING, DIGITS, SAMPLES

COMPUTED = tuple(dict.fromkeys(name for every in UTILITIES.values() for name in every))
"""Metrics of utility that raw predictions determine."""
TOLERANCE = 1e-6
"""Tolerance for differences between machines."""


LONGEST, LARGEST = 100_000, 10**7
"""Maximum number of examples of a leak, and of examples times classes, to bound memory."""


Raw = dict[str, list[int]]


Numbers = dict[str, float]


class Impossible(Exception):
    """Raw values are impossible; the message gives the reason."""


@dataclass(frozen=True)
class Mismatch:
    """A stated number that differs from the one recomputed from raw guesses."""

    record: str
    leak: str
    what: str
    stated: object
    recomputed: object

    def __str__(self) -> str:
        where = f"{self.record}, {self.leak}: {self.what}"
        return f"{where} is stated as {self.stated}, the raw guesses give {self.recomputed}"


@dataclass(frozen=True)
class Rescored:
    """Result for a record: mismatches, number of agreements, and unchecked numbers."""

    mismatches: list[Mismatch]
    numbers: int
    unchecked: set[str]


def rescore(record: Record) -> Rescored:
    """Recompute the utility and every success of a record."""
    mismatches: list[Mismatch] = []
    unchecked = {f"measure {name}" for name in record.measures if name not in COMPUTED}
    numbers = 0
    for name, stated, again in _all(record):
        try:
            recomputed = again()
        except (Impossible, LeakboardError, ValueError) as error:
            mismatches.append(Mismatch(record.key, name, "success", "present", f"nothing: {error}"))
            continue
        numbers += len(recomputed)
        unchecked |= {
            f"{what} of {name.split(' ')[0]}" for what in stated.keys() - recomputed.keys()
        }
        mismatches += [
            Mismatch(record.key, name, what, stated[what], value)
            for what, value in recomputed.items()
            if not abs(stated[what] - value) <= TOLERANCE * max(1.0, abs(value))
        ]
    for leak in record.leaks:
        if leak.curve and leak.success is not None:
            unchecked.add(f"moments of {leak.attack.name} except the reported one")
            mismatches += _curve_mismatches(record.key, leak, leak.success)
    return Rescored(mismatches, numbers, unchecked)


def proven(leak: Leak, claim: Claim) -> float | None:
    """Lower bound on ε from the guesses of an audit; None for other leaks, or without raw guesses."""
    if leak.epsilon is None or not leak.raw:
        return None
    return one_run.audit(*_coins(leak.raw), *one_run.claim_terms(claim))


def proves_more(leak: Leak, claim: Claim, epsilon: float) -> bool:
    """Whether `proven` is above ε, in a fraction of its time."""
    if leak.epsilon is None or not leak.raw:
        return False
    return one_run.exceeds(epsilon, *_coins(leak.raw), *one_run.claim_terms(claim))


def _all(record: Record) -> Iterator[tuple[str, Numbers, Callable[[], Numbers]]]:
    """For the utility and each leak: name, stated numbers, and a function that computes them again."""
    if record.utility is not None:
        name, utility = f"utility ({record.utility_metric})", record.utility
        yield name, _plain(utility), lambda: _utility(record.utility_metric, record.predictions)
    for measure in COMPUTED:
        if measure in record.measures:
            stated = _plain(record.measures[measure])
            yield f"measure ({measure})", stated, partial(_utility, measure, record.predictions)
    for leak in record.leaks:
        if leak.success is not None:
            stated = _plain(leak.success) | {"units": leak.units, "ceiling": leak.ceiling}
            if leak.epsilon is not None:
                stated["epsilon"] = leak.epsilon
            if leak.epsilon_ceiling is not None:
                stated["epsilon_ceiling"] = leak.epsilon_ceiling
            raw = _raw_of(leak, record.leaks)
            yield name_of(leak), stated, partial(_success, leak, raw, record.claim)


def _raw_of(leak: Leak, leaks: Sequence[Leak]) -> Raw:
    """Raw guesses of a leak. The TPR of a ranking of members shares those of its AUC."""
    if leak.metric != FEW_WRONG:
        return leak.raw
    aucs = (other for other in leaks if other.metric == "AUC" and other.attack == leak.attack)
    return next((other.raw for other in aucs), {})


def _plain(estimate: Estimate) -> Numbers:
    return {name: float(value) for name, value in estimate.model_dump().items()}


def _utility(metric: str, raw: Raw) -> Numbers:
    if metric in COMPUTED and targets.has_targets(raw):
        _check_targets(raw)
        return _plain(targets.target_estimate(metric, raw))
    if metric in classes.METRICS:
        predicted, truth = _ints(raw, "predicted", "truth")
        return _plain(classes.class_estimate(metric, predicted, truth))
    if metric in ("next-token accuracy", "ROUGE-L"):
        numbers = _tokens(raw)
    else:
        raise Impossible(f"this version knows no utility '{metric}'")
    del numbers["units"]
    return numbers


def _check_targets(raw: Raw) -> None:
    """Raise Impossible unless the fields are those of predicted numbers or labels, of the same examples."""
    words = range(len(raw) // 2)
    names = [f"{name}_{at}" for name in ("predicted", "true") for at in words]
    for values in _ints(raw, *(targets.NUMBERS if targets.NUMBERS[0] in raw else names)):
        if (
            targets.NUMBERS[0] not in raw
            and not 0 <= values.min() <= values.max() < 2**targets.BITS
        ):
            raise Impossible(f"labels are bits of numbers below 2^{targets.BITS}")


def _success(leak: Leak, raw: Raw, claim: Claim | None) -> Numbers:
    if leak.goal not in METRICS.get(leak.metric, ()):
        raise Impossible(f"this version knows no {leak.goal} by '{leak.metric}'")
    numbers = {"ceiling": 1.0}
    if leak.metric in ("token accuracy", "token F1", "label token accuracy"):
        return numbers | _tokens(raw)
    if leak.metric == "top-1 accuracy":
        return numbers | _reidentification(raw)
    if leak.metric == PRESENCE:
        return numbers | _presence(raw)
    if leak.metric == "accuracy":
        return numbers | _accuracy(raw, "guess")
    if leak.metric in LABELS:
        return numbers | _labels(raw, LABELS[leak.metric])
    if leak.metric in ("AUC", FEW_WRONG):
        numbers |= _members(raw, leak.metric, claim)
        if (leak.epsilon is None) == ("epsilon" in numbers):
            raise Impossible("an AUC of members, and no other success, has a bound on epsilon")
        if leak.epsilon_ceiling is not None:  # older records have none
            if "epsilon" not in numbers:
                raise Impossible("a ceiling of epsilon needs a bound on epsilon")
            numbers["epsilon_ceiling"] = one_run.ceiling(
                int(numbers["units"]), *one_run.claim_terms(claim)
            )
        return numbers
    if leak.metric in continuations.PRINTED:
        return numbers | _personal(raw)
    return numbers | _canaries(raw, leak.metric)


LABELS = {metric: measure for measure, metric in moments.METRICS.items()}


PRINTED = {metric: measure for measure, metric in memory.EXTRACTED.items()}


SAMPLED = memory.EXTRACTED["sampled extraction"]


FEW_WRONG = f"TPR at {memory.LOW:.0%} FPR"


METRICS: dict[str, tuple[Goal, ...]] = {
    "token accuracy": (Goal.INVERSION,),
    "token F1": (Goal.INVERSION,),
    "label token accuracy": (Goal.LABEL,),
    "top-1 accuracy": (Goal.REIDENTIFICATION,),
    PRESENCE: (Goal.REIDENTIFICATION,),
    "accuracy": (Goal.LABEL, Goal.ATTRIBUTE, Goal.MODEL),
    "exposure": (Goal.MEMORISATION,),
    metrics.GAINED: (Goal.MEMORISATION,),
    **dict.fromkeys(PRINTED, (Goal.MEMORISATION,)),
    **dict.fromkeys(continuations.PRINTED, (Goal.MEMORISATION,)),
    "AUC": (Goal.MEMBERSHIP,),
    FEW_WRONG: (Goal.MEMBERSHIP,),
    **dict.fromkeys(LABELS, (Goal.LABEL,)),
}
"""Goals of each metric of success."""


def _tokens(raw: Raw) -> Numbers:
    hits, totals = _ints(raw, "hits", "tokens")
    if hits.min() < 0 or (hits > totals).any() or totals.max() > 2**31:
        raise Impossible("hits of an example must be from 0 to its number of tokens")
    numbers = _plain(metrics.share(hits, totals, 0.0)) | {"units": float(totals.sum())}
    del numbers["chance"]  # records do not store tokens
    return numbers


def _reidentification(raw: Raw) -> Numbers:
    hits, number = _ints(raw, "hit", "candidates")
    if not np.isin(hits, [0, 1]).all() or number.min() < 1:
        raise Impossible("a hit is 0 or 1, and there is at least one candidate")
    chance = float((1 / number).mean())
    return _plain(metrics.share(hits, np.ones_like(hits), chance)) | {"units": float(len(hits))}


def _presence(raw: Raw) -> Numbers:
    ranks, present = _ints(raw, "twice_rank", "present")
    if not np.isin(present, [0, 1]).all() or len(np.unique(present)) < 2:
        raise Impossible("some texts, and not all, are among the candidates")
    if ranks.min() < 2 or ranks.max() > 2 * len(ranks):
        raise Impossible("ranks are from 1 to the number of texts")
    found = roc.estimate(roc.area, ranks, present.astype(bool), 0.5)
    return _plain(found) | {"units": float(len(ranks))}


def _accuracy(raw: Raw, field: str) -> Numbers:
    guess, truth = _ints(raw, field, "truth")
    right, ones = (guess == truth).astype(np.int64), np.ones(len(truth), np.int64)
    chance = metrics.most_frequent_share(truth)
    return _plain(metrics.share(right, ones, chance)) | {"units": float(len(truth))}


def _labels(raw: Raw, measure: Measure) -> Numbers:
    values, truth = _ints(raw, "guess", "truth")
    classes = int(truth.max()) + 1
    if truth.min() < 0 or classes * len(truth) > LARGEST or len(np.unique(truth)) < classes:
        raise Impossible("a moment is scored only if every class occurs")
    if measure == "matching" and not 0 <= values.min() <= values.max() < LARGEST // len(truth):
        raise Impossible("cluster numbers must be small and count from 0")
    guess = Guess(Goal.LABEL, None, "train", np.arange(len(truth)), values, measure=measure)
    trial = moments.Trial(guess, 0, values, truth, np.zeros((0, len(truth)), np.int16))
    value = float(moments.MEASURES[measure](values, truth[None], classes)[0])
    low, high = moments.interval(trial, value, classes)
    # Chance is a maximum over all moments and parts, but records have raw guesses of the worst only.
    return {"value": value, "low": low, "high": high, "n": len(truth), "units": len(truth)}


def _members(raw: Raw, metric: str, claim: Claim | None) -> Numbers:
    scores, inside = _coins(raw)
    units = {"units": float(len(inside))}
    if metric == FEW_WRONG:
        return _plain(one_run.tpr_at(memory.LOW, scores, inside)) | units
    epsilon = one_run.audit(scores, inside, *one_run.claim_terms(claim))
    return _plain(one_run.auc(scores, inside)) | units | {"epsilon": epsilon}


def _coins(raw: Raw) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """[m] scores of an audit, and [m] True for members."""
    fields = {name: values for name, values in raw.items() if name != "millionths"}
    ranks, member = _ints(fields, "twice_rank", "member")
    if not np.array_equal(np.unique(member), [0, 1]):
        raise Impossible("membership is 0 or 1, and both occur")
    return ranks / 2, member.astype(bool)


def _canaries(raw: Raw, metric: str) -> Numbers:
    if metric == SAMPLED:
        (counts,) = _ints(raw, "printed")
        if counts.min() < 0 or counts.max() > SAMPLES:
            raise Impossible(f"counts of printed secrets must be from 0 to {SAMPLES}")
        often = memory.discoverable(counts.astype(float))
        success, ceiling = memory.estimate(often, PRINTED[metric]), 1.0
    elif metric in PRINTED:
        (hit,) = _ints(raw, "hit")
        if not np.isin(hit, [0, 1]).all():
            raise Impossible("a hit must be 1 (digits printed) or 0")
        success, ceiling = memory.estimate(hit.astype(float), PRINTED[metric]), 1.0
    else:
        gained = metric == metrics.GAINED
        ranks = _ints(raw, "twice_rank", *(["twice_rank_before"] if gained else []))
        if min(map(np.min, ranks)) < 2 or max(map(np.max, ranks)) > 2 * 10**DIGITS:
            raise Impossible(f"ranks are from 1 to 10^{DIGITS}")
        ceiling, bits = CEILING, [CEILING - np.log2(own / 2) for own in ranks]
        success = memory.estimate(bits[0] - bits[1] if gained else bits[0], metric)
    return _plain(success) | {"units": float(success.n), "ceiling": ceiling}


def _personal(raw: Raw) -> Numbers:
    (hit,) = _ints(raw, "hit")
    if not np.isin(hit, [0, 1]).all():
        raise Impossible("a hit must be 1 (secret printed) or 0")
    return _plain(continuations.printed_share(hit)) | {"units": float(len(hit))}


def _ints(raw: Raw, *names: str) -> list[Ints]:
    """[n] int64 arrays of these names."""
    if raw.keys() != set(names):
        raise Impossible(f"raw guesses need the fields {', '.join(names)}, not {', '.join(raw)}")
    lengths = {len(values) for values in raw.values()}
    if len(lengths) > 1 or not 0 < min(lengths) <= LONGEST:
        raise Impossible(f"fields of raw guesses must have one length, from 1 to {LONGEST:,}")
    try:
        return [np.array(raw[name], np.int64) for name in names]
    except OverflowError as error:
        raise Impossible("raw guesses hold a number of more than 64 bits") from error


def _curve_mismatches(key: str, leak: Leak, success: Estimate) -> Iterator[Mismatch]:
    """The reported moment must be one of the curve; for labels, the worst one."""
    values = [point.success.value for point in leak.curve if point.step == leak.step]
    if success.value not in values:
        yield Mismatch(key, name_of(leak), f"value at step {leak.step}", success.value, values)
    worst = max(point.success.value for point in leak.curve)
    if leak.goal == Goal.LABEL and worst > success.value:
        yield Mismatch(key, name_of(leak), "worst of the curve", success.value, worst)
