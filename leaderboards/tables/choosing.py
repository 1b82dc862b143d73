"""Which setting hides something at a bearable cost, and by which evidence; or why none is shown to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean
from leakboard.leaderboards.tables.comparisons import Comparison
from leakboard.leaderboards.tables.evidence import Evidence, evidence

HIDES = {
    "inputs": Goal.INVERSION,
    "labels": Goal.LABEL,
    "attributes": Goal.ATTRIBUTE,
    "secrets": Goal.MEMORISATION,
    "members": Goal.MEMBERSHIP,
    "model": Goal.MODEL,
}
"""What can be hidden, and the goal of the attacks that look for it."""


@dataclass(frozen=True)
class Choice:
    """The answer of `leakboard.choose`; true where there is a setting.

    Attributes:
        setting: the one that leaks least within the budget, with its evidence; None where none is shown.
        nearest: where there is none, the cheapest setting that is shown to help, if any does.
        front: all settings that are shown to help and on which no other improves, cheapest first.
        why: how the answer came about, in a sentence.
    """

    task: str
    hide: str
    max_cost: float
    setting: Evidence | None
    nearest: Evidence | None
    front: tuple[Evidence, ...]
    why: str

    def __bool__(self) -> bool:
        return self.setting is not None

    def __repr__(self) -> str:
        asked = f"{self.hide} of {self.task}, at a cost of at most {self.max_cost:g} of utility"
        if self.setting is not None:
            return "\n".join([f"{asked}: {self.setting.setting}", *_told(self.setting), self.why])
        lines = [f"{asked}: nothing", self.why]
        if self.nearest is not None:
            lines += [f"nearest: {self.nearest.setting}", *_told(self.nearest)]
        return "\n".join(lines)


def choose(compared: Sequence[Comparison], task: str, hide: str, max_cost: float) -> Choice:
    """The setting of least leak whose mean cost is within the budget, among those shown to help.

    A setting is shown to help where its strongest attack is certified, no flag takes its word away,
    and it finds clearly less at this setting than where nothing is protected.

    Args:
        hide: a key of `HIDES`.
        max_cost: utility that may be lost against no protection, from 0 to 1.

    Raises:
        LeakboardError: an unknown task, nothing that can be hidden, or no share.
    """
    tasks = {one.task for one in compared}
    if task not in tasks:
        raise LeakboardError(f"task: no records of '{task}'. {did_you_mean(str(task), tasks)}")
    if hide not in HIDES:
        raise LeakboardError(f"hide: unknown '{hide}'. {did_you_mean(str(hide), HIDES)}")
    check_cost(max_cost)
    found = evidence([one for one in compared if one.task == task], HIDES[hide])
    certified = [one for one in found if one.certified]
    helping = [one for one in certified if one.helps]
    front = tuple(sorted((o for o in helping if _on_front(o, helping)), key=lambda o: o.cost.value))
    within = [one for one in front if one.cost.value <= max_cost]
    if within:
        best = within[-1]  # the dearest of a front keeps most
        return Choice(task, hide, max_cost, best, None, front, _verdict(best, max_cost))
    why = _why(found, certified, front, hide)
    return Choice(task, hide, max_cost, None, front[0] if front else None, front, why)


def check_cost(max_cost: object) -> None:
    """Raises LeakboardError unless it is a share of utility."""
    if (
        isinstance(max_cost, bool)
        or not isinstance(max_cost, int | float)
        or not 0 <= max_cost <= 1
    ):
        raise LeakboardError(
            "max_cost: expected a share of utility from 0 to 1, such as 0.02 for two points, "
            f"got {max_cost!r}"
        )


def _on_front(one: Evidence, others: Sequence[Evidence]) -> bool:
    mine = (one.leak.kept.value, -one.cost.value)
    theirs = [(other.leak.kept.value, -other.cost.value) for other in others]
    return not any(t != mine and t[0] >= mine[0] and t[1] >= mine[1] for t in theirs)


def _verdict(best: Evidence, max_cost: float) -> str:
    ended = "nothing is left that beats guessing clearly"
    lowered = "it leaks less than without protection, and still clearly more than guessing finds"
    sure = "and the whole interval of it" if best.cost.high <= max_cost else "not all its interval"
    leak = lowered if best.leak.beats_guessing else ended
    return f"{leak}; its mean cost lies within the budget, {sure}"


def _why(
    found: Sequence[Evidence],
    certified: Sequence[Evidence],
    helping: Sequence[Evidence],
    hide: str,
) -> str:
    if not found:
        return f"not measured: no attack on {hide} read what a defense sent there"
    if not certified:
        attacks = ", ".join(dict.fromkeys(one.leak.attack for one in found))
        return (
            f"not shown: no attack on {hide} is certified there. {attacks} must work where the defense is "
            "switched off before its failure is evidence"
        )
    if not helping:
        return "at no setting does clearly less leak than without protection"
    return "every setting that is shown to help costs more"


def _told(one: Evidence) -> list[str]:
    about = f" about {one.attribute}" if one.attribute else ""
    rest = f" and {len(one.keys) - 3} more" if len(one.keys) > 3 else ""
    return [
        f"  leak      {one.leak}{about}",
        f"  no guard  {one.open}",
        f"  cost      {one.cost} of utility",
        f"  shown on  {one.model}, cut {one.cut}, {one.setup}",
        f"  records   {', '.join(one.keys[:3])}{rest}",
    ]
