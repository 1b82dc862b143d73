"""Which attacks fit a transcript that was recorded elsewhere, and what they would have to be granted."""

from __future__ import annotations

from collections.abc import Mapping

from leakboard.bench.contracts import Channel, Goal, Knows, Transcript, known_from
from leakboard.bench.exchange import Manifest
from leakboard.bench.external.truth import ScoringTruth
from leakboard.bench.methods import Attack, Auxiliary, Defense
from leakboard.bench.running import Pairing
from leakboard.bench.tasks import OWN

ASKED = {
    Knows.BASE_WEIGHTS: "the public model, which the transcript does not name",
    Knows.AUXILIARY_TEXT: "public text of the customer's kind: --auxiliary TASK",
    Knows.MECHANISM: "the mechanism: --defense 'NAME: {parameter: value}'",
    Knows.QUERIES: "the mechanism, to ask it: --defense 'NAME: {parameter: value}'",
    Knows.LABELLED_SHARE: "a share of the attributes: --truth FILE --attribute COLUMN",
    Knows.LABELS: "the labels of other examples: --truth FILE with a column 'label'",
}
"""How to grant what an attack must know."""
UNSCORED = {
    Goal.INVERSION: "the truth has no column 'text'",
    Goal.LABEL: "the truth has no column 'label' (of a language model: 'text')",
    Goal.ATTRIBUTE: "the truth has no private attribute: --attribute COLUMN",
}


def grant(
    attack: Attack,
    manifest: Manifest,
    seen: Transcript,
    truth: ScoringTruth | None,
    defense: Defense | None,
    public: Mapping[str, Auxiliary],
) -> Pairing:
    """Which goals an attack can pursue with what is there, and why not the others."""
    refused, known = {}, manifest.model_hash is not None
    for goal in attack.threat.goals:
        reason = _unfit(attack, manifest.cut, seen) or _unlabelled(attack, goal, manifest.classes)
        reason = reason or _ungranted(attack, known, truth, defense, public)
        if not reason and goal == Goal.INVERSION and not known:
            reason = (
                "the transcript does not name the public model, so that its tokens mean nothing"
            )
        if not reason and truth and goal not in truth.goals:
            reason = UNSCORED.get(goal, "it cannot be scored yet")
        if reason:
            refused[goal] = reason
    return Pairing(attack, attack.threat.goals - refused.keys(), refused)


def _unfit(attack: Attack, cut: int, seen: Transcript) -> str | None:
    reads, readable, known = attack.threat.reads, attack.readable(cut), known_from(seen.channels)
    if cut_short := (reads or set(Channel)) & seen.dropped.keys():
        return f"the transcript is incomplete, {', '.join(sorted(cut_short))} was dropped from it"
    if reads and not reads & known:
        return f"the transcript holds no {' or '.join(sorted(reads))}"
    if reads and not readable & known:
        what = ", ".join(sorted(reads & known))
        return f"at cut {cut} it can do nothing with {what}"
    return attack.refuses(cut)


def _unlabelled(attack: Attack, goal: Goal, classes: int) -> str | None:
    """Why the labels are none that the attack guesses, or None."""
    if attack.labels == "next tokens" and classes:
        return "the labels of the transcript are classes, no tokens"
    if attack.labels == "classes" and goal == Goal.LABEL and not classes:
        return "the labels of a language model are tokens, no classes"
    return None


def _ungranted(
    attack: Attack,
    model: bool,
    truth: ScoringTruth | None,
    defense: Defense | None,
    public: Mapping[str, Auxiliary],
) -> str | None:
    told = truth.goals if truth and "train" in truth.task.splits else frozenset()
    there = {
        Knows.BASE_WEIGHTS: model,
        Knows.MECHANISM: defense is not None,
        Knows.QUERIES: defense is not None,
        Knows.AUXILIARY_TEXT: getattr(attack, "auxiliary", OWN) in public,
        Knows.LABELLED_SHARE: Goal.ATTRIBUTE in told,
        Knows.LABELS: Goal.LABEL in told,
    }
    missing = [knows for knows in sorted(attack.needs) if not there.get(knows)]
    return "it must know " + "; ".join(ASKED.get(k, k) for k in missing) if missing else None
