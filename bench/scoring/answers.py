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
    """F1 of the longest common subsequence of words (Lin 2004, equations 2 to 4, β = 1).

    Case and punctuation are ignored. For letters without accents, equal to the package `rouge-score` 0.1.2 without
    stemming.
    """
    words, right_words = (WORD.findall(text.lower()) for text in (answer, right))
    above = [0] * (len(right_words) + 1)
    for word in words:
        row = [0]
        for i, right_word in enumerate(right_words):
            row.append(above[i] + 1 if word == right_word else max(row[i], above[i + 1]))
        above = row
    return 2 * above[-1] / (len(words) + len(right_words)) if above[-1] else 0.0


def answer_fields(
    answers: Sequence[str], right: Sequence[str], read: dict[str, Any]
) -> dict[str, Any]:
    """Utility fields of a record: the mean ROUGE-L of answers, which is accuracy for one-word answers.

    Chance is the score of the most frequent right answer to all prompts.

    Args:
        read: utility fields by next tokens, which become further measures.
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
    scores = [rouge_l(one, other) for one, other in zip(answers, right, strict=True)]
    found: Ints = np.rint(np.array(scores) * PARTS).astype(np.int64)
    return found


def _plain(text: str) -> str:
    return " ".join(text.split())
