"""Findings quoted in documents: a block of a text names rules, and what they find stands in it.

<!-- findings: elsewhere variants task=sst2 -->
- a claim
<!-- /findings -->
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.contracts import LeakboardError, did_you_mean
from leaderboards.findings.every import RULES
from leaderboards.findings.finding import Finding

BLOCK = re.compile(r"(<!-- findings: ([^\n]*?) -->\n).*?(<!-- /findings -->)", re.DOTALL)


def quoted(text: str, found: Sequence[Finding]) -> str:
    """The text with the claims of today in each of its blocks.

    A block names rules, and `task=` the only task that it is about.

    Raises:
        LeakboardError: there is no block, or it names no rule.
    """
    if not BLOCK.search(text):
        raise LeakboardError(
            "no block of findings is in it: a line '<!-- findings: elsewhere -->', and below it "
            "'<!-- /findings -->'"
        )

    def filled(block: re.Match[str]) -> str:
        return f"{block[1]}\n{listing(chosen(found, block[2].split()))}\n{block[3]}"

    return BLOCK.sub(filled, text)


def chosen(found: Sequence[Finding], words: Sequence[str]) -> list[Finding]:
    """Those of some rules, and of one task where `task=NAME` is among the words.

    Raises:
        LeakboardError: an unknown rule.
    """
    rules = [word for word in words if not word.startswith("task=")]
    tasks = {word.removeprefix("task=") for word in words if word.startswith("task=")}
    for rule in rules:
        if rule not in RULES:
            raise LeakboardError(f"rule: unknown '{rule}'. {did_you_mean(rule, RULES)}")
    return [
        one
        for one in found
        if (not rules or one.rule in rules) and (not tasks or one.task in tasks)
    ]


def listing(found: Sequence[Finding]) -> str:
    """A line of Markdown for each."""
    return "".join(f"- {one.claim}\n" for one in found)
