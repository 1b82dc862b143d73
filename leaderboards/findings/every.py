"""All findings of some records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from leakboard.leaderboards.findings import (
    audits,
    authors,
    depth,
    elsewhere,
    idle,
    matched,
    memory,
    mixing,
    offsite,
    overview,
    pooled,
    posterior,
    precision,
    prompts,
    public_text,
    servers,
    settings,
    text,
    twice,
    variants,
)
from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.tables import Comparison

Rule = Callable[[Sequence[Comparison]], Iterator[Finding]]
RULES: Mapping[str, tuple[Rule, str]] = {
    "overview": (overview.found, "Which defenses hide what, and at what cost"),
    "text": (text.found, "What is read of the text that a language model is tuned on over an API"),
    "elsewhere": (elsewhere.found, "What each defense leaks that it is not made to hide"),
    "authors": (authors.found, "What the attacks of a defense's authors miss"),
    "servers": (servers.found, "What servers read of labels in activations, by who sees what"),
    "mixing": (
        mixing.found,
        "What a server reads of labels in activations, by adapters and their mixing weights",
    ),
    "variants": (variants.found, "What a refined defense gains over the one it refines"),
    "prompts": (
        prompts.found,
        "What tuning a prompt on privatised text keeps, and what reconstruction adds to it",
    ),
    "twice": (twice.found, "What fine-tuning twice gives back of what redaction takes"),
    "matched": (matched.found, "Which defense keeps most where they keep as much utility"),
    "memory": (
        memory.found,
        "What training adds to the exposure of secrets, by number of copies and defense",
    ),
    "pooled": (pooled.found, "What one noisy vector per text leaves of its words and its author"),
    "offsite": (offsite.found, "What a customer has with the vendor's model, and without it"),
    "depth": (depth.found, "What the depth of the cut hides by itself"),
    "public-text": (
        public_text.found,
        "What public text is worth to an attacker that learns from it",
    ),
    "posterior": (
        posterior.found,
        "What knowing how frequent words are adds to the nearest neighbour",
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
