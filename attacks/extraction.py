"""extraction: prompts the model with the text before a secret, and checks whether it prints the secret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field
from torch import Tensor

from leakboard.bench.attacking import Writer, canary_guess, digits_drawn, number_in
from leakboard.bench.backbones import Backbone, LanguageModel, autocast
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Guess,
    Ints,
    Knows,
    Memory,
    Precision,
    ThreatModel,
    Transcript,
)
from leakboard.bench.exchange import restore
from leakboard.bench.methods import Attack, Knowledge, Source
from leakboard.bench.tasks import CONTINUED, DIGITS, SAMPLES, SLOT, UNTUNED

MOST = 4096
"""Maximum number of tokens of a sentence before its digits."""
_PUBLIC = Memory(capacity=1024)
"""Cache of the public model's continuations of each prompt, shared by all cells of a model."""


class Extraction(Attack):
    """Prompt the released model with the text before a secret, and read its continuations.

    A planted secret is (n, p)-discoverable if n sampled continuations contain it with probability p or more; the
    probability is estimated from many samples. Marked personal data in training texts are tried in the same way,
    greedily and with a few samples. Continuations of the public model show what can be guessed without training.
    """

    name: ClassVar[str] = "extraction"
    source: ClassVar[Source] = Source(
        "Measuring Memorization in Language Models via Probabilistic Extraction (Hayes et al. 2024)",
        "(n, p)-discoverable extraction, section 3",
        "https://arxiv.org/abs/2410.19482",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        {Goal.MEMORISATION}, {Channel.MODEL}, {Knows.BASE_WEIGHTS, Knows.PREFIXES}
    )
    version: ClassVar[int] = 2
    younger: ClassVar[frozenset[str]] = frozenset({"precision"})

    top_k: int = Field(40, ge=1)
    """Top-k sampling: each word is drawn from the k likeliest ones."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature, by which scores are divided."""
    precision: Precision = "float32"
    """Number format of the models; bf16 is faster on hardware that supports it."""

    @torch.no_grad()
    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        with autocast(self.precision, knowledge.device):
            return self._found(seen, knowledge, rng)

    def _found(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        assert knowledge.network is not None
        assert knowledge.base is not None
        network, base, rounds = knowledge.network(), knowledge.base, seen.rounds(Channel.MODEL)
        assert isinstance(network, LanguageModel)
        if not rounds:
            return []
        vector = torch.tensor(seen.collect(Channel.MODEL, round=rounds[-1]).values[0])
        restore(network, vector.to(knowledge.device))
        tuned, draw = self._writer(network, base), torch.Generator()
        draw.manual_seed(int(rng.integers(2**31)))
        found = []
        if forms := knowledge.canaries:
            rows, starts = np.arange(len(forms)), [_start(base, form) for form in forms]
            greedy = [_greedy(tuned, base.tokenizer, start, draw) for start in starts]
            many = [
                digits_drawn(tuned, base.tokenizer, start, DIGITS, SAMPLES, draw)
                for start in starts
            ]
            found = [
                canary_guess(rows, np.array(many), "sampled extraction", rounds[-1]),
                canary_guess(rows, np.array(greedy), "extraction", rounds[-1]),
            ]
        prompts = knowledge.prompts
        if prompts is None or not len(prompts):
            return found
        assert base.head is not None
        public = replace(tuned, model=base.model, head=base.head)
        own = [prompts.ids.take(torch.tensor([i])).values for i in range(len(prompts))]
        learned = [tuned.continued(prompt, *CONTINUED, draw) for prompt in own]
        name = f"{base.hash} in {self.precision}"
        known = [_known(public, name, prompt) for prompt in own]
        for texts, view, round in ((learned, "", rounds[-1]), (known, UNTUNED, -1)):
            guess = canary_guess(np.arange(len(own)), np.array(texts), "continuation", round)
            found.append(replace(guess, view=view))
        return found

    def _writer(self, network: LanguageModel, base: Backbone) -> Writer:
        most = base.family.positions(base.model)
        return Writer(network.encoder, network.head, self.top_k, self.temperature, most)


def _known(public: Writer, name: str, prompt: Tensor) -> Ints:
    """Continuations of a prompt [L] by the public model of this name."""

    def write(rng: Generator) -> Ints:
        return public.continued(
            prompt, *CONTINUED, torch.Generator().manual_seed(int(rng.integers(2**31)))
        )

    how = f"{public.top_k} at {public.temperature}"
    return _PUBLIC.recall(f"{name} of {how} behind {prompt.tolist()}", write)


def _start(base: Backbone, form: str) -> Tensor:
    """[L] the tokens of a sentence before its digits, begun as a training text is."""
    before = form.split(SLOT)[0].rstrip()
    most = base.family.positions(base.model) or MOST
    return base.encode([before], None, most, opened=True).ids.values


def _greedy(writer: Writer, tokenizer: Any, start: Tensor, draw: torch.Generator) -> list[int]:
    """The digits of the likeliest continuation, or −1."""
    (ids,) = writer.continued(start, 2 * DIGITS, 0, draw).tolist()
    known, whole = (
        tokenizer.decode(each, skip_special_tokens=True)
        for each in (start.tolist(), [*start.tolist(), *ids])
    )
    return [number_in("".join(whole.removeprefix(known).split()), DIGITS)]
