"""Activations that a server computes anew: from what it was sent, of all its texts, and of nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import fine_tuned, session_of
from label_attacks import sent
from numpy.testing import assert_allclose

from leakboard.bench.attacking.recomputed_activations import (
    BETWEEN,
    MOMENTS,
    UNTRAINED,
    before_training,
    with_recomputed,
)
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT


@pytest.fixture(scope="module")
def over_servers():
    """Of P³EFT with a server for each adapter: what was sent, and the vendor's model."""
    defense = P3EFT(servers="per-adapter", backprop="combined", weight=0)
    session, _, _ = fine_tuned(
        defense, limit=48, train={"learning_rate": 1e-2}, record={"examples": 20}
    )
    return session.wire.transcript(), session.network


def computed(seen):
    return [m for m in seen.messages if m.channel == Channel.RECOMPUTED]


def test_activations_are_those_of_the_model_with_the_adapter_that_was_sent(trained):
    seen, _, network_of = trained
    more = computed(with_recomputed(seen, network_of()))
    tokens = {}
    for m in seen.messages:
        if (m.channel, m.split) == (Channel.TOKENS, "train"):
            ends = np.split(m.values, np.cumsum(m.lengths)[:-1])
            tokens |= dict(zip(m.rows.tolist(), ends, strict=True))
    thetas = {
        m.step: m.values
        for m in seen.messages
        if m.channel == Channel.PARAMETERS and m.moment is not None
    }
    assert [m.moment for m in more] == list(range(MOMENTS))
    assert more[0].step == UNTRAINED
    assert more[-1].step == max(thetas)
    network = network_of().eval()
    theirs = [p for name, p in network.named_parameters() if "lora" in name]
    for message in more:
        if message.step == UNTRAINED:  # B = 0 in every adapter: the public model itself
            vector = torch.zeros(sum(p.numel() for p in theirs))
        else:
            vector = torch.tensor(thetas[message.step])
        torch.nn.utils.vector_to_parameters(vector, theirs)
        for i in (0, len(message.rows) // 2, len(message.rows) - 1):
            ids = torch.tensor(tokens[int(message.rows[i])])
            one = Ragged(network.embeddings(ids), torch.tensor([len(ids)]))
            with torch.no_grad():
                expected = network.features(one, torch.zeros_like(ids))[0]
            assert_allclose(message.values[i], expected, atol=1e-5)


def test_every_text_that_a_server_was_sent_is_computed_and_a_share_of_them_between(trained):
    seen, labels, network_of = trained
    more = computed(with_recomputed(seen, network_of()))
    sizes = [len(m.rows) for m in more]
    assert sizes[0] == sizes[-1] == len(labels)
    assert set(sizes[1:-1]) == {round(BETWEEN * len(labels))}
    few = computed(with_recomputed(seen, network_of(), texts=10))
    assert [len(m.rows) for m in few] == [10, *[round(10 * BETWEEN)] * 3, 10]
    assert set(few[1].rows) < set(few[0].rows)


def test_server_computes_with_its_own_adapters_alone(over_servers):
    seen, network_of = over_servers
    more = computed(with_recomputed(seen, network_of()))
    assert {(m.recipient, m.part) for m in more if m.moment} == {("server-0", 0), ("server-1", 1)}
    starts = [m for m in more if m.moment == 0]
    assert [m.recipient for m in starts] == ["server-0", "server-1"]
    assert np.array_equal(starts[0].values, starts[1].values)
    last = [m for m in more if m.moment == MOMENTS - 1]
    assert np.abs(last[0].values - last[1].values).max() > 1e-4


def test_it_is_computed_from_the_transcript_and_nothing_else(over_servers):
    seen, network_of = over_servers
    first = computed(with_recomputed(seen, network_of()))

    def changed(channel):
        other = tuple(
            replace(m, values=np.zeros_like(m.values)) if m.channel == channel else m
            for m in seen.messages
        )
        return computed(with_recomputed(Transcript(other), network_of()))

    for one, other in zip(first, changed(Channel.ACTIVATIONS), strict=True):
        assert np.array_equal(one.values, other.values)
    for one, other in zip(first, changed(Channel.TOKENS), strict=True):
        assert not np.allclose(one.values, other.values)
    for one, other in zip(first, changed(Channel.PARAMETERS), strict=True):
        assert np.allclose(one.values, other.values, atol=1e-6) == (one.moment == 0)


def test_second_text_of_a_pair_is_computed_as_one(over_servers):
    seen, network_of = over_servers
    single = computed(with_recomputed(seen, network_of()))
    pairs = computed(with_recomputed(seen, network_of(), lambda ids: torch.ones_like(ids.values)))
    for one, other in zip(single, pairs, strict=True):
        assert not np.allclose(one.values, other.values, atol=1e-3)


def test_untrained_model_is_asked_once_for_cells_that_share_its_texts(trained, monkeypatch):
    seen, _, network_of = trained
    known = {}
    with_recomputed(seen, network_of(), known=known)
    assert len(known) == 1
    marked = np.full_like(next(iter(known.values())), 7)
    known = dict.fromkeys(known, marked)
    assert computed(with_recomputed(seen, network_of(), known=known))[0].values is marked


@pytest.mark.parametrize("missing", [Channel.TOKENS, Channel.ACTIVATIONS])
def test_without_tokens_or_a_model_that_serves_nothing_is_computed(over_servers, missing):
    seen, network_of = over_servers
    less = Transcript(tuple(m for m in seen.messages if m.channel != missing))
    assert with_recomputed(less, network_of()) is less


def test_adapter_of_another_size_is_not_taken_for_one_of_this_model(over_servers):
    seen, network_of = over_servers
    other = tuple(
        replace(m, values=m.values[:-1]) if m.channel == Channel.PARAMETERS else m
        for m in seen.messages
    )
    assert {m.moment for m in computed(with_recomputed(Transcript(other), network_of()))} == {0}


def test_before_training_the_same_texts_stand_at_the_same_moments_once():
    h0 = np.arange(12.0).reshape(6, 2)
    start = sent(h0, channel=Channel.RECOMPUTED, moment=0, step=-1)
    later = sent(h0 + 1, channel=Channel.RECOMPUTED, moment=1, step=3)
    rows = np.array([4, 1, 9])
    window = [sent(np.ones((3, 2)), moment=5, part=part, rows=rows) for part in (0, 1)]
    gradients = sent(np.ones((6, 2)), channel=Channel.GRADIENTS)
    before = before_training(Transcript((*window, gradients, start, later)))
    one, other = before.messages
    assert (one.moment, one.part, one.rows.tolist()) == (5, 0, [4, 1])  # of 9 nothing is known
    assert one.values.tolist() == h0[[4, 1]].tolist()
    assert other is start
    assert not before_training(Transcript((*window, gradients))).messages


def test_defense_without_adapters_is_all_floor():
    from leakboard.defenses.frozen import Frozen

    session, _, _ = fine_tuned(Frozen(), limit=24)
    seen = session.wire.transcript()
    network = session_of(NoDefense(), limit=24)[0].network()
    (only,) = computed(with_recomputed(seen, network))
    sent_ = seen.collect(Channel.ACTIVATIONS)
    assert_allclose(only.values, sent_.values, atol=1e-5)
