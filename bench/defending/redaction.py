"""Code shared by defenses that redact texts: detector settings, canaries, and redacted texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from leakboard.bench.backbones import Backbone, Tokens
from leakboard.bench.contracts import EVERY_OBJECTIVE, Channel, Goal, Objective
from leakboard.bench.defending.detectors import EXACT, MASK, Detector, DetectorName, mask_text
from leakboard.bench.defending.policy_levels import PIPELINE
from leakboard.bench.exchange import Session
from leakboard.bench.methods import Defense
from leakboard.bench.tasks import Span, Split

Spans = list[tuple[Span, ...]]


class Redacting(Defense):
    """A defense that masks the spans that a detector finds."""

    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.MODEL})
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.MEMORISATION, Goal.MEMBERSHIP})
    circumstances: ClassVar[frozenset[str]] = frozenset({"misses", "canaries"})

    detector: DetectorName = "patterns"
    """exact, patterns, low-entity, high-entity, low-contextual, high-contextual or presidio; see
    `leakboard detect`."""
    spacy: str = PIPELINE
    """The spaCy pipeline of the last five detectors."""
    misses: float = Field(0.0, ge=0, lt=1)
    """Share of detected spans that are left unmasked on purpose."""
    canaries: Literal["masked", "missed", "found"] = "found"
    """Treatment of planted secrets: always masked, always missed, or as the detector decides (`found`)."""

    def as_trained(self, base: Backbone, split: Split) -> Split | None:
        if self.detector == EXACT and split.secrets is None:
            return None
        detector = Detector(name=self.detector, spacy=self.spacy)
        # The owner of a text knows its secrets, so marks may be used.
        spans = detector.detect(split.texts, split.secrets).spans
        pairs = split.pairs
        if pairs is not None:
            pairs = _without(pairs, detector.detect(pairs).spans, base)
        return replace(split, texts=_without(split.texts, spans, base), pairs=pairs, secrets=None)

    def secret_spans(self, session: Session) -> Spans:
        """Spans of each training text that are treated as secrets."""
        assert session.texts is not None
        split = session.texts
        detector = Detector(name=self.detector, spacy=self.spacy, misses=self.misses)
        spans = detector.detect(split.texts, split.secrets, session.noise).spans
        for row, canary in session.canaries.items():
            if self.canaries == "masked":
                spans[row] = (canary,)
            elif self.canaries == "missed":
                spans[row] = tuple(s for s in spans[row] if not _overlap(s, canary))
        return spans

    def redacted(self, session: Session, spans: Spans) -> tuple[Tokens, Split]:
        """Training examples without these spans, as tokens and as texts."""
        assert session.texts is not None
        split, backbone = session.texts, session.backbone
        texts = _without(split.texts, spans, backbone)
        pairs = split.pairs
        if pairs is not None:  # secrets of second texts are not marked
            detector = Detector(name=self.detector, spacy=self.spacy, misses=self.misses)
            pairs = _without(pairs, detector.detect(pairs, None, session.noise).spans, backbone)
        opened = not session.classes  # language modelling
        tokens = backbone.encode(texts, pairs, session.settings.max_length, opened)
        return tokens, replace(split, texts=texts, pairs=pairs, secrets=None)


def all_secrets(split: Split, canaries: Mapping[int, Span], spans: Spans) -> Spans:
    """Detected spans and all known secrets of each text, as a manual check would give."""
    known = split.secrets or [()] * len(split)
    result = []
    for row, (spans_of_text, marked) in enumerate(zip(spans, known, strict=True)):
        planted = (canaries[row],) if row in canaries else ()
        result.append(
            tuple(sorted({*spans_of_text, *marked, *planted}, key=lambda s: (s.start, -s.end)))
        )
    return result


def missed_share(
    split: Split,
    spans: Spans,
    canaries: Mapping[int, Span],
    leave_out: Collection[int] = frozenset(),
) -> float | None:
    """Share of known secrets, marked or planted, of which some character is unmasked; None without secrets.

    One missed secret is added to the count, so that the share is never 0.

    Args:
        leave_out: rows that are not counted.
    """
    known = split.secrets or [()] * len(split)
    missed = total = 1
    for row, (detected, marked) in enumerate(zip(spans, known, strict=True)):
        if row in leave_out:
            continue
        for secret in {*marked, *((canaries[row],) if row in canaries else ())}:
            masked_ = {at for span in detected for at in range(span.start, span.end)}
            missed += not masked_.issuperset(range(secret.start, secret.end))
            total += 1
    return missed / total if total > 1 else None


def deduplicated_rows(split: Split) -> np.ndarray:
    """Sorted rows that de-duplication keeps: the first of examples with equal text, second text and label."""
    seconds = [""] * len(split) if split.pairs is None else split.pairs
    labels = map(tuple, split.truth.reshape(len(split), -1).tolist())
    first: dict[tuple[object, ...], int] = {}
    for row, example in enumerate(zip(split.texts, seconds, labels, strict=True)):
        first.setdefault(example, row)
    return np.array([*first.values()], np.int64)


def _without(texts: Sequence[str], spans: Spans, backbone: Backbone) -> tuple[str, ...]:
    # A tokeniser with its own mask token would split ours.
    mask = backbone.tokenizer.mask_token or MASK
    return tuple(mask_text(text, own, mask) for text, own in zip(texts, spans, strict=True))


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
