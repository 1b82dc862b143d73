"""Labels from what the optimiser did: steps of the adapter tell the gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned
from label_attacks import looks_of, split, success

from leakboard.attacks.optimiser_inversion import OptimiserInversion, explained, moved, update
from leakboard.bench.attacking.adapter_gradients import (
    adapter_of,
    features,
)
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.calls import batches
from leakboard.bench.scoring.moments import scored
from leakboard.defenses.none import NoDefense


@pytest.mark.parametrize("m", [1, 2, 3])
def test_update_of_the_adapter_tells_the_secret_scalars(trained, m):
    seen, labels, network_of = trained
    hidden = seen if m == 1 else split(seen, m)
    found = success(
        OptimiserInversion(), hidden, labels, Channel.GRADIENTS, network=network_of, base=object()
    )
    assert found.value > 0.9
    assert found.low > found.chance


def test_server_with_one_vector_still_learns_from_what_the_update_does(minilm):
    train = {"batch_size": 64, "epochs": 1}
    session, inputs, _ = fine_tuned(NoDefense(), model="minilm", limit=256, train=train)
    seen, labels = session.wire.transcript(), inputs.task.splits["train"].labels
    one_each = split(seen, 2, servers=2)
    looks = looks_of(OptimiserInversion(), one_each, labels, network=session.network)
    assert {look.guess.channel for look in looks} == {Channel.PARAMETERS}
    worst, _ = scored(looks, 2)
    assert worst["success"].low > worst["success"].chance


def test_activations_are_moved_by_the_last_step_of_a_window_where_what_it_made_is_known(trained):
    seen, _, network_of = trained
    network, batch = network_of(), batches(seen, 0)["vendor", 0][0]
    after = stepped(network, batch)
    x = moved(network, [batch], {batch.step: batch.adapter, batch.step + 1: after})
    g = batch.vectors[0]
    assert np.sum(x * g) < 0  # downhill
    assert not moved(network, [batch], {batch.step: batch.adapter}).any()


def test_update_is_cleared_of_momentum_where_its_neighbours_are_known():
    values = {s: np.array([float(s**2)]) for s in (0, 1, 2, 9)}
    assert update(values, 1) == pytest.approx(3 - 0.9 * 1)
    assert update(values, 0) == pytest.approx(1)
    assert update(values, 2) == pytest.approx(77)
    assert update(values, 9) == pytest.approx(77)
    assert update({4: np.ones(2)}, 4).tolist() == [0, 0]


def test_combination_that_fits_the_update_is_the_gradient_with_its_sign(trained):
    seen, _, network_of = trained
    network = network_of()
    batch = batches(seen, 0)["vendor", 0][0]
    given = batches(split(seen, 3), 0)["vendor", 0][0]
    x = explained(network, given, {0: batch.adapter, 1: stepped(network, batch)})
    g = batch.vectors[0]
    assert np.sum(x * g) / np.linalg.norm(g) > 0.9


def stepped(network, batch):
    """[P] the adapter after the first step of AdamW on the true gradient of a batch."""
    h = features(network, batch.tokens, torch.tensor(batch.adapter))
    weights = list(adapter_of(network).values())
    found = torch.autograd.grad(h, weights, torch.tensor(batch.vectors[0]))
    gradient = torch.cat([g.flatten() for g in found]).numpy()
    return batch.adapter - 1e-3 * np.sign(gradient)
