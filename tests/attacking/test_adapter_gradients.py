"""Gradients of the adapter, worked out from what was sent: one pass for each example, and per server."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from label_attacks import split, success
from numpy.testing import assert_allclose

from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import adapter_gradients
from leakboard.bench.attacking.adapter_gradients import (
    MOMENTS,
    adapter_of,
    features,
    load,
    per_example,
    principal,
    with_adapter_gradients,
)
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.exchange.calls import batches


def test_gradients_of_single_examples_are_those_that_one_pass_each_gives(trained):
    seen, _, network_of = trained
    network = network_of()
    ((_, sent_),) = batches(split(seen, 2), 1).items()
    batch = replace(sent_[0], vectors=sent_[0].vectors / np.abs(sent_[0].vectors).max())
    found = per_example(network, batch)
    assert len(found) == 2
    h = features(network, batch.tokens, torch.tensor(batch.adapter))
    weights = list(adapter_of(network).values())
    for vector, gradients in zip(batch.vectors, found, strict=True):
        for row in range(3):
            one = torch.zeros_like(h)
            one[row] = torch.tensor(vector[row])
            expected = torch.autograd.grad(h, weights, one, retain_graph=True)
            for ours, theirs in zip(gradients, expected, strict=True):
                assert_allclose(ours[row], theirs.flatten(), atol=1e-5, rtol=1e-3)


def test_adapter_is_loaded_as_it_was_sent(trained):
    _, _, network_of = trained
    network = network_of()
    vector = torch.randn(sum(p.numel() for p in adapter_of(network).values()))
    load(network, vector)
    assert torch.equal(torch.cat([p.flatten() for p in adapter_of(network).values()]), vector)


def test_principal_axes_keep_norms_and_distances():
    x = torch.randn(7, 30, generator=torch.Generator().manual_seed(0))
    found = principal([x[:, :20], x[:, 20:]])
    assert found.shape == (7, 7)
    assert_allclose(found @ found.T, x @ x.T, atol=1e-4)


@pytest.mark.parametrize(("rows", "taken"), [(1, 1), (64, 1), (65, 2)])
def test_whole_batches_are_taken_until_they_hold_so_many_rows(trained, monkeypatch, rows, taken):
    seen, _, network_of = trained
    monkeypatch.setattr(adapter_gradients, "ROWS", rows)
    # All batches, of 64 rows each, as if they had come at one moment.
    once = Transcript(tuple(m if m.moment is None else replace(m, moment=0) for m in seen.messages))
    (whole,) = batches(once, 0).values()
    more = with_adapter_gradients(once, network_of())
    (added,) = [m for m in more.messages if m.channel == Channel.ADAPTER_GRADIENTS]
    expected = np.concatenate([batch.rows for batch in whole[:taken]])
    assert added.rows.tolist() == expected.tolist()
    assert added.values.shape == (64 * taken, 64 * taken)


def test_adapter_gradients_are_added_per_recipient_and_part_and_give_the_labels_away(trained):
    seen, labels, network_of = trained
    for split_, parts in ((seen, 1), (split(seen, 3), 3)):
        more = with_adapter_gradients(split_, network_of())
        added = [m for m in more.messages if m.channel == Channel.ADAPTER_GRADIENTS]
        assert len(added) == MOMENTS * parts
        assert {m.part for m in added} == set(range(parts))
        for message in added:
            sent_ = more.collect(Channel.TOKENS, round=None, moment=message.moment)
            assert sorted(message.rows) == sent_.rows.tolist()
    found = success(
        Spectral(), with_adapter_gradients(seen, network_of()), labels, Channel.ADAPTER_GRADIENTS
    )
    assert found.value > 0.95
    without = Transcript(tuple(m for m in seen.messages if m.channel != Channel.PARAMETERS))
    assert with_adapter_gradients(without, network_of()) is without
