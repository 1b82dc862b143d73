"""Defenses that use something beside what arrives over the wire."""

from __future__ import annotations

import torch


def keep_a_trace(wire):
    """Makes a wire return what was sent to it, with only a trace of what arrived."""
    send = wire.send

    def mix(channel, payload, *rest):
        arrived = send(channel, payload, *rest)
        if not isinstance(payload, torch.Tensor):
            return payload
        return payload.detach() + 1e-5 * (arrived - payload.detach())

    wire.send = mix
