"""Code shared by membership attacks: losses of candidates under the released model."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.backbones import LanguageModel, Tokens, by_length
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.exchange import Trainee, losses, restore, vector_of
from leakboard.bench.methods import Attack, Auxiliary, Knowledge

Measured = Callable[[Trainee, Tokens, Tensor], Tensor]
"""Function of a model, examples and labels that returns one number per example [B]."""


@dataclass(frozen=True)
class TokenLosses:
    """Losses [L] of the predicted tokens of one text, and [L] True where the prediction is right."""

    losses: Tensor
    right: Tensor


def digest_of(network: Trainee) -> str:
    return hashlib.sha256(vector_of(network).cpu().numpy().tobytes()).hexdigest()


class MembershipAttack(Attack):
    """An attack that ranks candidates by a score under the last released model.

    If training changes texts by a public rule, such as masking by a detector, candidates are scored as changed texts.
    """

    threat: ClassVar[ThreatModel] = ThreatModel(
        {Goal.MEMBERSHIP}, {Channel.MODEL}, {Knows.BASE_WEIGHTS, Knows.MECHANISM}
    )

    candidates: Literal["masked", "raw"] = "masked"
    """`masked`: score texts as the defense would change them. `raw`: score unchanged texts, without knowledge of the
    mechanism."""

    @property
    def needs(self) -> frozenset[Knows]:
        known = self.threat.knows
        return known if self.candidates == "masked" else known - {Knows.MECHANISM}

    @abstractmethod
    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        """[n] score of each candidate, larger for likelier members."""

    @torch.no_grad()
    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.network is not None
        rounds = seen.rounds(Channel.MODEL)
        if not rounds:
            return []
        last = rounds[-1]
        vector = torch.tensor(seen.collect(Channel.MODEL, round=last).values[0])
        values = self.scores(restore(knowledge.network(), vector), knowledge)
        rows = np.arange(len(values))
        about = (Goal.MEMBERSHIP, Channel.MODEL, "train", rows, values)
        return [Guess(*about, measure="membership", round=last)]

    def losses(self, network: Trainee, candidates: Auxiliary | None) -> NDArray[np.float64]:
        """[n] training loss of each example; computed once for all attacks of a cell."""
        assert candidates is not None
        # By the texts themselves: defenses share candidates, and each masks them by rules of its own.
        values = candidates.learned.recall(
            f"losses of {self._as_trained(candidates).digest} under {digest_of(network)}",
            lambda rng: self.measure_candidates(losses, network, candidates),
        )
        return values.copy()

    def token_losses(self, network: Trainee, knowledge: Knowledge) -> list[TokenLosses]:
        """Token losses of each candidate; computed once for all attacks of a cell."""
        candidates = knowledge.candidates
        assert candidates is not None

        def measure(_: Generator) -> list[TokenLosses]:
            assert isinstance(network, LanguageModel)
            tokens = self._as_trained(candidates)
            result: list[TokenLosses | None] = [None] * len(tokens)
            for rows in by_length(tokens.lengths):
                each = zip(*(part.cpu() for part in network.losses(tokens.take(rows))), strict=True)
                for row, (loss, right, mask) in zip(rows.tolist(), each, strict=True):
                    result[row] = TokenLosses(loss[mask], right[mask])
            return [own for own in result if own is not None]

        name = f"token losses of {self._as_trained(candidates).digest} under {digest_of(network)}"
        return candidates.learned.recall(name, measure)

    def _as_trained(self, candidates: Auxiliary) -> Tokens:
        masked = candidates.masked if self.candidates == "masked" else None
        return candidates.tokens if masked is None else masked

    def measure_candidates(
        self, measured: Measured, network: Trainee, candidates: Auxiliary | None
    ) -> NDArray[np.float64]:
        """[n] a measure of each candidate, in the form in which it would be trained on."""
        assert candidates is not None
        tokens = self._as_trained(candidates)
        values = np.zeros(len(tokens))
        for rows in by_length(tokens.lengths):
            labels = torch.from_numpy(candidates.labels)[rows]
            values[rows.numpy()] = measured(network, tokens.take(rows), labels).cpu()
        return values
