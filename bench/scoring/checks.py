"""Flags: warnings for readers of a record. They are derived from the records, never stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakboard.bench.contracts import Claim, Estimate, Goal, Leak, Record
from leakboard.bench.scoring.certificates import NEEDED, Strengths, advantage_low, strengths
from leakboard.bench.scoring.gains import keys_not_above_untuned
from leakboard.bench.scoring.metrics import wilson

FLAGS = {
    "uncertified-attack": "the attack reads nothing clear, and no record shows that it works on this task, "
    "model and cut with the defense switched off",
    "below-chance": "the attack does worse than guessing without any observation",
    "weaker-beats-stronger": "guessing from public frequencies beats this attack",
    "unseen-class": "the labelled share holds no example of some value, which the attack cannot learn",
    "not-above-untuned": "its utility is not clearly above that of the untuned model, so protection has no cost "
    "that could be measured",
    "truncated-transcript": "the recording budget was too small; the attacks saw less than was sent",
    "claim-tuned-on-private": "the settings of training were selected on private examples, which the claim does "
    "not cover",
    "claim-violated": "an audit proves a larger epsilon than the defense claims: a fault in the defense",
    "cannot-fail": "the audit guesses about too few examples: a perfect attacker could not have proven the "
    "claimed epsilon",
    "beside-the-wire": "the loss does not rise where messages arrive in random order: the method may train on something "
    "that did not cross the wire, or it did not learn",
    "leak-on-blackout": "an attack read something from noise: the number of tokens, which noise does not "
    "hide; chance, which does so in one interval of forty; or a fault in the harness",
}
"""Every flag with its meaning."""

MOST = 1_000_000
"""Maximum number of coins of an audit; only forged records have more, and these are not computed."""

NEAR = 10
"""Steps on each side of a swapped one with which its loss is compared."""

Flags = dict[tuple[str, int], tuple[str, ...]]


def flags(records: Sequence[Record], certified: Strengths | None = None) -> Flags:
    """Flags by (record key, index of the leak); index −1 holds those of the record itself.

    Args:
        records: all records that belong together, since certificates are searched among them.
        certified: `strengths` of the records, if already computed.
    """
    certified = strengths(records) if certified is None else certified
    result: Flags = {}
    useless = keys_not_above_untuned(records)
    for record in records:
        of_record = ["truncated-transcript"] if record.dropped_bytes else []
        of_record += ["not-above-untuned"] if record.key in useless else []
        of_record += ["claim-tuned-on-private"] if is_claim_tuned_on_private(record) else []
        check = record.wire_check
        of_record += ["beside-the-wire"] if check and check.low <= check.chance else []
        if of_record:
            result[record.key, -1] = tuple(of_record)
        guessers = [leak for leak in record.leaks if leak.channel is None and leak.success]
        for i, leak in enumerate(record.leaks):
            names = _leak_flags(record, leak, certified.get((record.key, i), 0.0), guessers)
            if names:
                result[record.key, i] = tuple(names)
    return result


def is_claim_tuned_on_private(record: Record) -> bool:
    """True if the training of a record with a claim was selected on private examples."""
    made = record.provenance
    return record.claim is not None and bool(made.trials) and made.tuned_on != "public"


def _leak_flags(record: Record, leak: Leak, strength: float, guessers: Sequence[Leak]) -> list[str]:
    if leak.success is None or leak.channel is None:  # nothing measured, or nothing read
        return []
    names = []
    # A success proves itself; only a claim of protection needs a certificate.
    if strength < NEEDED and (advantage_low(leak) or 0.0) <= 0:
        names.append("uncertified-attack")
    if leak.success.high < leak.success.chance:
        names.append("below-chance")
    if 0 in leak.told:
        names.append("unseen-class")
    if any(_beats(guesser, leak) for guesser in guessers):
        names.append("weaker-beats-stronger")
    claimed = record.claim.epsilon_of_members if record.claim else None
    if leak.epsilon is not None and claimed is not None:
        if leak.epsilon > claimed:
            names.append("claim-violated")
        if cannot_fail(record.claim, provable(record, leak)):
            names.append("cannot-fail")
    if record.cell.defense.name == "blackout" and leak.success.low > leak.success.chance:
        names.append("leak-on-blackout")
    return names


def swaps_noticed(steps: Sequence[tuple[float, bool]]) -> Estimate | None:
    """Share of the steps with swapped messages whose loss exceeds the mean loss of the ordinary steps around them.

    Args:
        steps: of each step the loss, and whether its messages were swapped.

    Returns:
        With Wilson's interval and chance 1/2; None without any such step.
    """
    losses = np.array([loss for loss, _ in steps])
    is_swapped = np.array([swapped for _, swapped in steps], dtype=bool)
    higher = []
    for step in np.flatnonzero(is_swapped):
        near = slice(max(0, step - NEAR), step + NEAR + 1)
        ordinary = losses[near][~is_swapped[near]]
        if len(ordinary):
            higher.append(bool(losses[step] > ordinary.mean()))
    if not higher:
        return None
    hits, n = sum(higher), len(higher)
    low, high = wilson(hits, n)
    return Estimate(value=hits / n, low=low, high=high, n=n, chance=0.5)


def cannot_fail(claim: Claim | None, most: float | None) -> bool:
    """Whether no outcome of an audit could contradict a claim.

    Args:
        most: the largest ε that the audit could prove; None if unknown.
    """
    claimed = claim.epsilon_of_members if claim else None
    return claimed is not None and (most or 0.0) < claimed


def provable(record: Record, leak: Leak) -> float | None:
    """The largest ε that an audit could have proven, computed for old records without this field.

    None if a leak is no audit, or states an impossible number of examples.
    """
    if leak.epsilon_ceiling is not None:
        return leak.epsilon_ceiling
    if leak.epsilon is None or not 2 <= leak.units <= MOST:
        return None
    from leakboard.bench.scoring import one_run  # slow to import

    return one_run.ceiling(leak.units, *one_run.claim_terms(record.claim))


def _beats(guesser: Leak, leak: Leak) -> bool:
    """Whether a baseline that reads nothing beats `leak` at the same goal."""
    return (
        guesser.success is not None
        and leak.success is not None
        and (guesser.goal, guesser.attribute) == (leak.goal, leak.attribute)
        and guesser.metric == leak.metric
        and (leak.goal != Goal.INVERSION or leak.view == guesser.view)
        and guesser.success.low > leak.success.high
    )
