"""Labels in the difference of two adapters."""

from __future__ import annotations

import numpy as np
import pytest
from label_attacks import looks_of, sent, success
from moving_labels import agree, along, computed, start

from leakboard.attacks.adapter_difference import AdapterDifference
from leakboard.attacks.spectral import Spectral
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.methods.attack import Silent


def mixed(channel=Channel.ACTIVATIONS, adapters=2, recipients=("vendor",) * 3, moment=0):
    """Adapters that share a direction of large variance, against which the label of each is small."""
    h, y = start()
    label = np.outer(2 * y - 1, np.eye(h.shape[1])[5])
    kept = {"channel": channel, "moment": moment}
    parts = [
        sent(h + (i - 0.5) * label, part=i, recipient=recipients[i], **kept)
        for i in range(adapters)
    ]
    return Transcript(tuple(parts)), y


@pytest.mark.parametrize("channel", [Channel.ACTIVATIONS, Channel.RECOMPUTED])
def test_label_that_each_adapter_hides_shows_in_their_difference(channel):
    seen, y = mixed(channel)
    assert success(Spectral(), seen, y, channel).value < 0.6
    assert success(AdapterDifference(), seen, y, channel).value > 0.99


def test_ranks_are_those_of_the_first_singular_vector_of_the_difference():
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 90, 7))
    seen = Transcript((sent(one, part=0), sent(other, part=1)))
    (look,) = looks_of(AdapterDifference(), seen, np.arange(90) % 2)
    x = one - other
    _, _, right = np.linalg.svd(x - x.mean(0), full_matrices=False)
    assert agree(look.values, along(x, right[0]))


def test_every_pair_of_a_server_is_looked_at_and_none_across_servers():
    seen, y = mixed(adapters=3)
    assert [look.guess.part for look in looks_of(AdapterDifference(), seen, y)] == [0, 1, 2]
    apart, y = mixed(adapters=3, recipients=("a", "b", "a"))
    (look,) = looks_of(AdapterDifference(), apart, y)
    assert look.guess.recipient == "a"


def test_adapters_that_differ_in_no_label_are_no_leak():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 300, 9)), np.arange(300) % 2
    found = success(AdapterDifference(), Transcript((sent(x[0]), sent(x[1], part=1))), y)
    assert found.low <= found.chance


NONE = np.random.default_rng(0).standard_normal((20, 3))


@pytest.mark.parametrize(
    "seen",
    [
        mixed(adapters=1)[0],
        mixed(recipients=("server-0", "server-1"))[0],
        Transcript((sent(NONE), sent(NONE, part=1, moment=1))),
        Transcript((sent(NONE, channel=Channel.GRADIENTS),)),
        computed(NONE, NONE),
    ],
    ids=["one adapter", "a server each", "one adapter at each moment", "no activations", "one θ"],
)
def test_attack_says_why_there_is_no_difference(seen):
    with pytest.raises(Silent, match="no server has activations of two adapters at one moment"):
        looks_of(AdapterDifference(), seen, np.arange(len(seen.messages[0].rows)) % 2)


def test_moment_that_lacks_an_adapter_is_left_out_and_the_others_count():
    seen, y = mixed(moment=4)
    h, _ = start()
    more = Transcript((*seen.messages, sent(h, moment=2)))
    assert {look.guess.moment for look in looks_of(AdapterDifference(), more, y)} == {4}
