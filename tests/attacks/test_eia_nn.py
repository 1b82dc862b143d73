"""Nearest-neighbour inversion: what noise costs it, and what many rounds give it."""

from __future__ import annotations

import numpy as np
from cells import NOISY, fine_tuned, ids_of, leak_of, run

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.scoring import advantage_low
from leakboard.defenses.sap import SAP


def test_nearest_neighbour_reads_everything_without_noise_and_less_the_more_noise(tmp_path):
    etas = (None, 300, 180, 60)
    records = run(tmp_path, *(SAP(eta=eta) for eta in etas))
    for view in ("train", "dev"):
        privacy = [leak_of(r, "eia-nn", view).ep.value for r in records]
        assert privacy[0] <= 0.01
        assert privacy == sorted(privacy)
        assert privacy[-1] > 0.9
    assert advantage_low(leak_of(records[0], "eia-nn")) > 0.9


def test_union_over_rounds_finds_more_than_any_single_round():
    session, inputs, _ = fine_tuned(SAP(eta=NOISY, bottom="trainable"), train={"epochs": 3})
    knowledge = Knowledge(2, "cpu", base=session.backbone)
    seen = session.wire.transcript()
    (guess,) = NearestNeighbour().guess(seen, knowledge, np.random.default_rng(0))
    assert guess.values.shape == (len(session.train.ids.values), 3)
    tokens = inputs.tokens["train"]
    hit = (guess.values == tokens.ids.values.numpy()[:, None])[~tokens.special.numpy()]
    assert hit.any(1).mean() > 1.1 * hit.mean(0).max()
    for r in range(3):
        assert guess.values[:, r].tolist() == ids_of(session, r).tolist()
