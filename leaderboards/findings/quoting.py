"""Findings quoted in documents: a block of a text names rules, and what they find stands in it.

<!-- findings: elsewhere variants task=sst2 -->
- a claim
<!-- /findings -->

A block may name a table of a paper instead, beside which ours stand: <!-- papers: SAP "Table 3" -->.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.findings.every import RULES
from leakboard.leaderboards.findings.finding import Finding

BLOCK = re.compile(
    r"(<!-- (findings|papers): ([^\n]*?) -->\n).*?(<!-- /\2 -->)",
    re.DOTALL,
)
ABOUT = ("task", "model", "metric")
"""What a block may be about alone."""
BLOCKS = (
    "claims are written into a document between a line '<!-- findings: elsewhere -->' and a line "
    "'<!-- /findings -->', papers' tables between '<!-- papers: SAP \"Table 3\" -->' and '<!-- /papers -->'"
)


def document(path: Path) -> str:
    """The text of a document with blocks.

    Raises:
        LeakboardError: there is no such file, it is no text, or there is no block in it.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise LeakboardError(f"there is no file {path}; {BLOCKS}") from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise LeakboardError(f"{path} cannot be read as a text: {why}") from error
    if not BLOCK.search(text):
        raise LeakboardError(f"no block of findings is in {path}; {BLOCKS}")
    return text


def quoted(text: str, found: Sequence[Finding], papers: Callable[[str], str]) -> str:
    """The text with the claims of today in each of its blocks.

    A block names rules, and with `task=`, `model=` or `metric=` what alone it is about.

    Args:
        papers: gives what stands in a block about papers, by the words that it names.

    Raises:
        LeakboardError: a block names no rule, or no table of a paper.
    """

    def filled(block: re.Match[str]) -> str:
        about = block[3]
        own = papers(about) if block[2] == "papers" else listing(chosen(found, about.split()))
        return f"{block[1]}\n{own}\n{block[4]}"

    return BLOCK.sub(filled, text)


def chosen(found: Sequence[Finding], words: Sequence[str]) -> list[Finding]:
    """Those of some rules, and of one task where `task=NAME` is among the words; likewise a model, a metric.

    Raises:
        LeakboardError: an unknown rule, or another word with '='.
    """
    rules = [word for word in words if "=" not in word]
    asked: dict[str, set[str]] = {}
    for name, _, value in (word.partition("=") for word in words if "=" in word):
        if name not in ABOUT:
            raise LeakboardError(f"'{name}=': unknown. {did_you_mean(name, ABOUT)}")
        asked.setdefault(name, set()).add(value)
    for rule in rules:
        if rule not in RULES:
            raise LeakboardError(f"rule: unknown '{rule}'. {did_you_mean(rule, RULES)}")
    return [
        one
        for one in found
        if (not rules or one.rule in rules)
        and all(getattr(one, name) in values for name, values in asked.items())
    ]


def listing(found: Sequence[Finding]) -> str:
    """A line of Markdown for each."""
    return "".join(f"- {one.claim}\n" for one in found)
