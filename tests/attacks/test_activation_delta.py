"""Labels in what training has changed."""

from __future__ import annotations

import numpy as np
import pytest
from label_attacks import looks_of, sent, success
from moving_labels import agree, along, beside_the_large_directions, computed, start

from leakboard.attacks.activation_delta import ActivationDelta
from leakboard.attacks.spectral import Spectral
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.methods.attack import Silent


def test_label_is_read_from_the_change_where_the_activations_themselves_show_other_things():
    h0, h, y = beside_the_large_directions()
    seen = computed(h0, h)
    assert success(Spectral(), seen, y, Channel.RECOMPUTED).value < 0.6
    assert success(ActivationDelta(), seen, y).low > 0.95


def test_ranks_are_those_of_the_first_singular_vector_of_the_change():
    h0, h, y = beside_the_large_directions()
    (look,) = looks_of(ActivationDelta(), computed(h0, h), y)
    change = h - h0
    _, _, right = np.linalg.svd(change - change.mean(0), full_matrices=False)
    assert agree(look.values, along(change, right[0]))


def test_each_text_is_compared_with_itself_where_fewer_were_computed_later():
    h0, h, y = beside_the_large_directions()
    rows = np.arange(3, len(h), 4)
    known = {"channel": Channel.RECOMPUTED, "moment": 1, "step": 7, "rows": rows}
    seen = Transcript((*computed(h0).messages, sent(h[rows], **known)))
    (look,) = looks_of(ActivationDelta(), seen, y)
    assert look.guess.rows.tolist() == rows.tolist()
    assert success(ActivationDelta(), seen, y).low > 0.95


def test_change_without_labels_is_no_leak():
    h0, _ = start()
    h, y = h0 + np.random.default_rng(5).standard_normal(h0.shape), np.arange(len(h0)) % 2
    found = success(ActivationDelta(), computed(h0, h), y)
    assert found.low <= found.chance


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (Transcript((sent(np.zeros((4, 2))),)), "no tokens with activations were seen"),
        (computed(np.zeros((4, 2))), "no adapter was sent at any moment"),
    ],
)
def test_attack_says_why_there_is_nothing_to_compare(seen, why):
    with pytest.raises(Silent, match=why):
        looks_of(ActivationDelta(), seen, np.arange(4) % 2)
