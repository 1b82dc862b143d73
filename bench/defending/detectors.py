"""Secret detectors, which find spans that must not be learned, and masking of these spans.

They are the policy functions of selective differential privacy (Shi et al. 2022, Just Fine-tune Twice): spans that a
detector finds are masked or protected, missed spans are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from numpy.random import Generator
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.bench.defending import patterns, policy_levels, presidio
from leakboard.bench.tasks import Span, check_spans

MASK = "<MASK>"


EXACT, PATTERNS, PRESIDIO = "exact", "patterns", "presidio"


DETECTORS = {
    EXACT: "the secrets that the task marks",
    PATTERNS: "e-mail, phone, URL, IP, card, date, money, numbers and ids, by regular expressions",
    **{name: level.description for name, level in policy_levels.LEVELS.items()},
    PRESIDIO: "personal data by Presidio: patterns with checksums and words around them, and named entities",
}


def _known(name: str) -> str:
    if name not in DETECTORS:
        raise ValueError(f"unknown detector '{name}'. {did_you_mean(name, DETECTORS)}")
    return name


DetectorName = Annotated[str, AfterValidator(_known)]


@dataclass(frozen=True)
class Detected:
    """Detected spans of n texts.

    Attributes:
        spans: sorted, disjoint spans of each text.
        dropped: spans of each text that were detected and dropped on purpose.
    """

    spans: list[tuple[Span, ...]]
    dropped: list[tuple[Span, ...]]


class Detector(BaseModel):
    """A secret detector and its failure rate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: DetectorName = EXACT
    """exact, patterns, low-entity, high-entity, low-contextual, high-contextual or presidio."""
    spacy: str = policy_levels.PIPELINE
    """The spaCy pipeline of the last five detectors, installed or in a folder."""
    misses: float = Field(0.0, ge=0, le=1)
    """Probability with which each detected span is dropped, to study imperfect detectors."""

    def detect(
        self,
        texts: Sequence[str],
        known: Sequence[Sequence[Span]] | None = None,
        rng: Generator | None = None,
    ) -> Detected:
        """Finds the secrets of n texts.

        Args:
            known: marked secrets, as in `Split.secrets`; only `exact` reads them.
            rng: generator for dropped spans; required if `misses` is above 0.

        Raises:
            LeakboardError: `exact` without marked secrets or with spans outside of their text, or spaCy, its pipeline
                or Presidio is missing or insufficient.
        """
        if self.name == EXACT:
            if known is None:
                raise LeakboardError(
                    f"the detector '{EXACT}' needs marked secrets, but these texts have none. "
                    f"Use another detector: {', '.join(name for name in DETECTORS if name != EXACT)}"
                )
            check_spans(texts, known, "marked secrets")
            spans = [merge_overlaps(spans) for spans in known]
        elif self.name == PATTERNS:
            spans = [patterns.find(text) for text in texts]
        elif self.name == PRESIDIO:
            spans = [merge_overlaps(spans) for spans in presidio.find(texts, self.spacy)]
        else:
            level = policy_levels.LEVELS[self.name]
            spans = [
                merge_overlaps(spans) for spans in policy_levels.find(texts, level, self.spacy)
            ]
        return self._thinned(spans, rng)

    def _thinned(self, detected: list[tuple[Span, ...]], rng: Generator | None) -> Detected:
        if not self.misses:
            return Detected(detected, [()] * len(detected))
        if rng is None:
            raise ValueError("a detector that misses needs a generator")
        remaining, dropped = [], []
        for spans in detected:
            is_dropped = rng.random(len(spans)) < self.misses
            remaining.append(
                tuple(s for s, drop in zip(spans, is_dropped, strict=True) if not drop)
            )
            dropped.append(tuple(s for s, drop in zip(spans, is_dropped, strict=True) if drop))
        return Detected(remaining, dropped)


def merge_overlaps(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorted spans; overlapping ones are merged and get the kind of the first."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return tuple(merged)


def mask_runs(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Start and end of each mask; spans that only white space separates share one.

    Args:
        spans: sorted, disjoint spans.
    """
    runs: list[tuple[int, int]] = []
    for span in spans:
        if runs and not text[runs[-1][1] : span.start].strip():
            runs[-1] = (runs[-1][0], span.end)
        else:
            runs.append((span.start, span.end))
    return runs


def mask_text(text: str, spans: Sequence[Span], mask: str = MASK) -> str:
    """The text with one `mask` for each run of consecutive spans, see `mask_runs`."""
    parts, at = [], 0
    for start, end in mask_runs(text, spans):
        parts += [text[at:start], mask]
        at = end
    return "".join([*parts, text[at:]])
