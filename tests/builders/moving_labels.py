"""Builders for attacks that look at what training moved: activations that hide labels in known places."""

from __future__ import annotations

import numpy as np
from label_attacks import sent

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript

N, D = 600, 12


def start(n=N, d=D, seed=0):
    """[n, d] activations before training and n labels that have nothing to do with them.

    The first coordinates vary most, the last ones hardly.
    """
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.geomspace(5, 0.2, d), rng.integers(2, size=n)


def beside_the_large_directions(seed=0):
    """h_0, h_t, y: the label is added along a direction of middling variance, and nothing else changes."""
    h0, y = start(seed=seed)
    noise = 0.05 * np.random.default_rng(seed + 1).standard_normal(h0.shape)
    return h0, h0 + np.outer(2 * y - 1, np.eye(D)[4]) + noise, y


def where_little_varied(seed=0):
    """h_0, h_t, y: large directions are shrunk, which moves most; the label lies where little varied."""
    h0, y = start(seed=seed)
    moved = h0 * np.where(np.arange(D) < 3, 0.3, 1)
    return h0, moved + 0.8 * np.outer(2 * y - 1, np.eye(D)[-1]), y


def behind_another(seed=0):
    """h_0, h_t, y: as `where_little_varied`, and something that is no label has moved more than it."""
    h0, h, y = where_little_varied(seed)
    decoy = np.random.default_rng(seed + 2).standard_normal(len(h))
    return h0, h + 2 * np.outer(decoy, np.eye(D)[-2]), y


def computed(h0, *parts, recipient="vendor"):
    """The transcript of a server that computed h_0 and, for one later θ of each adapter, the parts."""
    known = {"channel": Channel.RECOMPUTED, "recipient": recipient}
    later = (sent(h, moment=1, part=i, step=7, **known) for i, h in enumerate(parts))
    return Transcript((sent(h0, moment=0, step=-1, **known), *later))


def along(x, direction):
    """[n] centred rows along a direction."""
    return (x - x.mean(0)) @ direction


def agree(one, other):
    """Whether two rankings are the same up to sign and scale."""
    return abs(np.corrcoef(one, other)[0, 1]) > 0.9999
