"""Sentences that say what an audit of a model means."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.bench.contracts import Goal, Leak

ALARMS = {"TPR at 1% FPR": "1 %", "TPR at 0.1% FPR": "0.1 %"}


def sentences(leaks: Sequence[Leak], coins: bool, delta: float) -> list[str]:
    """What the attacks learned about members, with few false alarms, and what that proves about ε.

    With listed secrets, a sentence about them follows.
    """
    ranked = [one for one in leaks if one.metric == "AUC" and one.success]
    best = max(ranked, key=lambda one: one.success.value if one.success else 0.0)
    return [
        _members(best, len(ranked)),
        _few_alarms(best, leaks),
        _epsilon(ranked, coins, delta),
        *_secrets(leaks),
    ]


def _members(best: Leak, tried: int) -> str:
    success = best.success
    assert success is not None
    numbers = (
        (
            f"{success.value:.0%} of pairs (95 % interval {success.low:.0%} to {success.high:.0%}; chance 50 %)"
        )
        .replace("%", " %")
        .replace("  %", " %")
    )
    name = attack_name(best)
    if success.low > 0.5:
        return (
            f"The model gives away which texts it was trained on: the best of {tried} attacks, {name}, ranks a text of "
            f"the training above another one in {numbers}."
        )
    return (
        f"No attack is shown to tell the texts of the training from others: the best of {tried}, {name}, ranks them "
        f"correctly in {numbers}."
    )


def _few_alarms(best: Leak, leaks: Sequence[Leak]) -> str:
    found = [
        f"{one.success.value * 100:.3g} % of the training texts with {ALARMS[one.metric]} of false alarms"
        for one in leaks
        if one.metric in ALARMS
        and one.success
        and (one.attack, one.view) == (best.attack, best.view)
    ]
    return f"It identifies {' and '.join(found)}."


def _epsilon(ranked: Sequence[Leak], coins: bool, delta: float) -> str:
    if not coins:
        return "This proves no bound on ε: that takes training texts that were chosen by fair coins (--coins, if they were)."
    bound = max(one.epsilon or 0.0 for one in ranked)
    most = max(one.epsilon_ceiling or 0.0 for one in ranked)
    return (
        f"It proves that the training is not (ε, δ = {delta:g})-private for any ε below {bound:.2g} (95 % confidence); "
        f"with so many texts at most {most:.2g} can be proven."
    )


def _secrets(leaks: Sequence[Leak]) -> list[str]:
    about = [one for one in leaks if one.goal == Goal.MEMORISATION and one.success]
    printed = [one for one in about if one.metric == "extracted"]
    if not printed:
        return []
    last, success = printed[-1], printed[-1].success
    assert success is not None
    before = f" (the base model {last.floor.value:.0%})" if last.floor else ""
    text = (
        f"Prompted with the text before a secret, the model prints {round(success.value * success.n)} of {success.n} "
        f"listed secrets {last.view}{before}"
    ).replace("%)", " %)")
    for one in about:
        if one.metric.startswith("exposure") and one.success:
            what = "the mean exposure is" if one.metric == "exposure" else "training added"
            text += f"; {what} {one.success.value:.1f} bits of {one.ceiling:.1f}"
    return [f"{text}."]


def attack_name(leak: Leak) -> str:
    """The attack with its variant, as the table shows it."""
    return f"{leak.attack.name} ({leak.view})" if leak.view else leak.attack.name
