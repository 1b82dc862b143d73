"""What a run showed, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.methods import registry
from leakboard.leaderboards.tables import HIDES, Comparison, Evidence, choose, counted

BUDGET = 0.05
"""Of utility, what hiding something may cost here; `leakboard.choose` takes any."""
MOST = 4
"""Lines about what is hidden; boards have the rest."""


def ending(compared: Sequence[Comparison]) -> list[str]:
    """For each task and thing that its defenses are made to hide: the best setting, what it leaks to whom, its cost.

    Args:
        compared: what was run, in comparable groups.
    """
    lines = [line for one in compared for line in _lines(one)]
    more = len(lines) - MOST
    return lines[:MOST] + ([f"and {counted(more, 'more line')} of this kind"] if more > 0 else [])


def _lines(one: Comparison) -> Iterator[str]:
    known = registry.defenses()
    methods = (registry.find(name, known) for name in one.rows["defense"].unique())
    aims = {
        goal for method in methods if method for goal in (*method.protects, *method.measured_by)
    }
    several = len(one.rows["cut"].unique()) > 1
    for hide, goal in HIDES.items():
        if goal not in aims or not one.means(goal):
            continue
        found = choose([one], one.task, hide, BUDGET)
        best = found.setting or found.nearest
        if best is None:
            yield f"{one.task}: nothing is shown to hide {hide}: {found.why}"
            continue
        cut = f" at cut {best.cut}" if several else ""
        budget = f"at most {100 * BUDGET:g} points of utility"
        which = f"best for {budget}" if found else f"at all, but not for {budget},"
        yield f"{one.task}: what hides {hide} {which} is {best.setting}{cut}: {_told(best)}"


def _told(best: Evidence) -> str:
    leak, before = best.leak, best.open
    about = f" of {best.attribute}" if best.attribute else ""
    instead = "" if before is None else f" instead of {before.success.value:.3f}"
    cost = best.cost
    ends = "" if cost.low != cost.low else f" [{100 * cost.low:.1f}, {100 * cost.high:.1f}]"
    return (
        f"{leak.attack} reaches {leak.success}{about}{instead} ({leak.metric}; guessing {leak.chance:.3f}), "
        f"it costs {100 * cost.value:.1f}{ends}"
    )
