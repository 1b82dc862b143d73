"""Attacks that are applicable to a recorded transcript, and the knowledge that they need."""

from __future__ import annotations

from collections.abc import Mapping

from leakboard.bench.contracts import Channel, Goal, Knows, Transcript
from leakboard.bench.exchange import Manifest
from leakboard.bench.external.truth import ScoringTruth
from leakboard.bench.methods import Attack, Auxiliary, Conditions, Defense
from leakboard.bench.running import Pairing, threat_mismatch
from leakboard.bench.tasks import TASK_ITSELF

HOW_TO_GRANT = {
    Knows.BASE_WEIGHTS: "the public model, which the transcript does not name",
    Knows.AUXILIARY_TEXT: "public text of the customer's kind: --auxiliary TASK",
    Knows.CANDIDATES: "texts of which some were sent: --truth FILE with a column 'text', and --auxiliary TASK",
    Knows.MECHANISM: "the mechanism: --defense 'NAME: {parameter: value}'",
    Knows.QUERIES: "the mechanism, to ask it: --defense 'NAME: {parameter: value}'",
    Knows.LABELLED_SHARE: "a share of the attributes: --truth FILE --attribute COLUMN",
    Knows.LABELS: "the labels of other examples: --truth FILE with a column 'label'",
}
"""How to grant what an attack must know."""
UNSCORED = {
    Goal.INVERSION: "the truth has no column 'text'",
    Goal.REIDENTIFICATION: "the truth has no column 'text'",
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
    """The goals that an attack can pursue with what is there, and why it skips the others."""
    is_model_known = manifest.model_hash is not None
    conditions = Conditions(
        cut=manifest.cut,
        objective=manifest.objective,
    )

    def skip_reason(goal: Goal) -> str | None:
        if dropped := (attack.threat.reads or set(Channel)) & seen.dropped.keys():
            return f"the transcript is incomplete: {', '.join(sorted(dropped))} was dropped from it"
        reason = threat_mismatch(
            attack, goal, conditions, seen.channels, "the recorded system", "the transcript"
        ) or _unknown_adapters(attack, manifest, seen)
        reason = reason or _missing_grants(attack, is_model_known, truth, defense, public)
        if reason:
            return reason
        if goal == Goal.INVERSION and not is_model_known:
            return "the transcript does not name the public model, so its token ids have no meaning"
        if truth and goal not in truth.goals:
            return UNSCORED.get(goal, "guesses about this goal cannot be scored yet")
        return None

    return Pairing.of(attack, skip_reason)


def _unknown_adapters(attack: Attack, manifest: Manifest, seen: Transcript) -> str | None:
    """Reason why an attack lacks a channel that is computed from adapters of a known shape, or None."""
    if manifest.train or not attack.threat.reads or attack.threat.reads & seen.channels:
        return None
    return (
        "the manifest does not say how the adapters were trained (train), and it computes with them"
    )


def _missing_grants(
    attack: Attack,
    model: bool,
    truth: ScoringTruth | None,
    defense: Defense | None,
    public: Mapping[str, Auxiliary],
) -> str | None:
    known = truth.goals if truth and "train" in truth.task.splits else frozenset()
    there = {
        Knows.BASE_WEIGHTS: model,
        Knows.MECHANISM: defense is not None,
        Knows.QUERIES: defense is not None,
        Knows.AUXILIARY_TEXT: getattr(attack, "auxiliary", TASK_ITSELF) in public,
        Knows.CANDIDATES: model
        and bool(truth and Goal.REIDENTIFICATION in truth.goals)
        and TASK_ITSELF in public,
        Knows.LABELLED_SHARE: Goal.ATTRIBUTE in known,
        Knows.LABELS: Goal.LABEL in known,
    }
    missing = [knows for knows in sorted(attack.needs) if not there.get(knows)]
    return "it must know " + "; ".join(HOW_TO_GRANT.get(k, k) for k in missing) if missing else None
