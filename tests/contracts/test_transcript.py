"""Transcripts in blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from cells import fine_tuned
from hypothesis import given
from hypothesis import strategies as st

from leakboard.attacks.aia_mlp import MeanMLP
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.prior import Prior
from leakboard.bench.conformance.trial import same_messages
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge, Labelled
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

VECTORS, SENT = Channel.ACTIVATIONS, Channel.REPRESENTATIONS


@st.composite
def messages(draw):
    """Messages of one round about different rows, ragged or not."""
    n = draw(st.integers(1, 12))
    order = np.array(draw(st.permutations(range(n))))
    cuts = sorted(draw(st.sets(st.integers(1, n), max_size=3)))
    ragged = draw(st.booleans())
    sent = []
    for rows in (part for part in np.split(order, cuts) if len(part)):
        lengths = np.array(
            draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
        )
        total = int(lengths.sum()) if ragged else len(rows)
        values = np.random.default_rng(0).normal(size=(total, 2)).astype(np.float32)
        shape = (rows, values, lengths if ragged else None)
        sent.append(Message(SENT, "train", 0, "customer", "vendor", 0, *shape))
    return sent


@given(messages(), st.integers(1, 100))
def test_blocks_joined_are_what_collect_gives_and_none_is_too_large(sent, size):
    seen = Transcript(tuple(sent))
    whole, blocks = seen.collect(SENT), list(seen.blocks(SENT, size=size))
    assert np.array_equal(whole.rows, np.concatenate([b.rows for b in blocks]))
    assert np.array_equal(whole.values, np.concatenate([b.values for b in blocks]))
    if whole.lengths is not None:
        assert np.array_equal(whole.lengths, np.concatenate([b.lengths for b in blocks]))
    assert all(b.values.nbytes <= size or len(b.rows) == 1 for b in blocks)
    assert all(len(b.rows) for b in blocks)
    for block, after in pairwise(blocks):  # one more example would have been too much
        entries = 1 if after.lengths is None else int(after.lengths[0])
        assert block.values.nbytes + entries * 8 > size


class InBlocks(Transcript):
    """Reads at most 300 bytes at a time."""

    def blocks(self, *where, size=300, **more):
        blocks = list(super().blocks(*where, size=size, **more))
        if size == 300:
            self.counts.append(len(blocks))
        return iter(blocks)


@pytest.mark.parametrize("attack", [NearestNeighbour(), MeanMLP(), Prior()])
def test_an_attack_guesses_the_same_in_blocks_as_at_once(tiny, attack):
    session, inputs, _ = fine_tuned(SAP(eta=50))
    whole = session.wire.transcript()
    parts = InBlocks(whole.messages)
    object.__setattr__(parts, "counts", [])
    labelled = Labelled(np.arange(10), {"gender": np.arange(10) % 2}, {"gender": 2})
    public = Auxiliary(inputs.tokens["train"], inputs.task.splits["train"].labels)
    knowledge = Knowledge(2, "cpu", base=tiny, labelled=labelled, auxiliary=public)
    one, other = (
        attack.guess(seen, knowledge, np.random.default_rng(0)) for seen in (whole, parts)
    )
    assert one
    assert same_messages(one, other)
    assert max(parts.counts) > 5


@pytest.fixture(scope="module")
def sent():
    """The transcripts of a defense that sends vectors at the cut, and of one with moments."""
    return {d.name: fine_tuned(d)[0].wire.transcript() for d in (SAP(eta=50), P3EFT())}
