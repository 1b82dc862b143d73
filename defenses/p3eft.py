"""P³EFT: gradients are split into noisy vectors that sum up, activations into adapters that are mixed secretly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from pydantic import Field, ValidationInfo, field_serializer, field_validator
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from leakboard.bench.backbones import Tokens, by_length, chunked_readings, label_loss, next_tokens
from leakboard.bench.contracts import EVERY_OBJECTIVE, Channel, Envelope, Goal, Objective
from leakboard.bench.exchange import Api, Call, NextTokens, Predictor, Session, Tuned, api
from leakboard.bench.methods import Conditions, Defense, Source, Stage
from leakboard.defenses.none import NoDefense


class P3EFT(Defense):
    """Train several adapters over an API, mixed with secret weights and regularised to hide labels from a probe.

    The vendor sees the activations hᵢ of each adapter. In place of a gradient it gets several vectors, each of
    which looks like noise; backpropagation is linear, so the customer combines the answers. The head reads
    Σ Wᵢ ∘ hᵢ.
    """

    name: ClassVar[str] = "p3eft"
    display_name: ClassVar[str] = "P³EFT"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving LLM Fine-Tuning over API (P³EFT)", "sections 3.2 and 3.3, algorithm 2"
    )
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    knob: ClassVar[str | None] = "weight"
    colour: ClassVar[str] = "#d55e00"
    marker: ClassVar[str] = "D"
    stage: ClassVar[Stage | None] = "training"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {
        Goal.LABEL: ("spectral", "norm", "kmeans")
    }
    """Section 4.2 reports the best of these three on activations."""
    measured_on: ClassVar[frozenset[Channel]] = frozenset({Channel.ACTIVATIONS})
    measured_worst: ClassVar[bool] = True

    weight: float = Field(0.1, ge=0)
    """Weight of the adversarial regulariser; larger values hide more, and 0 leaves only the mixture. The paper tunes
    it for each task. `results/published/p3eft-sst2-weights`: by the paper's attacks 0.3 leaks least at
    nearly full utility with sigma 5, by `activation-drift` none less than another; with sigma 0 it learns
    little at 0.1 already."""
    adapters: int = Field(2, ge=2)
    """n, the number of adapters."""
    vectors: int = Field(2, ge=2)
    """m, the number of vectors that replace one gradient."""
    sigma: float = Field(5.0, ge=0)
    """Standard deviation of ξ in the mixing weights (equation 4); 0 mixes all adapters equally. The paper states
    none. `results/published/label-adaptive`: at 1 the model learns little (accuracy 0.59, three seeds); at 5 and 20 it
    learns (0.78), and `activation-drift` reads labels (AUC 0.95 and 0.92)."""
    noise: float = Field(1000.0, gt=0)
    """Minimum variance of each vector, relative to that of the gradient, as in the paper's experiment."""
    servers: Literal["one", "per-vector", "per-adapter", "per-call"] = "one"
    """Number of servers that do not collude. `one` sees everything. `per-vector`: the vectors of a gradient go to
    different servers, each of which knows all adapters; the first computes all activations. `per-adapter`: each
    server sees tokens, activations and all gradient vectors of one adapter. `per-call`: both. Records store
    `per-vector` as `separate`."""
    alternating: bool = False
    """Two sets of servers take turns, so that no server answers two consecutive steps (section 3.2, against
    inversion of the optimiser)."""
    adaptive: float = Field(0.0, ge=0)
    """Weight of a second regulariser, which is not the paper's: the same probe, on hᵢ(x, θ_t) − h(x, θ_0) and on hᵢ − hⱼ,
    which `activation-delta`, `activation-drift` and `adapter-difference` read. It asks for the activations of the
    untrained model once."""
    backprop: Literal["calls", "combined"] = "calls"
    """Call the API for each vector, or compute the sum of the answers once, which is faster and equivalent, since
    backpropagation is linear. The transcript and all costs except time are the same."""

    younger: ClassVar[frozenset[str]] = frozenset({"alternating", "adaptive"})

    @field_validator("servers", mode="before")
    @classmethod
    def _servers(cls, value: Any, given: ValidationInfo) -> Any:
        adapters = given.data.get("adapters")
        if isinstance(value, int) and adapters is not None:
            many = (
                f"{value} servers are more than the {adapters} adapters" if value > adapters else ""
            )
            raise ValueError(
                f"{many or f'{value} is no way to share {adapters} adapters'}: say `per-adapter`, which "
                "gives each adapter one server, or `per-call`, which gives each of its vectors one"
            )
        return "per-vector" if value == "separate" else value

    @field_serializer("servers")
    def _as_recorded(self, value: str) -> str:
        # Keys of published records depend on it.
        return "separate" if value == "per-vector" else value

    def server(self, step: int, adapter: int, vector: int = 0) -> str:
        """Name of the server that answers the call for one vector of an adapter's gradient at a step."""
        number = {
            "one": "",
            "per-vector": f"{vector}",
            "per-adapter": f"{adapter}",
            "per-call": f"{adapter}.{vector}",
        }[self.servers]
        turn = f", turn {step % 2}" if self.alternating else ""
        return (f"server-{number}" if number else "vendor") + turn

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # One adapter, unsplit gradients and no regulariser are plain fine-tuning over the API.
        return (NoDefense(head="customer" if objective == "language modelling" else None),)

    def skip_combined(self, stages: frozenset[Stage]) -> str | None:
        if "inputs" in stages and (self.servers != "one" or self.alternating):
            return (
                "servers: noisy inputs are sent once and to one server; use `servers: one` without "
                "`alternating`"
            )
        return None

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.objective == "classification" or not (self.weight or self.adaptive):
            return None
        why = (
            "no batch holds every word of a vocabulary"
            if conditions.objective == "language modelling"
            else f"the labels of {conditions.objective} are no classes"
        )
        return (
            f"weight: its regulariser fits a probe to a batch in which every class occurs, and {why}; with "
            "`weight: 0` split gradients and the secret mixture are left"
        )

    @torch.no_grad()
    def _untrained(self, session: Session, client: Api) -> Tensor:
        """[n, d] activations of the training texts under the untrained model, by calls without an adapter."""
        where = Envelope(recipient=self.server(0, 0), part=self.adapters)
        batches = by_length(session.train.lengths)
        found = [
            client.forward(Call(session.train.take(rows), rows, {}, where)) for rows in batches
        ]
        return torch.cat(found)[torch.cat(batches).argsort()]

    def fine_tune(self, session: Session) -> Tuned:
        mixing = mixing_weights(self.adapters, session.backbone.width, self.sigma, session.noise)
        weights = torch.from_numpy(mixing).float().to(session.device)
        client = Api(session, keep=self.adapters)
        adapters = [client.adapter(i) for i in range(self.adapters)]
        head = client.head
        steps = 0

        def calls(
            tokens: Tokens, rows: Tensor, split: str, epoch: int, dropout: Tensor | None
        ) -> list[Call]:
            """One call per adapter; if its vectors go to several servers, the first server answers."""
            where = Envelope(epoch, split)
            return [
                Call(
                    *(tokens, rows, adapter),
                    replace(where, recipient=self.server(steps, i), part=i),
                    dropout,
                    exact=split == "train",
                )
                for i, adapter in enumerate(adapters)
            ]

        untrained = self._untrained(session, client) if self.adaptive else None

        def step(rows: Tensor, epoch: int) -> float:
            nonlocal steps
            tokens = session.train.take(rows)
            requests = calls(tokens, rows, "train", epoch, client.dropout())
            h = [client.forward(call) for call in requests]
            labels = session.truth(rows)
            loss = label_loss(head, mixed(h, weights), labels)
            total = loss
            hides = self.weight or self.adaptive
            if hides and session.has_classes(session.labels[rows], session.classes):
                total = loss + self.weight * sum(adversarial(one, labels) for one in h)
                if untrained is not None:
                    moved = differences(h, untrained[rows])
                    total = total + self.adaptive * sum(adversarial(one, labels) for one in moved)
            total.backward()  # type: ignore[no-untyped-call]
            for i, (call, one, adapter) in enumerate(zip(requests, h, adapters, strict=True)):
                assert one.grad is not None
                vectors, alphas = obfuscated(one.grad, self.vectors, self.noise, session.noise)
                names = [self.server(steps, i, j) for j in range(self.vectors)]
                once = self.backprop == "combined"
                found = client.backward(call, vectors, alphas, names, once)
                for name, parameter in adapter.items():
                    parameter.grad = found[name]
            steps += 1
            return loss.item()

        trained = [parameter for adapter in adapters for parameter in adapter.values()]
        trained += [parameter for parameter in head.parameters() if parameter.requires_grad]
        session.fit(step, {"params": trained})

        def answered(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            requests = calls(tokens, rows, split, 0, None)
            return mixed([client.forward(call) for call in requests], weights)

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            scores: Tensor = head(answered(tokens, rows, split))
            return scores

        def read(tokens: Tokens, rows: Tensor, split: str) -> tuple[Tensor, Tensor]:
            h = answered(tokens, rows, split)
            return chunked_readings(head, h, next_tokens(tokens).to(h.device))

        network = client.network
        return Predictor(score, network) if session.classes else NextTokens(read, network)


def differences(h: Sequence[Tensor], untrained: Tensor) -> list[Tensor]:
    """Activations [B, d] of each adapter minus those of the untrained model, and those of each pair of adapters."""
    pairs = [one - other for i, one in enumerate(h) for other in h[:i]]
    return [*(one - untrained for one in h), *pairs]


def mixing_weights(n: int, d: int, sigma: float, rng: Generator) -> np.ndarray:
    """[n, d] secret weights W of equation 4; in each dimension they add up to 1."""
    weights = np.full((n, d), 1 / n)
    for i in range(n):
        for j in range(i + 1, n):
            xi = sigma * rng.standard_normal(d)
            weights[i] += xi
            weights[j] -= xi
    return weights


def mixed(h: Sequence[Tensor], weights: Tensor) -> Tensor:
    """h′ = Σ Wᵢ ∘ hᵢ, [B, d]."""
    return (torch.stack(list(h)) * weights[:, None]).sum(0)


def obfuscated(
    gradient: Tensor, m: int, noise: float, rng: Generator
) -> tuple[list[Tensor], list[float]]:
    """m vectors [B, d] and secret scalars α with Σ αⱼ ĝⱼ = `gradient`.

    The paper specifies only this sum. Here m − 1 vectors are Gaussian noise, and the last one is the
    remainder. Scalars are ± uniform on [1, 2]; noise of 4 × `noise` times the gradient's variance then leaves
    at least `noise` times that variance in the last one, too. The order is random, so that no server knows
    whether it gets the last one.
    """
    alphas = [float(a) for a in rng.uniform(1, 2, m) * rng.choice([-1.0, 1.0], m)]
    scale = 2 * noise**0.5 * float(gradient.square().mean().sqrt())
    drawn = rng.standard_normal((m - 1, *gradient.shape), dtype=np.float32)
    vectors = list(scale * torch.from_numpy(drawn).to(gradient))
    rest = gradient - sum(a * v for a, v in zip(alphas, vectors, strict=False))
    vectors.append(rest / alphas[-1])
    order = rng.permutation(m)
    return [vectors[j] for j in order], [alphas[j] for j in order]


def adversarial(h: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of a probe fitted to `h` [B, d], against the wrong labels.

    The probe is a logistic regression with scikit-learn's default L2 penalty. For two classes, cross-entropy of
    the negated scores is that against the other label. Every class has to occur.
    """
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(max_iter=100).fit(h.detach().cpu().numpy(), labels.cpu().numpy())
    weight = torch.from_numpy(np.atleast_2d(probe.coef_)).to(h)
    bias = torch.from_numpy(np.atleast_1d(probe.intercept_)).to(h)
    scores = linear(h, weight, bias)
    if scores.shape[1] == 1:  # for two classes scikit-learn returns the score of the second
        scores = torch.cat([torch.zeros_like(scores), scores], 1)
    return cross_entropy(-scores, labels)
