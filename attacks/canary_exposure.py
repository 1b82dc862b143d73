"""canary-exposure: rank of a planted secret among all possible secrets, by the model's likelihood."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.attacking import beam_search, canary_guess, candidates, number_in
from leakboard.bench.backbones import Backbone, LanguageModel, autocast
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Knows,
    Measure,
    Memory,
    Precision,
    ThreatModel,
    Transcript,
)
from leakboard.bench.exchange import restore
from leakboard.bench.methods import Attack, Knowledge, Source
from leakboard.bench.tasks import DIGITS, SLOT, TRIES, UNTUNED

PRINTED: tuple[Measure, ...] = ("extraction", "beam extraction")
"""Measures of printed secrets; `extraction` also samples continuations."""
_BEFORE = Memory(capacity=16)
"""Cache of the public model's likelihoods of each sentence, shared by all cells of a model; 8 MB each."""


class CanaryExposure(Attack):
    """Rank all 10^6 secrets of each sentence by their log-perplexity, exactly.

    Ranks are computed after each epoch, and before training, since a secret that the public model finds likely is
    not memorised. The final model also continues the sentence, by greedy decoding and by beam search.
    """

    name: ClassVar[str] = "canary-exposure"
    source: ClassVar[Source] = Source(
        "The Secret Sharer: Evaluating and Testing Unintended Memorization in Neural Networks "
        "(Carlini et al. 2019)",
        "section 4",
        "https://arxiv.org/abs/1802.08232",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        {Goal.MEMORISATION}, {Channel.MODEL}, {Knows.BASE_WEIGHTS}
    )
    version: ClassVar[int] = 3
    younger: ClassVar[frozenset[str]] = frozenset({"precision"})

    releases: Literal["all", "last"] = "all"
    """Which releases are read: every epoch, or the last one."""
    precision: Precision = "float32"
    """Number format of the models. bf16 takes a half to a third of the time on hardware that supports it, and
    blurs the order of candidates of similar likelihood."""

    @torch.no_grad()
    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        with autocast(self.precision, knowledge.device):
            return self._found(seen, knowledge)

    def _found(self, seen: Transcript, knowledge: Knowledge) -> list[Guess]:
        assert knowledge.network is not None
        assert knowledge.base is not None
        base, forms = knowledge.base, knowledge.canaries
        rows, found = np.arange(len(forms)), list[Guess]()
        network = knowledge.network()
        assert isinstance(network, LanguageModel)
        rounds = seen.rounds(Channel.MODEL)
        if not rounds:
            return []
        before = np.stack([self._untuned(base, form) for form in forms])
        found.append(replace(canary_guess(rows, before, "exposure", -1), view=UNTUNED))
        for round in rounds if self.releases == "all" else rounds[-1:]:
            vector = torch.tensor(seen.collect(Channel.MODEL, round=round).values[0])
            restore(network, vector.to(knowledge.device))
            every = [self._ranked(network, base, form) for form in forms]
            found.append(canary_guess(rows, np.stack(every), "exposure", round))
        for measure in PRINTED:
            prints = [self._printed(network, base, form, TRIES[measure]) for form in forms]
            found.append(canary_guess(rows, np.array(prints), measure, round))
        return found

    def _printed(self, network: LanguageModel, base: Backbone, form: str, beams: int) -> list[int]:
        """The digits that decoding writes at their position, or −1, by number of beams."""
        before = form.split(SLOT)[0].rstrip()
        texts = beam_search(
            network.encoder, network.head, base.tokenizer, before, 2 * DIGITS, beams
        )
        return [number_in(text.strip(), DIGITS) for text in texts]

    def _ranked(self, network: LanguageModel, base: Backbone, form: str) -> NDArray[Any]:
        """[10^6] −ln p of every candidate under the released model."""
        if _unchanged(network, base, form):
            return self._untuned(base, form)
        return candidates(network.encoder, network.head, base.tokenizer, form, DIGITS)

    def _untuned(self, base: Backbone, form: str) -> NDArray[Any]:
        """[10^6] −ln p of every candidate under the public model."""
        head = base.head
        assert head is not None
        return _BEFORE.recall(
            f"{base.hash} in {self.precision} {form}",
            lambda rng: candidates(base.model, head, base.tokenizer, form, DIGITS),
        )


def _unchanged(network: LanguageModel, base: Backbone, form: str) -> bool:
    """True if a released model equals the public one, judged by identical hidden states of a text."""
    assert base.head is not None
    ids = torch.tensor([base.tokenizer(form)["input_ids"]], device=base.head.device)
    tuned, public = (m(input_ids=ids).last_hidden_state for m in (network.encoder, base.model))
    return torch.equal(tuned, public) and torch.equal(network.head, base.head)
