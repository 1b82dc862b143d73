"""canary-exposure: how likely does the model find a planted secret among all that it could be?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from bench.attacking import candidates, printed
from bench.backbones import Backbone, LanguageModel
from bench.contracts import Channel, Goal, Guess, Knows, Measure, ThreatModel, Transcript
from bench.exchange import restored
from bench.methods import Attack, Knowledge, Source
from bench.tasks import DIGITS, SLOT, TRIES, UNTUNED

_BEFORE: WeakKeyDictionary[Any, dict[str, NDArray[Any]]] = WeakKeyDictionary()
"""By public model what it says of each sentence, which all cells of a model ask again."""


class CanaryExposure(Attack):
    """Ranks all 10^6 secrets of each sentence by their log-perplexity, exactly.

    It does so after each epoch of training, and before it: what the public model finds likely already
    is not remembered. The final model is also asked to continue the sentence, greedily and by beam
    search: does it print the secret?
    """

    name: ClassVar[str] = "canary-exposure"
    source: ClassVar[Source] = Source(
        "The Secret Sharer: Evaluating and Testing Unintended Memorization in Neural Networks "
        "(Carlini et al. 2019)",
        "section 4",
        "https://arxiv.org/abs/1802.08232",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        frozenset({Goal.MEMORISATION}),
        frozenset({Channel.MODEL}),
        frozenset({Knows.BASE_WEIGHTS}),
    )
    version: ClassVar[int] = 3

    releases: Literal["all", "last"] = "all"
    """Which releases are read: that of every epoch, or the last one only."""

    @torch.no_grad()
    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        assert knowledge.network is not None
        assert knowledge.base is not None
        base, forms = knowledge.base, knowledge.canaries
        rows, found = np.arange(len(forms)), list[Guess]()
        network = knowledge.network()
        assert isinstance(network, LanguageModel)
        rounds = seen.rounds(Channel.MODEL)
        if not rounds:
            return []
        before = np.stack([_untuned(base, form) for form in forms])
        found.append(replace(self._about(rows, before, "exposure", -1), view=UNTUNED))
        for round in rounds if self.releases == "all" else rounds[-1:]:
            vector = torch.tensor(seen.collect(Channel.MODEL, round=round).values[0])
            restored(network, vector.to(knowledge.device))
            model, head = network.encoder, network.head
            every = [candidates(model, head, base.tokenizer, form, DIGITS) for form in forms]
            found.append(self._about(rows, np.stack(every), "exposure", round))
        for measure, tries in TRIES.items():
            prints = [self._printed(network, base, form, tries) for form in forms]
            found.append(self._about(rows, np.array(prints), measure, round))
        return found

    def _printed(self, network: LanguageModel, base: Backbone, form: str, beams: int) -> list[int]:
        """The digits that decoding writes in their place, or −1, by the number of beams."""
        before = form.split(SLOT)[0].rstrip()
        texts = printed(network.encoder, network.head, base.tokenizer, before, 2 * DIGITS, beams)
        digits = [text.strip()[:DIGITS] for text in texts]
        return [int(d) if len(d) == DIGITS and d.isdecimal() else -1 for d in digits]

    def _about(
        self, rows: NDArray[Any], values: NDArray[Any], measure: Measure, round: int
    ) -> Guess:
        where = (Goal.MEMORISATION, Channel.MODEL, "train")
        return Guess(*where, rows, values, measure=measure, round=round)


def _untuned(base: Backbone, form: str) -> NDArray[Any]:
    """[10^6] −ln p of every candidate under the public model."""
    known = _BEFORE.setdefault(base.model, {})
    if form not in known:
        assert base.head is not None
        known[form] = candidates(base.model, base.head, base.tokenizer, form, DIGITS)
    return known[form]
