"""Quality of answers to prompts: ROUGE-L (Lin 2004) and exact match."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from leakboard.bench.contracts import Estimate, Ints
from leakboard.bench.scoring import metrics

WORD = re.compile(r"[^\W_]+")
PARTS = 10_000
"""Scale of ROUGE-L in records, which store whole numbers."""


def rouge_l(answer: str, right: str) -> float:
    """F1 of the longest common subsequence of words, case and punctuation aside (Lin 2004, equations 2 to 4, β = 1).

    Of letters without accents as the package `rouge-score` 0.1.2 computes it without stemming.
    """
    one, other = (WORD.findall(text.lower()) for text in (answer, right))
    before = [0] * (len(other) + 1)
    for word in one:
        now = [0]
        for i, beside in enumerate(other):
            now.append(before[i] + 1 if word == beside else max(now[i], before[i + 1]))
        before = now
    return 2 * before[-1] / (len(one) + len(other)) if before[-1] else 0.0


def answer_fields(
    answers: Sequence[str], right: Sequence[str], read: dict[str, Any]
) -> dict[str, Any]:
    """Utility fields of a record: the mean ROUGE-L of answers; for one-word answers this is accuracy.

    Chance is that of answering all prompts with the most frequent right answer.

    Args:
        read: utility fields by next tokens, which are kept as further measures.
    """
    usual = Counter(right).most_common(1)[0][0]
    parts = _parts(answers, right)
    whole = np.full(len(parts), PARTS)
    chance = float(_parts([usual] * len(right), right).mean()) / PARTS
    same = np.array([_plain(a) == _plain(b) for a, b in zip(answers, right, strict=True)], np.int64)
    often = sum(_plain(usual) == _plain(one) for one in right) / len(right)
    measures: dict[str, Estimate] = {
        "exact match": metrics.share(same, np.ones_like(same), often),
        read["utility_metric"]: read["utility"],
    }
    return {
        "utility_metric": "ROUGE-L",
        "utility": metrics.share(parts, whole, chance),
        "measures": measures | read["measures"],
        "predictions": {"hits": parts.tolist(), "tokens": whole.tolist()},
    }


def _parts(answers: Sequence[str], right: Sequence[str]) -> Ints:
    each = [rouge_l(one, other) for one, other in zip(answers, right, strict=True)]
    found: Ints = np.rint(np.array(each) * PARTS).astype(np.int64)
    return found


def _plain(text: str) -> str:
    return " ".join(text.split())
