"""Reads labels from what a step of the optimiser did to the model: an attack that no paper has."""

from typing import ClassVar

import numpy as np
import torch
from scipy.linalg import eigh

from bench.adapters import Calls, tokens_of
from bench.types import (
    Attack,
    Channel,
    Goal,
    Guess,
    Knowledge,
    Knows,
    Message,
    Source,
    ThreatModel,
    Transcript,
)


class OptimiserInversion(Attack):
    """One server sees θ before and after some steps, whatever hid the gradients between them.

    Each step moves the activations of the examples it trained on apart by class, or the model would
    not learn. So the attack computes h(x, θ′) − h(x, θ) for the examples of a short window, θ and
    θ′ being the first and the last adapter that were sent in it, and ranks them along the first
    principal direction of these effects. It needs no gradient, so several servers that do not
    collude are no help: each of them is sent θ with every call.

    Without dropout, and with segment types of single texts. The price is two passes forward over
    all examples of the windows.
    """

    name: ClassVar[str] = "optimiser-inversion"
    source: ClassVar[Source] = Source("Leakboard", "adaptive, against training over an API")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}),
        reads=frozenset({Channel.PARAMETERS, Channel.TOKENS}),
        knows=frozenset({Knows.BASE_WEIGHTS}),
    )
    costly: ClassVar[bool] = True

    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        assert knowledge.base is not None
        assert knowledge.settings is not None
        calls = Calls.of(knowledge.base, knowledge.settings)
        guesses = []
        for moment in seen.moments(Channel.PARAMETERS):
            here = [m for m in seen.messages if m.moment == moment]
            tokens = {m.step: m for m in here if m.channel == Channel.TOKENS}
            sent = [m for m in here if m.channel == Channel.PARAMETERS]
            for recipient, part in dict.fromkeys((m.recipient, m.part) for m in sent):
                mine = [m for m in sent if (m.recipient, m.part) == (recipient, part)]
                if len({m.step for m in mine}) > 1:
                    guesses.append(_guess(calls, mine, tokens, moment, part, recipient))
        return guesses


def _guess(
    calls: Calls,
    adapters: list[Message],
    tokens: dict[int, Message],
    moment: int,
    part: int,
    recipient: str,
) -> Guess:
    ordered = sorted(adapters, key=lambda m: m.step)
    first, last = ordered[0].values, ordered[-1].values
    effects = []
    with torch.no_grad():
        for message in ordered:
            batch = tokens_of(tokens[message.step])
            effects.append(calls.activations(batch, last) - calls.activations(batch, first))
    x = torch.cat(effects).float().cpu().numpy()
    centred = x - x.mean(0)
    n = len(centred)
    _, vector = eigh(centred @ centred.T, subset_by_index=[n - 1, n - 1])
    return Guess(
        Goal.LABEL,
        Channel.PARAMETERS,
        "train",
        np.concatenate([message.rows for message in ordered]),
        vector[:, 0],
        measure="auc",
        moment=moment,
        part=part,
        recipient=recipient,
    )
