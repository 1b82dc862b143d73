"""canary-exposure: how likely does the model find a planted secret among all that it could be?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from leakboard.bench.attacking import about_canaries, candidates, number_in, printed
from leakboard.bench.backbones import Backbone, LanguageModel, computing
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
"""How secrets are printed here; `extraction` draws them at random, too."""
_BEFORE = Memory(kept=16)
"""What a public model says of each sentence, which all cells of a model ask again; 8 MB each."""


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
    younger: ClassVar[frozenset[str]] = frozenset({"precision"})

    releases: Literal["all", "last"] = "all"
    """Which releases are read: that of every epoch, or the last one only."""
    precision: Precision = "float32"
    """In which the models are asked. bf16 takes a half to a third of the time where the processor has
    units for it, and blurs the order of candidates about as likely as each other."""

    @torch.no_grad()
    def guess(
        self, seen: Transcript, knowledge: Knowledge, rng: np.random.Generator
    ) -> list[Guess]:
        with computing(self.precision, knowledge.device):
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
        found.append(replace(about_canaries(rows, before, "exposure", -1), view=UNTUNED))
        for round in rounds if self.releases == "all" else rounds[-1:]:
            vector = torch.tensor(seen.collect(Channel.MODEL, round=round).values[0])
            restore(network, vector.to(knowledge.device))
            every = [self._ranked(network, base, form) for form in forms]
            found.append(about_canaries(rows, np.stack(every), "exposure", round))
        for measure in PRINTED:
            prints = [self._printed(network, base, form, TRIES[measure]) for form in forms]
            found.append(about_canaries(rows, np.array(prints), measure, round))
        return found

    def _printed(self, network: LanguageModel, base: Backbone, form: str, beams: int) -> list[int]:
        """The digits that decoding writes in their place, or −1, by the number of beams."""
        before = form.split(SLOT)[0].rstrip()
        texts = printed(network.encoder, network.head, base.tokenizer, before, 2 * DIGITS, beams)
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
    """Whether a released model is the public one: it says the same of every token of a text, to the last bit."""
    assert base.head is not None
    ids = torch.tensor([base.tokenizer(form)["input_ids"]], device=base.head.device)
    tuned, public = (m(input_ids=ids).last_hidden_state for m in (network.encoder, base.model))
    return torch.equal(tuned, public) and torch.equal(network.head, base.head)
