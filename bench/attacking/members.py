"""Code shared by membership attacks: losses of candidates under the released model."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.backbones import LanguageModel, Tokens, by_length
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.exchange import Trainee, losses, restore, vector_of
from leakboard.bench.methods import Attack, Auxiliary, Knowledge

Measured = Callable[[Trainee, Tokens, Tensor], Tensor]
"""Of a model, examples and their labels: [B] a number of each example."""


@dataclass(frozen=True)
class TokenLosses:
    """Losses [L] of the tokens that a language model predicts in one text, and whether each was predicted right."""

    losses: Tensor
    right: Tensor


class MembershipAttack(Attack):
    """Ranks the candidates by a number of each under the last model that was released.

    Where training changes the texts by a rule that everybody knows, such as a detector whose finds are
    masked, members were never seen as they are: the candidates are scored as training would see them.
    """

    threat: ClassVar[ThreatModel] = ThreatModel(
        frozenset({Goal.MEMBERSHIP}),
        frozenset({Channel.MODEL}),
        frozenset({Knows.BASE_WEIGHTS, Knows.MECHANISM}),
    )

    candidates: Literal["masked", "raw"] = "masked"
    """`masked`: as the mechanism of the defense would have trained on them, where it changes texts. `raw`:
    as they are, by who does not know the mechanism."""

    @property
    def needs(self) -> frozenset[Knows]:
        known = self.threat.knows
        return known if self.candidates == "masked" else known - {Knows.MECHANISM}

    @abstractmethod
    def scores(self, released: Trainee, knowledge: Knowledge) -> NDArray[np.float64]:
        """[n] of each candidate, larger for those that seem to have been trained on."""

    @torch.no_grad()
    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
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

    def losses(self, network: Trainee, told: Auxiliary | None) -> NDArray[np.float64]:
        """[n] the loss of each example, as training would see it: computed once for all attacks of a cell."""
        assert told is not None
        name = hashlib.sha256(vector_of(network).cpu().numpy().tobytes()).hexdigest()
        found = told.learned.recall(
            f"losses of {self.candidates} under {name}",
            lambda rng: self.of_each(losses, network, told),
        )
        return found.copy()

    def token_losses(self, network: Trainee, knowledge: Knowledge) -> list[TokenLosses]:
        """The losses of the tokens of each candidate; computed once for all attacks of a cell."""
        told = knowledge.candidates
        assert told is not None

        def measure(_: np.random.Generator) -> list[TokenLosses]:
            assert isinstance(network, LanguageModel)
            tokens = self._as_trained(told)
            found: list[TokenLosses | None] = [None] * len(tokens)
            for rows in by_length(tokens.lengths):
                each = zip(*(part.cpu() for part in network.losses(tokens.take(rows))), strict=True)
                for row, (loss, right, mask) in zip(rows.tolist(), each, strict=True):
                    found[row] = TokenLosses(loss[mask], right[mask])
            return [own for own in found if own is not None]

        name = hashlib.sha256(vector_of(network).cpu().numpy().tobytes()).hexdigest()
        return told.learned.recall(f"token losses of {self.candidates} under {name}", measure)

    def _as_trained(self, told: Auxiliary) -> Tokens:
        masked = told.masked if self.candidates == "masked" else None
        return told.tokens if masked is None else masked

    def of_each(
        self, measured: Measured, network: Trainee, told: Auxiliary | None
    ) -> NDArray[np.float64]:
        """[n] a number of each example that the attacker was told of, as training would see it."""
        assert told is not None
        tokens = self._as_trained(told)
        found = np.zeros(len(tokens))
        for rows in by_length(tokens.lengths):
            labels = torch.from_numpy(told.labels)[rows]
            found[rows.numpy()] = measured(network, tokens.take(rows), labels).cpu()
        return found
