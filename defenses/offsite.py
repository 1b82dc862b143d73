"""Offsite-tuning: the vendor sends an adapter and a small emulator of its other blocks."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from leakboard.bench.backbones import Backbone, Network, Ragged, Tokens
from leakboard.bench.contracts import WITH_HEAD, Channel, Envelope, Goal, LeakboardError, Objective
from leakboard.bench.exchange import Predictor, Session, Tuned, model_release
from leakboard.bench.methods import Conditions, Defense, Source

BATCH = 32
"""Public texts per step of the distillation."""
WARMUP = 0.1
"""Share of its steps with a rising learning rate; the authors' 2,000 steps are for far longer runs."""

BlockCount = Annotated[
    Annotated[int, Field(ge=1)] | None, BeforeValidator(lambda v: None if v == "none" else v)
]


class OffsiteTuning(Defense):
    """Hide the vendor's model from the customer, who trains locally on an emulator of it.

    The vendor hands out the first and last blocks (the adapter) and an emulator: some of the blocks in between,
    distilled on public text to replace all of them. The customer tunes the adapter with LoRA and a head on the
    frozen emulator, and returns both once. The vendor inserts them into its own model (the plug-in), which
    predicts. For predictions the customer's texts are sent in the clear, so inversion reads all of them.
    Encoders have no language modelling loss here, so the emulator learns by distillation alone.
    """

    name: ClassVar[str] = "offsite-tuning"
    display_name: ClassVar[str] = "Offsite-tuning"
    source: ClassVar[Source] = Source(
        "Offsite-Tuning: Transfer Learning without Full Model (Xiao et al. 2023)",
        "section 3",
        "https://arxiv.org/abs/2302.04870",
    )
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.EMULATOR, Channel.TOKENS, Channel.LOGITS}
    )
    objectives: ClassVar[frozenset[Objective]] = WITH_HEAD
    knob: ClassVar[str | None] = "emulator"
    protects: ClassVar[frozenset[Goal]] = frozenset({Goal.MODEL})
    colour: ClassVar[str] = "#692d00"
    marker: ClassVar[str] = "h"
    measured_by: ClassVar[Mapping[Goal, tuple[str, ...]]] = {Goal.MODEL: ("keep-emulator",)}

    least_blocks: ClassVar[int] = 4

    emulator: BlockCount = 2
    """Number of blocks of the emulator, 1 or more; "none" hands out all blocks, which protects nothing."""
    pad: int = Field(1, ge=1)
    """Number of adapter blocks at each end of the model."""
    steps: int = Field(200, ge=0)
    """Steps of the distillation; 0 leaves the blocks of the emulator unchanged."""
    distil_rate: float = Field(1e-4, gt=0)
    """Learning rate of AdamW in the distillation, with cosine decay."""

    @property
    def undefended(self) -> bool:
        return self.emulator is None

    def twins(self, objective: Objective) -> tuple[Defense, ...]:
        # Parameters of the distillation keep their defaults, since nothing is distilled.
        return () if self.undefended else (OffsiteTuning(emulator=None, pad=self.pad),)

    def skip(self, conditions: Conditions) -> str | None:
        return f"{self.name} cuts the model by `pad`; set cut: 0" if conditions.cut else None

    def positions(self, blocks: int) -> list[int]:
        """Indices of the blocks that form the emulator.

        Raises:
            LeakboardError: the model has too few blocks.
        """
        between = blocks - 2 * self.pad
        if between < 1:
            raise LeakboardError(
                f"pad: {self.pad} blocks at either end leave none of the model's {blocks} between them; it "
                f"must be at most {(blocks - 1) // 2}"
            )
        if self.emulator is None:
            return [*range(self.pad, blocks - self.pad)]
        if self.emulator > between:
            raise LeakboardError(
                f"emulator: {self.emulator} blocks asked for, and with pad: {self.pad} there are {between} of "
                f"the model's {blocks} between; it must be at most {between}"
            )
        if self.emulator == 1:
            return [self.pad + round((between - 1) / 2)]  # no ends to space evenly: the middle
        stride = (between - 1) / (self.emulator - 1)
        return [self.pad + round(i * stride) for i in range(self.emulator)]

    def fine_tune(self, session: Session) -> Tuned:
        whole, wire = session.backbone, session.wire
        kept = self.positions(whole.blocks)
        small = emulated(whole, self.pad, kept)
        if self.steps and len(kept) < whole.blocks - 2 * self.pad:
            self._distil(session, small, len(kept))
        nobody = torch.zeros(1, dtype=torch.long)
        out = Envelope(sender="vendor", recipient="customer")
        weights = dict(small.model.named_parameters())
        for name, value in wire.send_adapter(Channel.EMULATOR, weights, nobody, out).items():
            weights[name].data = value.clone()
        customer = session.partly(small, ends(small.blocks, self.pad))
        model_release.train(session, customer, session.train, release=False)
        tuned = {str(i): parameter for i, parameter in enumerate(customer.trained())}
        returned = wire.send_adapter(Channel.EMULATOR, tuned, nobody)
        vendor = session.partly(whole, ends(whole.blocks, self.pad))
        with torch.no_grad():
            for parameter, value in zip(vendor.trained(), returned.values(), strict=True):
                parameter.copy_(value)

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            ids = wire.send(Channel.TOKENS, tokens.ids, rows, Envelope(split=split))
            logits = model_release.class_scores(vendor, tokens.with_ids(ids.values))
            return wire.send(Channel.LOGITS, logits, rows, Envelope(split=split, sender="vendor"))

        return PlugIn(score, vendor, customer)

    def _distil(self, session: Session, small: Backbone, between: int) -> None:
        """Distil the emulator on public text: mean squared error at its output, over the mean square."""
        public, whole, pad = session.public, session.backbone, self.pad
        if public is None or not len(public):
            raise LeakboardError(
                "steps: the emulator is distilled on public text, and the task has none (a split 'auxiliary'); "
                "steps: 0 does without"
            )
        family, stack = whole.family, whole.family.stack(small.model)
        trained = [p for block in stack[pad : pad + between] for p in block.parameters()]
        for parameter in trained:
            parameter.requires_grad_(True)
        optimiser = torch.optim.AdamW(trained, lr=self.distil_rate)
        warm = max(1, round(WARMUP * self.steps))

        def rate(step: int) -> float:
            if step < warm:
                return (step + 1) / warm
            return (1 + math.cos(math.pi * (step - warm) / max(1, self.steps - warm))) / 2

        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
        rng = np.random.default_rng(session.seeds.initialisation)
        for _ in session.progress("distilling", range(self.steps), self.steps):
            rows = torch.from_numpy(rng.integers(len(public), size=BATCH))
            x, words = self._entered(whole, public.take(rows))
            mask = words.mask()
            with torch.no_grad():
                x = family.through(whole.model, x, mask, 0, pad)
                aim = words.unpadded(family.through(whole.model, x, mask, pad, whole.blocks - pad))
            found = words.unpadded(family.through(small.model, x, mask, pad, pad + between))
            loss = (found - aim).square().mean() / aim.square().mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        for parameter in trained:
            parameter.requires_grad_(False)

    def _entered(self, whole: Backbone, tokens: Tokens) -> tuple[Tensor, Ragged]:
        """Inputs of the first block [B, L, d], and the word embeddings from which they are made."""
        ragged = tokens.ids.embedded(whole.embeddings)
        mask = ragged.mask()
        types = tokens.ids.with_values(tokens.types.to(mask.device)).padded()
        with torch.no_grad():
            return whole.family.enter(whole.model, ragged.padded(), mask, types), ragged


class PlugIn(Predictor):
    """Predictor of the vendor's model with the customer's adapter; the customer keeps the emulator."""

    def __init__(self, score: Any, vendor: Network, customer: Network) -> None:
        super().__init__(score, vendor, customer)
        self.customer = customer

    def alone(self, tokens: Tokens) -> Tensor:
        own = Predictor(lambda some, rows, split: model_release.class_scores(self.customer, some))
        return own.predict(tokens, "")


def ends(blocks: int, pad: int) -> Sequence[int]:
    """Indices of the first and last blocks."""
    return [*range(pad), *range(blocks - pad, blocks)]


def emulated(whole: Backbone, pad: int, kept: Sequence[int]) -> Backbone:
    """A copy of a model in which only the ends and the kept blocks remain."""
    model = copy.deepcopy(whole.model)
    stack = whole.family.stack(model)
    for i in reversed(range(pad, whole.blocks - pad)):
        if i not in kept:
            del stack[i]
    return replace(whole, model=model)
