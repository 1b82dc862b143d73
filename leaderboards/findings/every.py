"""All findings of some records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from leaderboards.findings import (
    audits,
    authors,
    depth,
    elsewhere,
    idle,
    precision,
    prompts,
    public_text,
    servers,
    settings,
    variants,
)
from leaderboards.findings.finding import Finding
from leaderboards.tables import Comparison

Rule = Callable[[Sequence[Comparison]], Iterator[Finding]]
RULES: Mapping[str, tuple[Rule, str]] = {
    "elsewhere": (elsewhere.found, "What each defense leaks that it is not made to hide"),
    "authors": (authors.found, "What the attacks of a defense's authors miss"),
    "servers": (servers.found, "What servers read of labels in activations, by who sees what"),
    "variants": (variants.found, "What a refined defense gains over the one it refines"),
    "prompts": (
        prompts.found,
        "What tuning a prompt on privatised text keeps, and what reconstruction adds to it",
    ),
    "depth": (depth.found, "What the depth of the cut hides by itself"),
    "public-text": (
        public_text.found,
        "What public text is worth to an attacker that learns from it",
    ),
    "audits": (audits.found, "What is proven about ε, beside what is claimed"),
    "precision": (precision.found, "What computing in bf16 changes"),
    "idle": (idle.found, "Where no attack works yet"),
    "setting": (settings.found, "What each setting does to what it is made to hide"),
}
"""Each rule by its name, with the question that it answers."""


def findings(compared: Sequence[Comparison]) -> list[Finding]:
    """What these comparisons show, rule by rule; each once."""
    return [one for rule, _ in RULES.values() for one in rule(compared)]
