"""Messages in random order: what arrives then, where, and how often."""

from __future__ import annotations

import pytest
import torch

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import Channel, Envelope
from leakboard.bench.exchange import Wire
from leakboard.bench.scoring import swaps_noticed

ROWS = torch.arange(64)


def wire(**swap):
    made = Wire(frozenset(Channel), {"train": ROWS.numpy()})
    if swap:
        made.swap(**swap)
    return made


def test_rows_of_other_examples_arrive_and_the_sent_ones_are_recorded():
    made = wire(share=1)
    arrived = made.send(Channel.ACTIVATIONS, ROWS[:, None].float(), ROWS)
    assert not torch.equal(arrived[:, 0], ROWS.float())
    assert torch.equal(arrived[:, 0].sort().values, ROWS.float())
    (message,) = made.transcript().messages
    assert (message.values[:, 0] == ROWS.numpy()).all()


def test_sequences_keep_their_lengths():
    sent = Ragged(torch.arange(128), torch.full((64,), 2))
    arrived = wire(share=1).send(Channel.TOKENS, sent, ROWS)
    assert torch.equal(arrived.lengths, sent.lengths)
    assert not torch.equal(arrived.values, sent.values)


def test_parameters_arrive_in_random_order_within_each():
    adapter = {"a": torch.arange(24.0).view(4, 6)}
    arrived = wire(share=1).send_adapter(Channel.PARAMETERS, adapter, ROWS)
    assert arrived["a"].shape == (4, 6)
    assert not torch.equal(arrived["a"], adapter["a"])
    assert torch.equal(arrived["a"].flatten().sort().values, torch.arange(24.0))


@pytest.mark.parametrize(
    ("swap", "channel", "where"),
    [
        ({}, Channel.TOKENS, Envelope()),
        ({"share": 0.0}, Channel.TOKENS, Envelope()),
        ({"share": 1.0}, Channel.LOGITS, Envelope(sender="vendor")),
        ({"share": 1.0, "only": Channel.LABELS}, Channel.TOKENS, Envelope()),
        ({"share": 0.5}, Channel.TOKENS, Envelope()),  # no step of training yet
    ],
)
def test_everything_else_arrives_as_it_was_sent(swap, channel, where):
    arrived = wire(**swap).send(channel, ROWS.float(), ROWS, where)
    assert torch.equal(arrived, ROWS.float())


def test_the_share_of_steps_is_drawn_by_the_seed():
    def steps(seed):
        made, found = wire(share=0.25, seed=seed), []
        for step in range(400):
            made.at(step, None)
            made.send(Channel.ACTIVATIONS, ROWS[:, None].float(), ROWS)
            found.append(made.has_swapped)
        return found

    assert 70 < sum(steps(1)) < 130
    assert steps(1) == steps(1)
    assert steps(1) != steps(2)


def test_the_loss_at_swapped_steps_is_compared_with_the_steps_around_them():
    falling = [(10.0 - step / 10, False) for step in range(80)]
    falling[40::8] = [(loss + 0.5, True) for loss, _ in falling[40::8]]
    noticed = swaps_noticed(falling)
    assert (noticed.value, noticed.n, noticed.chance) == (1, 5, 0.5)
    alike = [(1.0, step % 2 == 0) for step in range(80)]
    assert swaps_noticed(alike).value == 0
    assert swaps_noticed([(1.0, False)] * 8) is None
