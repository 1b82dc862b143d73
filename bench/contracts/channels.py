"""What crosses the trust boundary, and who sends it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Party = Literal["customer", "vendor"]


class Channel(StrEnum):
    """What an adversary can see crossing the trust boundary."""

    TOKENS = "tokens"
    """Token ids of the inputs, one row of ids per example."""
    REPRESENTATIONS = "representations"
    """Vectors at the cut, one per token: what split learning sends instead of the text."""
    ACTIVATIONS = "activations"
    """Pooled output h(x, θ) of the vendor's model, one vector per example."""
    GRADIENTS = "gradients"
    """∂loss/∂h, one vector per example."""
    LOGITS = "logits"
    """Class scores that the vendor returns."""
    LOGIT_GRADIENTS = "logit-gradients"
    """∂loss/∂logits, one vector per example."""
    CUT_GRADIENTS = "cut-gradients"
    """∂loss/∂representation that the vendor returns to a trainable bottom, one vector per token."""
    PARAMETERS = "parameters"
    """Adapter parameters θ sent to the vendor, one vector per call."""
    ADAPTER_GRADIENTS = "adapter-gradients"
    """∂loss/∂θ that the vendor returns, one vector per call; whoever sees the call can compute it."""
    RECOMPUTED = "recomputed-activations"
    """h(x, θ_t) of every text that a server was sent, which it computes itself from tokens and θ_t."""
    LABELS = "labels"
    """Classes of training examples in the clear, one whole number per example: where the vendor trains."""
    EMULATOR = "emulator"
    """Weights of its model, or of what stands for a part of it, that the vendor hands to the customer, and
    what the customer tuned of them and returns; one vector each way."""
    MODEL = "model"
    """The released model: what was trained of it, as one vector, after each epoch; the last counts."""


def known_from(sent: frozenset[Channel]) -> frozenset[Channel]:
    """What somebody has who is sent these channels: they, and what he computes from them himself."""
    serves = {Channel.TOKENS, Channel.ACTIVATIONS} <= sent
    return sent | {Channel.RECOMPUTED} if serves else sent
