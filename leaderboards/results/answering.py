"""Answer to attacks on a transcript or a model, with what helps by the published records."""

from __future__ import annotations

from leakboard.bench.contracts import Goal, LeakboardError, grouped
from leakboard.bench.external import Audit
from leakboard.bench.scoring import advantage_low
from leakboard.leaderboards.results.sources import published
from leakboard.leaderboards.tables import GOAL_WORDS
from leakboard.leaderboards.terminal import HELPS, READ, SURE, helps

HOMES = {
    Goal.INVERSION: ("matrix", "sst2"),
    Goal.LABEL: ("matrix", "sst2"),
    Goal.ATTRIBUTE: ("attributes", "blog_gender"),
    Goal.MEMORISATION: ("exposure", "dialogues"),
    Goal.MEMBERSHIP: ("dp-audit", "dialogues"),
}
"""Published suite and task in which attacks on a goal are shown to work."""
NEXT = "Next: "


def answer(audit: Audit, budget: float) -> list[str]:
    """Three lines: what is read, what helps within the budget, and how sure that is; none without sentences."""
    if not audit.summary:
        return []
    first, *others = audit.summary
    sure = [one for one in others if not one.startswith(NEXT)]
    steps = [one.removeprefix(NEXT) for one in others if one.startswith(NEXT)]
    helping = _helping(audit, budget) or " ".join(steps) or "`leakboard choose` compares defenses."
    return [f"{READ} {first}", f"{HELPS} {helping}", f"{SURE} {' '.join(sure) or first}"]


def _helping(audit: Audit, budget: float) -> str:
    """Settings by the published records for each goal that is read, or an empty string."""
    read = {leak.goal for leak in audit.leaks if leak.channel and (advantage_low(leak) or 0) > 0}
    answered = (goal for goal in GOAL_WORDS if goal in read and goal in HOMES)
    homes = grouped(answered, lambda goal: HOMES[goal])
    parts = []
    for (suite, task), goals in homes.items():
        try:
            table = published(suite).table
        except LeakboardError:  # an installation without records
            continue
        found = helps(table, [(goal, task) for goal in goals], budget)
        parts.append(f"{found.removeprefix(HELPS).strip(' .')}, as published on {task}.")
    return " ".join(parts)
