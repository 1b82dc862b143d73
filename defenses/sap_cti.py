"""SAP-CTI: SAP in which the tokens that contribute most to the task are sent without noise."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from leakboard.bench.contracts import Ints, Objective
from leakboard.bench.exchange import Session
from leakboard.bench.methods import Conditions, Defense, Source
from leakboard.defenses.sap import SAP

SMOOTHING = 1.0
"""Added to the counts of every token that occurs; the paper does not say how it treats tokens that a class
never uses, for which equation 5 divides by zero."""


class SAPCTI(SAP):
    """Send contributing tokens without noise: the top k of each class by utility importance, k limited by `share`."""

    name: ClassVar[str] = "sap-cti"
    display_name: ClassVar[str] = "SAP-CTI"
    source: ClassVar[Source] = Source(
        "A Split-and-Privatize Framework for Large Language Model Fine-Tuning",
        "section 4.4, equation 5",
        "https://arxiv.org/abs/2312.15603",
    )
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification"})
    colour: ClassVar[str] = "#0000ff"
    marker: ClassVar[str] = "s"

    share: float = Field(0.01, ge=0, le=1)
    """The largest share of all training tokens (occurrences) that may be sent without noise."""

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # Without noise, SAP sends the same messages.
        own = super().twins(objective)
        plain = SAP(eta=None, bottom=self.bottom, bottom_learning_rate=self.bottom_learning_rate)
        return (*own, plain) if own else ()

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.cut == 0:
            return super().skip(conditions)
        return "its authors define contributing tokens for the embedding cut only"

    def in_clear(self, session: Session) -> Tensor:
        train = session.train
        counts = np.zeros((session.classes, len(session.backbone.embeddings)), np.int64)
        labels = session.labels.repeat_interleave(train.lengths)
        real = ~train.special
        np.add.at(counts, (labels[real].numpy(), train.ids.values[real].numpy()), 1)
        return torch.from_numpy(contributing(counts, self.share))


def contributing(counts: Ints, share: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[V] True for contributing tokens, from occurrences `counts` [C, V] per class.

    Utility importance UI(m, c) = Σ over c' ≠ c of ln p(m|c)/p(m|c'); ties go to the smaller id.
    """
    occurs = counts.sum(0) > 0
    seen = counts[:, occurs]
    smooth = seen + SMOOTHING
    log_p = np.log(smooth / smooth.sum(1, keepdims=True))
    # Rounded, so that floating-point error does not decide between tokens of equal importance.
    importance = (len(log_p) * log_p - log_p.sum(0)).round(9)
    ranks = np.argsort(np.argsort(-importance, axis=1, kind="stable"), axis=1)
    # A token is included from the smallest k at which some class selects it, so occurrences only grow with k.
    first = ranks.min(0)
    taken = np.cumsum(np.bincount(first, weights=seen.sum(0), minlength=seen.shape[1]))
    k = int(np.searchsorted(taken, share * seen.sum(), side="right"))
    result = np.zeros(counts.shape[1], dtype=bool)
    result[np.flatnonzero(occurs)[first < k]] = True
    return result
