"""The language that a secret detector knows, and texts in another script, whose secrets it cannot find."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leakboard.bench.defending.detectors import EXACT, PATTERNS, PRESIDIO

LETTER = re.compile(r"[^\W\d_]")
LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
LOOKED_AT = 2000
"""Maximum number of texts whose script is determined."""
FEW = 0.05
"""Share of texts in another script up to which nothing is said."""
PIPELINES = {"en": "English", "xx": "several languages"}
"""Languages by the first letters of the name of a spaCy pipeline."""


def language_of(detector: str, pipeline: str) -> str:
    """The language that a detector knows; "" for marked secrets, which need none.

    Args:
        pipeline: name of the spaCy pipeline of a detector of named entities.
    """
    if detector == EXACT:
        return ""
    if detector in (PATTERNS, PRESIDIO):
        return "English"
    code = pipeline.replace("\\", "/").rpartition("/")[2].partition("_")[0]
    return PIPELINES.get(code, f"the language of {pipeline}")


def other_script_share(texts: Sequence[str]) -> float:
    """Share of texts of whose letters most are not Latin, among at most `LOOKED_AT`; texts without letters are Latin."""
    some = texts[:: max(1, len(texts) // LOOKED_AT)]
    foreign = sum(2 * len(LATIN.findall(text)) < len(LETTER.findall(text)) for text in some)
    return foreign / max(1, len(some))


def language_note(detector: str, pipeline: str, texts: Sequence[str]) -> str | None:
    """A sentence if a detector does not know the script of the texts, or None."""
    language = language_of(detector, pipeline)
    if language != PIPELINES["en"] or (share := other_script_share(texts)) <= FEW:
        return None
    return (
        f"the detector '{detector}' knows {language}, but {share:.0%} of the texts are not in Latin script: it "
        "misses names and words there, and digits next to other letters. Mark the secrets and use 'exact', or treat "
        "what it protects as unprotected"
    )
