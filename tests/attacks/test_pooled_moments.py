"""pooled-moments: all that training showed of a text is read at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cells import run
from label_attacks import sent, success

from leakboard.attacks.logreg import LogReg
from leakboard.attacks.pooled_moments import PooledMoments
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense

N, D = 300, 4


def rounds(scales, seed=0, channel=Channel.GRADIENTS):
    """A transcript in which each round shows a little of the label, and its labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=N)
    messages = []
    for number, scale in enumerate(scales):
        x = 0.5 * (2 * y - 1)[:, None] * np.eye(D)[0] + rng.standard_normal((N, D))
        messages.append(replace(sent(scale * x, moment=None, channel=channel), round=number))
    return Transcript(tuple(messages)), y


@pytest.mark.parametrize("channel", [Channel.GRADIENTS, Channel.ACTIVATIONS])
def test_evidence_of_all_rounds_adds_up_whatever_the_scale_of_each(channel):
    seen, y = rounds([1.0, 1e-3, 10.0] * 4, channel=channel)
    alone, pooled = (
        success(attack, seen, y, channel).value for attack in (LogReg(), PooledMoments())
    )
    assert pooled > alone + 0.1
    assert pooled > 0.9


def test_all_parts_of_one_server_count_and_those_of_others_do_not():
    (first,) = rounds([1.0])[0].messages
    second, _ = rounds([1.0], seed=1)
    other = replace(second.messages[0], part=1)
    one = PooledMoments().matrices_of(Transcript((first, other)))
    two = PooledMoments().matrices_of(Transcript((first, replace(other, recipient="another"))))
    assert [m.values.shape for m in one] == [(N, 2 * D)]
    assert [m.values.shape for m in two] == [(N, D), (N, D)]


def test_cells_are_read_without_protection_and_not_in_noise(tmp_path):
    train = {"epochs": 2, "learning_rate": 3e-3}
    fields = {"attacks": (PooledMoments(),), "limit": 96, "train": train}
    clear, noise = run(tmp_path, NoDefense(), Blackout(), **fields)
    assert max(advantage_low(leak) for leak in clear.leaks if leak.success) >= NEEDED
    for leak in noise.leaks:
        assert leak.success is None or leak.success.low <= leak.success.chance
