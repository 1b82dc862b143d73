"""membership: who was trained on? Those whose loss is small, or has fallen."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.backbones import Tokens, by_length
from bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from bench.exchange import Trainee, confidences, losses, restored
from bench.methods import Attack, Knowledge, Source


class Membership(Attack):
    """Ranks examples by the loss of the released model.

    An example that is hard for everybody has a large loss, trained on or not; the public model
    before fine-tuning tells how hard it is. A classifier has no head before fine-tuning, so that
    the loss alone ranks there.
    """

    name: ClassVar[str] = "membership"
    source: ClassVar[Source] = Source(
        "Privacy Risk in Machine Learning: Analyzing the Connection to Overfitting (Yeom et al. 2018)",
        "section 3.3; calibrated as by Watson et al. 2022",
        "https://arxiv.org/abs/1709.01604",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        frozenset({Goal.MEMBERSHIP}),
        frozenset({Channel.MODEL}),
        frozenset({Knows.BASE_WEIGHTS}),
    )

    score: Literal["calibrated", "loss", "confidence"] = "calibrated"
    """`loss`: of the released model. `calibrated`: less that of the public one. `confidence`: how sure
    the released model is, as a number that is about normal over models."""

    @torch.no_grad()
    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        assert knowledge.network is not None
        assert knowledge.candidates is not None
        if not seen.rounds(Channel.MODEL):
            return []
        last = seen.rounds(Channel.MODEL)[-1]
        vector = torch.tensor(seen.collect(Channel.MODEL, round=last).values[0])
        network = restored(knowledge.network(), vector)
        if self.score == "confidence":
            values = _of_each(confidences, network, knowledge)
        else:
            values = -_of_each(losses, network, knowledge)
        if self.score == "calibrated" and not knowledge.classes:
            values += _of_each(losses, knowledge.network().eval(), knowledge)
        rows = np.arange(len(values))
        return [
            Guess(
                Goal.MEMBERSHIP,
                Channel.MODEL,
                "train",
                rows,
                values,
                measure="membership",
                round=last,
            )
        ]


def _of_each(
    what: Callable[[Trainee, Tokens, Tensor], Tensor], network: Trainee, knowledge: Knowledge
) -> NDArray[np.float64]:
    """[n] a number of each candidate."""
    candidates = knowledge.candidates
    assert candidates is not None
    found = np.zeros(len(candidates.tokens))
    for rows in by_length(candidates.tokens.lengths):
        labels = torch.from_numpy(candidates.labels)[rows]
        found[rows.numpy()] = what(network, candidates.tokens.take(rows), labels).cpu()
    return found
