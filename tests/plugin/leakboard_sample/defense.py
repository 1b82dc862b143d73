"""Noise on word embeddings, written against `leakboard` alone."""

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

import leakboard as lb


class SampleNoise(lb.Defense):
    """The customer adds Gaussian noise to the word embeddings that it sends."""

    name: ClassVar[str] = "sample-noise"
    source: ClassVar[lb.Source] = lb.Source("A sample of a plug-in")
    emits: ClassVar[frozenset[lb.Channel]] = frozenset(
        {lb.Channel.REPRESENTATIONS, lb.Channel.LOGITS, lb.Channel.LOGIT_GRADIENTS}
    )
    knob: ClassVar[str | None] = "sigma"

    sigma: float = Field(0.05, ge=0)
    """Standard deviation of the noise in each coordinate."""

    @property
    def undefended(self) -> bool:
        return self.sigma == 0

    def skip(self, conditions: lb.Conditions) -> str | None:
        return None if conditions.cut == 0 else "only word embeddings are made noisy"

    def fine_tune(self, session: lb.Session) -> lb.Tuned:
        network, wire = session.network(), session.wire

        def sent(tokens: lb.Tokens, rows: torch.Tensor, split: str) -> lb.Ragged:
            vectors = network.embeddings(tokens.ids.values.to(session.device))
            noise = session.noise.standard_normal(tuple(vectors.shape), dtype=np.float32)
            noisy = vectors + self.sigma * torch.from_numpy(noise).to(vectors.device)
            payload = tokens.ids.with_values(noisy)
            return wire.send(lb.Channel.REPRESENTATIONS, payload, rows, lb.Envelope(split=split))

        with torch.no_grad():
            received = sent(session.train, session.all_rows, "train")

        def step(rows: torch.Tensor, epoch: int) -> float:
            logits = network(received.take(rows), session.train.take(rows).types)
            return session.backward_through_customer(logits, rows, epoch)

        session.fit(step, {"params": network.trained()})

        def score(tokens: lb.Tokens, rows: torch.Tensor, split: str) -> torch.Tensor:
            logits = network(sent(tokens, rows, split), tokens.types)
            answer = lb.Envelope(split=split, sender="vendor")
            return wire.send(lb.Channel.LOGITS, logits, rows, answer)

        return lb.Predictor(score, network)
