"""The few findings that come first."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.leaderboards.findings.finding import Finding

MOST = 5
LONGEST = 320
"""Letters of a claim that can be read in passing; a longer one stands with its rule."""
AFTER = (
    "text",
    "authors",
    "elsewhere",
    "servers",
    "audits",
    "variants",
    "depth",
    "setting",
    "idle",
)
"""Rules in the order in which their first finding follows the answers."""


def headlines(found: Sequence[Finding], task: str, model: str) -> list[Finding]:
    """What stands first about a task and model: the answer to each goal, then the first of other rules.

    What is read of the text of a language model is told of any task, since it is about all of them.

    Args:
        found: all findings, in the order of their rules.
    """
    own = [one for one in found if (one.task, one.model) == (task, model)]
    first: dict[str, Finding] = {}
    for one in own:
        if len(one.claim) <= LONGEST:
            first.setdefault(one.rule, one)
    first |= {one.rule: one for one in reversed(found) if one.rule == "text"}
    answers = [one for one in own if one.rule == "overview"]
    return [*answers, *(first[rule] for rule in AFTER if rule in first)][:MOST]
