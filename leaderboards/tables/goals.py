"""Names of goals, which are accepted everywhere."""

from __future__ import annotations

import re

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean

GOAL_WORDS: dict[Goal, str] = {
    Goal.INVERSION: "inputs",
    Goal.REIDENTIFICATION: "identity",
    Goal.LABEL: "labels",
    Goal.ATTRIBUTE: "attributes",
    Goal.MEMORISATION: "secrets",
    Goal.MEMBERSHIP: "members",
    Goal.MODEL: "model",
}
"""Word of each goal in pages, tables and messages."""
PLAIN_WORDS: dict[Goal, str] = GOAL_WORDS | {
    Goal.INVERSION: "texts",
    Goal.ATTRIBUTE: "authors",
    Goal.MEMBERSHIP: "membership",
    Goal.MODEL: "the model",
}
"""Words for what one hides, in questions of people who do not know the field."""
ALIASES: dict[str, Goal] = {
    **{word: goal for goal, word in GOAL_WORDS.items()},
    **{goal.value: goal for goal in Goal},
    **{word: goal for goal, word in PLAIN_WORDS.items()},
    "input": Goal.INVERSION,
    "text": Goal.INVERSION,
    "re-identification": Goal.REIDENTIFICATION,
    "retrieval": Goal.REIDENTIFICATION,
    "author": Goal.ATTRIBUTE,
    "secret": Goal.MEMORISATION,
    "memorization": Goal.MEMORISATION,
    "member": Goal.MEMBERSHIP,
    "vendor": Goal.MODEL,
}


def format_goal(goal: Goal, attribute: str | None) -> str:
    """'inputs', or 'attributes age' for an attribute."""
    return f"{GOAL_WORDS[goal]} {attribute or ''}".strip()


def goals_asked(words: object) -> tuple[Goal, ...]:
    """The goals in a question such as 'labels', or 'texts and labels' for several at once.

    Raises:
        LeakboardError: see `goal_of`.
    """
    parts = re.split(r"\s+and\s+|\s*[,+]\s*", words) if isinstance(words, str) else [words]
    return tuple(dict.fromkeys(goal_of(part, "hide") for part in parts))


def goal_of(word: object, key: str = "goal") -> Goal:
    """The goal by any of its names.

    Raises:
        LeakboardError: an unknown name; the message gives the nearest one, or the list.
    """
    found = ALIASES.get(str(word).lower()) if isinstance(word, str) else None
    if found is None:
        near = did_you_mean(str(word), ALIASES, GOAL_WORDS.values())
        raise LeakboardError(f"{key}: unknown '{word}'. {near}")
    return found
