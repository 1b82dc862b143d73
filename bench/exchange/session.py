"""The session: everything that a defense needs to fine-tune."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from leakboard.bench.backbones import (
    Backbone,
    LanguageModel,
    Neighbours,
    Network,
    Ragged,
    Tokens,
    autocast,
    by_length,
    next_tokens,
    score_loss,
)
from leakboard.bench.contracts import Channel, Claim, Envelope, Progress, Seeds, TrainSettings
from leakboard.bench.exchange.training import Loop
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.tasks import Span, Split


@dataclass
class Session:
    """One fine-tuning: the customer's data, the public model, and the wire between the parties.

    Attributes:
        train: tokenised training examples. They are the customer's, and so are the labels.
        labels: [n] classes as whole numbers; [n] numbers as fractions, with mean 0 and variance 1; or [n, C] fractions,
            1 for labels that apply and 0 for others.
        classes: number of outputs of the head: of classes or labels, 1 for numbers, 0 for language modelling.
        loss: the loss curve, filled by `fit`.
        calls: API calls during training; `server_seconds` is the vendor's time for them, `fit_seconds` the
            total time of `fit`.
        steps: of each step the loss, and whether a message was swapped (`Wire`).
        skipped_batches: batches that a defense skipped because a class was missing.
        texts: the training texts, canaries included.
        canaries: characters of each planted secret, by row of `train`.
        claim: the formal guarantee, if it depends on the data and the settings.
        public: texts that both parties have; None if the task has none.
        inputs: in a combination, the mechanism of the defense of inputs: vectors [T, d] at the cut that are sent
            in place of the token ids.
    """

    train: Tokens
    labels: Tensor
    classes: int
    backbone: Backbone
    cut: int
    wire: Wire
    seeds: Seeds
    settings: TrainSettings
    progress: Progress
    loss: list[float] = field(default_factory=list)
    trained_parameters: int = 0
    calls: int = 0
    server_seconds: float = 0.0
    fit_seconds: float = 0.0
    skipped_batches: int = 0
    texts: Split | None = None
    canaries: Mapping[int, Span] = field(default_factory=dict)
    claim: Claim | None = None
    public: Tokens | None = None
    inputs: Callable[[Tokens], Ragged] | None = None
    steps: list[tuple[float, bool]] = field(default_factory=list)
    _fitting: bool = False

    @property
    def device(self) -> str:
        return self.backbone.device

    @property
    def all_rows(self) -> Tensor:
        return torch.arange(len(self.train))

    @cached_property
    def noise(self) -> Generator:
        """Random stream of the mechanism; nothing else draws from it."""
        return np.random.default_rng(self.seeds.mechanism)

    @property
    def neighbours(self) -> Neighbours:
        """Exact nearest rows of the public word embeddings."""
        return self.backbone.neighbours

    def partly(self, backbone: Backbone, blocks: Sequence[int]) -> Network:
        """A new trainable copy of a backbone with LoRA in some blocks; initial values as in `network`."""
        torch.manual_seed(self.seeds.initialisation)
        return Network(backbone, 0, self.classes, self.settings, blocks).train()

    def network(self, adapted: bool = True, cut: int = 0, bottom: bool = False) -> Network:
        """A new trainable copy of the backbone, with the same initial values for every defense.

        Args:
            adapted: with LoRA in the blocks of the top; without, only the head is trained.
            cut: the session's cut if the customer holds a bottom; 0 if the vendor receives
                tokens and holds the whole model.
            bottom: with LoRA in the blocks below the cut, too.
        """
        torch.manual_seed(self.seeds.initialisation)
        blocks = slice(0 if bottom else cut, None if adapted else 0)
        return Network(self.backbone, cut, self.classes, self.settings, blocks).train()

    def trainee(self) -> Network | LanguageModel:
        """The model that an owner trains and releases: a classifier, or a language model without labels.

        It has the same initial values for every defense.
        """
        if self.classes:
            return self.network()
        torch.manual_seed(self.seeds.initialisation)
        return LanguageModel(self.backbone, self.settings).train()

    def autocast(self) -> torch.autocast:
        """Context in which a model computes in the precision of the settings; backward passes follow suit."""
        return autocast(self.settings.precision, self.device)

    def fit(
        self,
        step: Callable[[Tensor, int], float],
        *groups: dict[str, object],
        lengths: Tensor | None = None,
        drawn: Sequence[Sequence[Tensor]] | None = None,
    ) -> None:
        """Runs the fine-tuning loop; `step(rows, epoch)` does a backward pass and returns the loss.

        Args:
            groups: AdamW parameter groups.
            lengths: lengths of the training examples, if these are not `train`.
            drawn: see `Loop.fit`.
        """
        self.trained_parameters = sum(
            p.numel()
            for group in groups
            for p in group["params"]  # type: ignore[attr-defined]
        )

        def noted(rows: Tensor, epoch: int) -> float:
            loss = step(rows, epoch)
            self.steps.append((loss, self.wire.has_swapped))
            return loss

        started = time.perf_counter()
        self._fitting = True
        try:
            loop = Loop(
                self.settings, self.seeds.order, self._outcomes, self.progress, self.wire.at
            )
            lengths = self.train.lengths if lengths is None else lengths
            self.loss += loop.fit(noted, groups, lengths, drawn)
        finally:
            self._fitting = False
            self.wire.at(-1, None)
        self.fit_seconds += time.perf_counter() - started

    def send_once(self, sends: Callable[[Tokens], Ragged]) -> Ragged:
        """Sends the representations of all training texts once; returns what arrives, which the vendor keeps.

        Args:
            sends: texts → vectors [T, d] at the cut.
        """
        parts = []
        # After a block, batches of similar length bound padding and memory.
        batches = by_length(self.train.lengths) if self.cut else [self.all_rows]
        with torch.no_grad():
            for rows in self.progress("representations", batches, len(batches)):
                vectors = sends(self.train.take(rows))
                parts.append(self.wire.send(Channel.REPRESENTATIONS, vectors, rows))
        return Ragged.joined(parts).take(torch.cat(batches).argsort())

    def truth(self, rows: Tensor) -> Tensor:
        """[B] labels of training examples; for language modelling [T] their `next_tokens`."""
        found = self.labels[rows] if self.classes else next_tokens(self.train.take(rows))
        return found.to(self.device)

    @property
    def _outcomes(self) -> float:
        """e to the loss of guessing: how many classes are equally likely, or what gives that loss."""
        if self.labels.is_floating_point():
            return 2.0 if self.labels.ndim == 2 else math.e
        return self.classes or len(self.backbone.embeddings)

    @property
    def constant_scores(self) -> Tensor:
        """[C] scores of the best prediction that ignores the text: class frequencies, 0 for the mean of numbers, or
        above 0 for the labels that maximise micro-F1 if they are always named."""
        if not self.labels.is_floating_point():
            return torch.bincount(self.labels, minlength=self.classes).float()
        if self.labels.ndim == 1:
            return torch.zeros(1)
        shares = self.labels.mean(0)
        falling = shares.sort(descending=True).values
        named = torch.arange(1, len(shares) + 1)
        f1 = 2 * falling.cumsum(0) / (named + shares.sum())
        return (shares >= falling[f1.argmax()]).float() - 0.5

    def has_classes(self, labels: Tensor, least: int) -> bool:
        """True if at least so many different labels occur in a batch; otherwise counts it as skipped."""
        enough = len(torch.unique(labels, dim=0)) >= least
        self.skipped_batches += not enough
        return enough

    def served(self, seconds: float) -> None:
        """Counts an API call and the vendor's time for it, while fine-tuning."""
        if self._fitting:
            self.calls += 1
            self.server_seconds += seconds

    def backward_through_customer(self, logits: Tensor, rows: Tensor, epoch: int) -> float:
        """The exchange of split learning: logits to the customer, ∂loss/∂logits back to the vendor.

        Args:
            logits: [B, C] on the vendor's side, with their graph.

        Returns:
            The customer's loss.
        """
        scores = self.wire.send(Channel.LOGITS, logits, rows, Envelope(epoch, sender="vendor"))
        scores.requires_grad_()
        loss = score_loss(scores, self.labels[rows].to(scores.device))
        (gradient,) = torch.autograd.grad(loss, scores)
        logits.backward(self.wire.send(Channel.LOGIT_GRADIENTS, gradient, rows, Envelope(epoch)))  # type: ignore[no-untyped-call]
        return loss.item()
