"""Defenses that use something beside what arrives over the wire."""

from __future__ import annotations

import torch


def keep_a_trace(wire, tokens=True):
    """Makes a wire return the vectors that were sent to it, with only a trace of what arrived; and the sent `tokens`."""
    send = wire.send

    def mix(channel, payload, *rest):
        arrived = send(channel, payload, *rest)
        if not isinstance(payload, torch.Tensor):
            return payload if tokens else arrived
        return payload.detach() + 1e-4 * (arrived - payload.detach())

    wire.send = mix
