"""What a session hands to a defense: streams and networks, each from the seed that is meant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from cells import session_of

from leakboard.bench.contracts.cell import Seeds
from leakboard.defenses.none import NoDefense

SEEDS = Seeds.of(0, secret="of a test")


def test_noise_is_drawn_from_the_secret_of_the_mechanism_and_networks_from_the_public_seed():
    session, _ = session_of(NoDefense(), SEEDS)
    expected = np.random.default_rng(SEEDS.mechanism).standard_normal(4)
    assert session.noise.standard_normal(4).tolist() == expected.tolist()
    assert session.noise.standard_normal(4).tolist() != expected.tolist()  # it goes on
    weight = session.network().head.weight
    for axis in ("mechanism", "planting", "order", "attack", "data"):
        other, _ = session_of(NoDefense(), replace(SEEDS, **{axis: 7}))
        assert torch.equal(other.network().head.weight, weight)
    other, _ = session_of(NoDefense(), replace(SEEDS, initialisation=7))
    assert not torch.equal(other.network().head.weight, weight)
