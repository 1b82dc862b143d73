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
    """A defense that masks what a detector takes for a secret."""

    emits: ClassVar[frozenset[Channel]] = frozenset({Channel.MODEL})
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.MEMORISATION, Goal.MEMBERSHIP})
    circumstances: ClassVar[frozenset[str]] = frozenset({"misses", "canaries"})

    detector: DetectorName = "patterns"
    """exact, patterns, low-entity, high-entity, low-contextual, high-contextual or presidio; see
    `leakboard detect`."""
    spacy: str = PIPELINE
    """The spaCy pipeline that the last five ask."""
    misses: float = Field(0.0, ge=0, lt=1)
    """Share of what the detector finds that it is made to miss."""
    canaries: Literal["masked", "missed", "found"] = "found"
    """Whether planted secrets are masked, missed, or whatever the detector does with them."""

    def as_trained(self, base: Backbone, split: Split) -> Split | None:
        if self.detector == EXACT and split.secrets is None:
            return None
        detector = Detector(name=self.detector, spacy=self.spacy)
        # Who holds a text sees its secrets, so that marks are no secret of the owner's either.
        found = detector.detect(split.texts, split.secrets).spans
        pairs = split.pairs
        if pairs is not None:
            pairs = _without(pairs, detector.detect(pairs).spans, base)
        return replace(split, texts=_without(split.texts, found, base), pairs=pairs, secrets=None)

    def found(self, session: Session) -> Spans:
        """Of each training text what is taken for a secret."""
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
        """The training examples without these secrets, as tokens and as texts."""
        assert session.texts is not None
        split, backbone = session.texts, session.backbone
        texts = _without(split.texts, spans, backbone)
        pairs = split.pairs
        if pairs is not None:  # nobody marks the secrets of a second text
            detector = Detector(name=self.detector, spacy=self.spacy, misses=self.misses)
            pairs = _without(pairs, detector.detect(pairs, None, session.noise).spans, backbone)
        opened = not session.classes  # as the texts of language modelling are, see Inputs
        tokens = backbone.encode(texts, pairs, session.settings.max_length, opened)
        return tokens, replace(split, texts=texts, pairs=pairs, secrets=None)


def all_secrets(split: Split, canaries: Mapping[int, Span], spans: Spans) -> Spans:
    """What was found and, besides, every secret that is known: what a person sees who checks."""
    known = split.secrets or [()] * len(split)
    whole = []
    for row, (found, marked) in enumerate(zip(spans, known, strict=True)):
        planted = (canaries[row],) if row in canaries else ()
        whole.append(tuple(sorted({*found, *marked, *planted}, key=lambda s: (s.start, -s.end))))
    return whole


def missed_share(
    split: Split,
    spans: Spans,
    canaries: Mapping[int, Span],
    leave_out: Collection[int] = frozenset(),
) -> float | None:
    """The share of known secrets, marked or planted, of which a detector left a character; None without any.

    One more is counted, missed, so that a detector is never taken to miss nothing.

    Args:
        leave_out: rows that do not count.
    """
    known = split.secrets or [()] * len(split)
    missed = total = 1
    for row, (found, marked) in enumerate(zip(spans, known, strict=True)):
        if row in leave_out:
            continue
        for secret in {*marked, *((canaries[row],) if row in canaries else ())}:
            masked_ = {at for span in found for at in range(span.start, span.end)}
            missed += not masked_.issuperset(range(secret.start, secret.end))
            total += 1
    return missed / total if total > 1 else None


def first_of_each(split: Split) -> np.ndarray:
    """Sorted rows of the first of examples that are alike: what de-duplication keeps.

    Alike are those whose texts, second texts and labels are equal: a question that stands beside two
    answers, or a text with two labels, is no copy.
    """
    seconds = [""] * len(split) if split.pairs is None else split.pairs
    labels = map(tuple, split.truth.reshape(len(split), -1).tolist())
    first: dict[tuple[object, ...], int] = {}
    for row, example in enumerate(zip(split.texts, seconds, labels, strict=True)):
        first.setdefault(example, row)
    return np.array([*first.values()], np.int64)


def _without(texts: Sequence[str], spans: Spans, backbone: Backbone) -> tuple[str, ...]:
    # A tokeniser with a mask of its own spells ours in pieces.
    mask = backbone.tokenizer.mask_token or MASK
    return tuple(mask_text(text, own, mask) for text, own in zip(texts, spans, strict=True))


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
