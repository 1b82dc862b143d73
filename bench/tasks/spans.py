"""Secrets in texts, as stretches of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.bench.contracts import LeakboardError


@dataclass(frozen=True)
class Span:
    """A secret in a text: the characters from `start` up to `end`."""

    start: int
    end: int
    kind: str
    """Such as 'name' or 'phone'."""


def check_spans(texts: Sequence[str], spans: Sequence[Sequence[Span]], where: str) -> None:
    """Whether every text has its spans, and every span lies in its text and holds something.

    Raises:
        LeakboardError: one does not; `where` and the row are named, the first row being 1.
    """
    if len(texts) != len(spans):
        raise LeakboardError(f"{where}: {len(spans)} rows of spans for {len(texts)} texts")
    for row, (text, own) in enumerate(zip(texts, spans, strict=True), start=1):
        for span in own:
            if not 0 <= span.start < span.end <= len(text):
                raise LeakboardError(
                    f"{where}, data row {row}: the span [{span.start}, {span.end}) of kind "
                    f"'{span.kind}' is not in its text of {len(text)} characters"
                )
