"""The trust boundary: what is refused, counted, recorded and handed to an attack."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import leak_of, run
from hypothesis import given
from hypothesis import strategies as st

from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts import Channel, Envelope
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.scoring.checks import flags
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.sap import SAP

VECTORS, TOKENS = Channel.ACTIVATIONS, Channel.TOKENS


def wire(rows, budget=2**31, split="train"):
    return Wire(frozenset({VECTORS, TOKENS}), {split: np.array(rows)}, budget)


def test_undeclared_channel_is_refused_and_nothing_of_it_counted():
    w = wire([0])
    with pytest.raises(LeakboardError, match=r"sends logits.*activations, tokens"):
        w.send(Channel.LOGITS, torch.zeros(1, 2), torch.tensor([0]))
    assert w.bytes_up == w.bytes_down == 0
    assert not w.transcript().messages


def test_payload_of_other_examples_than_it_says_is_refused():
    with pytest.raises(LeakboardError, match="2 payload rows for 1 examples"):
        wire([0]).send(VECTORS, torch.zeros(2, 3), torch.tensor([0]))


def test_what_arrives_is_cut_from_the_senders_graph():
    h = torch.ones(1, 2, requires_grad=True) * 3
    arrived = wire([0]).send(VECTORS, h, torch.tensor([0]))
    assert arrived.tolist() == [[3, 3]]
    assert not arrived.requires_grad
    ragged = Ragged(h[0], torch.tensor([2]))
    assert not wire([0]).send(TOKENS, ragged, torch.tensor([0])).values.requires_grad


def test_only_recorded_rows_are_kept_and_all_bytes_are_counted_in_their_direction():
    w = wire([7, 2])
    w.send(VECTORS, torch.arange(8.0).reshape(4, 2), torch.tensor([1, 2, 3, 7]))
    w.send(VECTORS, torch.zeros(3, 2, dtype=torch.bfloat16), torch.tensor([1, 3, 4]), Envelope(1))
    w.send(TOKENS, Ragged.of([[5], [6, 6, 6]]), torch.tensor([4, 2]), Envelope(sender="vendor"))
    assert w.bytes_up == 4 * 2 * 4 + 3 * 2 * 2
    assert w.bytes_down == 4 * 8 + 2 * 4
    vectors, tokens = w.transcript().messages
    assert vectors.rows.tolist() == [2, 7]
    assert vectors.values.tolist() == [[2, 3], [6, 7]]
    assert tokens.rows.tolist() == [2]
    assert (tokens.values.tolist(), tokens.lengths.tolist()) == ([6, 6, 6], [3])


def test_rows_of_a_split_that_is_not_recorded_are_not_kept():
    w = wire([0, 1])
    w.send(VECTORS, torch.zeros(2, 2), torch.tensor([0, 1]), Envelope(split="dev"))
    assert w.bytes_up == 16
    assert not w.transcript().messages


def test_recorded_arrays_are_read_only_copies():
    w, values, rows = wire([0, 1]), torch.ones(2, 2), torch.tensor([0, 1])
    ragged = Ragged(torch.tensor([4, 5, 6]), torch.tensor([1, 2]))
    w.send(VECTORS, values, rows)
    w.send(TOKENS, ragged, rows)
    for tensor in (values, rows, ragged.values, ragged.lengths):
        tensor += 100
    vectors, tokens = w.transcript().messages
    assert vectors.values.tolist() == [[1, 1], [1, 1]]
    assert vectors.rows.tolist() == tokens.rows.tolist() == [0, 1]
    assert (tokens.values.tolist(), tokens.lengths.tolist()) == ([4, 5, 6], [1, 2])
    for array in (vectors.values, vectors.rows, tokens.values, tokens.rows, tokens.lengths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_a_model_that_is_handed_out_is_recorded_as_it_was_then():
    w, vector = Wire(frozenset({Channel.MODEL}), {}), torch.ones(3)
    w.release(vector, 2, 7)
    vector += 100
    (released,) = w.transcript().messages
    assert released.values.tolist() == [[1, 1, 1]]
    assert (released.round, released.step, released.recipient) == (2, 7, "public")
    assert w.bytes_up == 12


def test_an_attack_cannot_change_what_the_next_one_collects():
    w = wire([0, 1])
    w.send(TOKENS, Ragged.of([[4], [5, 6]]), torch.tensor([0, 1]))
    seen = w.transcript()
    block = seen.collect(TOKENS)
    for array in (block.rows, block.values, block.lengths):
        array += 1
    again = seen.collect(TOKENS)
    assert (again.rows.tolist(), again.values.tolist()) == ([0, 1], [4, 5, 6])
    assert again.lengths.tolist() == [1, 2]


def test_budget_drops_what_exceeds_it_and_says_how_much():
    w = wire(range(10), budget=100)
    for i in range(4):
        w.send(VECTORS, torch.zeros(1, 10), torch.tensor([i]))
    seen = w.transcript()
    assert [m.rows.tolist() for m in seen.messages] == [[0], [1]]
    assert seen.dropped_bytes == 80
    assert w.bytes_up == 160


def test_exceeded_budget_stops_only_the_attacks_that_read_what_was_dropped(tmp_path):
    records = run(tmp_path, SAP(), Frozen(), limit=700, record={"megabytes": 1})
    sap = records[0]
    assert sap.status == "ok"
    assert sap.dropped_bytes > 2**20
    assert flags(records)[sap.key, -1] == ("truncated-transcript",)
    assert not records[1].dropped_bytes
    assert leak_of(sap, "logit-gradient", goal="label").status == "ok"
    cut_short = [leak for leak in sap.leaks if leak.attack.name == "eia-nn"]
    assert [leak.status for leak in cut_short] == ["skipped"]
    assert "record.megabytes" in cut_short[0].reason


@st.composite
def batchings(draw):
    """Sequences, the rows that are recorded, and the batches they are sent in."""
    sequences = draw(st.lists(st.lists(st.integers(0, 99), max_size=4), min_size=1, max_size=12))
    order = draw(st.permutations(range(len(sequences))))
    cuts = draw(st.lists(st.integers(1, len(order)), max_size=4))
    batches = [part for part in np.split(np.array(order), sorted(set(cuts))) if len(part)]
    recorded = draw(st.sets(st.sampled_from(range(len(sequences))), min_size=1))
    return sequences, sorted(recorded), batches


@given(batchings())
def test_collect_orders_rows_and_joins_ragged_batches_however_they_were_cut(case):
    sequences, recorded, batches = case
    w = wire(recorded)
    for batch in batches:
        rows = torch.from_numpy(batch)
        w.send(TOKENS, Ragged.of([sequences[i] for i in batch]), rows)
        w.send(VECTORS, rows[:, None] * 1.5, rows)
    block, vectors = (w.transcript().collect(c) for c in (TOKENS, VECTORS))
    assert block.rows.tolist() == vectors.rows.tolist() == recorded
    assert block.lengths.tolist() == [len(sequences[i]) for i in recorded]
    assert block.values.tolist() == [v for i in recorded for v in sequences[i]]
    assert vectors.values[:, 0].tolist() == [1.5 * i for i in recorded]


def test_collect_keeps_rounds_splits_and_parts_apart():
    w = Wire(frozenset({VECTORS}), {"train": np.array([0]), "dev": np.array([0])})
    for value, where in enumerate(
        [{}, {"round": 1}, {"split": "dev"}, {"part": 1}, {"round": 1, "part": 1}]
    ):
        w.send(VECTORS, torch.full((1, 1), float(value)), torch.tensor([0]), Envelope(**where))
    seen = w.transcript()
    assert seen.collect(VECTORS).values.item() == 0
    assert seen.collect(VECTORS, round=1).values.item() == 1
    assert seen.collect(VECTORS, "dev").values.item() == 2
    assert seen.collect(VECTORS, part=1).values.item() == 3
    assert seen.collect(VECTORS, round=1, part=1).values.item() == 4
    assert (seen.splits(VECTORS), seen.rounds(VECTORS)) == (["train", "dev"], [0, 1])
    with pytest.raises(KeyError, match="no tokens of train, round 0"):
        seen.collect(TOKENS)


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=8), st.data())
def test_ragged_take_and_padding_agree_with_lists(sequences, data):
    ragged = Ragged.of(sequences)
    rows = data.draw(st.lists(st.sampled_from(range(len(sequences))), min_size=1))
    taken = ragged.take(torch.tensor(rows))
    assert taken.values.tolist() == [v for i in rows for v in sequences[i]]
    longest = max(map(len, sequences))
    assert ragged.padded(-1).tolist() == [s + [-1] * (longest - len(s)) for s in sequences]
    assert ragged.mask().sum(1).tolist() == [len(s) for s in sequences]
