"""Sentences about the result of an audit of a model."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.bench.contracts import Goal, Leak
from leakboard.bench.scoring import roc

ALARMS = {0.001: "0.1 %", 0.01: "1 %"}
"""How false positive rates are written."""
SMALL = 0.55
"""An AUC that an audit should be able to see."""


def sentences(leaks: Sequence[Leak], best: roc.CrossFitted, coins: bool, delta: float) -> list[str]:
    """What the attacks learned about members, with few false alarms, and what that proves about ε.

    With listed secrets, a sentence about them follows.
    """
    ranked = [one for one in leaks if one.metric == "AUC" and one.success]
    return [
        _members(best, ranked),
        _few_alarms(best),
        _epsilon(ranked, coins, delta),
        *_secrets(leaks),
    ]


def _members(best: roc.CrossFitted, ranked: Sequence[Leak]) -> str:
    success = best.auc
    numbers = _spaced(
        f"{success.value:.0%} of pairs (95 % interval {success.low:.0%} to {success.high:.0%}; chance 50 %)"
    )
    by_view = {one.view or one.attack.name: attack_name(one) for one in ranked}
    names = " and ".join(dict.fromkeys(by_view[view] for view in best.chosen))
    strongest = f"The best of {len(ranked)} attacks ({names})"
    chosen = "It was chosen on one half of the texts and measured on the other."
    if success.low > 0.5:
        return (
            f"The model gives away which texts it was trained on. {strongest} ranks a text of the training above another "
            f"one in {numbers}. {chosen}"
        )
    seen = roc.smallest_auc(min(best.members, best.others))
    return (
        f"No attack is shown to tell the texts of the training from others. {strongest} ranks them correctly in "
        f"{numbers}. {chosen} "
        + _spaced(
            f"With {best.members} and {best.others} texts an AUC below {seen:.2f} can go unnoticed; "
            f"{roc.members_needed(SMALL)} of each would show one of {SMALL} (80 % power)."
        )
    )


def _few_alarms(best: roc.CrossFitted) -> str:
    """True positive rates at small false positive rates, and whether there are enough texts for them."""
    others = best.others
    found, few = list[str](), list[str]()
    for rate, words in ALARMS.items():
        one = best.rates[rate]
        interval = _spaced(f"{one.value:.1%} ({one.low:.1%} to {one.high:.1%})")
        found.append(f"{interval} of the training texts with {words} of false alarms")
        if others < (needed := roc.others_needed(rate)):
            few.append(f"{needed:,} for {words}")
    text = f"It identifies {' and '.join(found)}."
    if few:
        most = roc.largest_rate(others)
        text += (
            f" With {others} other texts, no false alarm shows only a rate of at most {most * 100:.2g} %. Needed are "
            f"{' and '.join(few)}."
        )
    return text


def _spaced(text: str) -> str:
    return text.replace("%", " %").replace("  %", " %")


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
