"""Principal components of messages at a few moments of training, for figures."""

from __future__ import annotations

import numpy as np

from leakboard.bench.contracts import Channel, Ints, Projection, Transcript

CHANNELS = (Channel.ACTIVATIONS, Channel.GRADIENTS)
MOMENTS = 4
"""Number of evenly spaced moments, from the first to the last, as in P³EFT, figures 1 and 3."""
POINTS = 200
"""Examples per moment."""
SCALE = 1000
"""Coordinates are scaled to whole numbers up to this value, which keeps records small."""


def projections(seen: Transcript, labels: Ints) -> list[Projection]:
    """First two principal components of the messages at moments of training, for every part and recipient.

    Args:
        labels: [N] of the split `train`.
    """
    result = []
    for channel in CHANNELS:
        moments = seen.moments(channel)
        at = np.unique(np.linspace(0, len(moments) - 1, MOMENTS).round().astype(int))
        for moment in [moments[i] for i in at] if moments else []:
            step = min(m.step for m in seen.messages if m.moment == moment)
            for recipient, part in seen.parts(channel, moment):
                block = seen.collect(channel, "train", None, part, moment, recipient)
                centred = block.values - block.values.mean(0)
                u, s, _ = np.linalg.svd(centred, full_matrices=False)
                xy = (u[:, :2] * s[:2])[:POINTS]
                furthest = float(np.abs(xy).max()) or 1.0
                result.append(
                    Projection(
                        channel=channel,
                        step=step,
                        part=part,
                        recipient=recipient,
                        points=(SCALE * xy / furthest).round().astype(int).tolist(),
                        truth=labels[block.rows][:POINTS].tolist(),
                    )
                )
    return result
