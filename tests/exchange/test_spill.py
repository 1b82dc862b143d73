"""Transcripts beyond memory."""

from __future__ import annotations

import gc
import re
import resource
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from cells import leak_of, make, run

from leakboard.attacks.aia_mlp import MeanMLP
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.attacks.prior import Prior
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.conformance.trial import same_messages
from leakboard.bench.contracts import Channel, Envelope
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.exchange.spill import Spill
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.running import cells
from leakboard.bench.running.cell_context import context_of
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

VECTORS, SENT = Channel.ACTIVATIONS, Channel.REPRESENTATIONS


def recorded(memory, examples=40, budget=2**31):
    """A wire over which vectors of tokens and of examples went, in batches of 8 in two rounds."""
    wire = Wire(frozenset(Channel), {"train": np.arange(examples)}, budget, memory)
    rng = np.random.default_rng(0)
    for r in (0, 1):
        for rows in torch.split(torch.from_numpy(rng.permutation(examples)), 8):
            lengths = torch.from_numpy(rng.integers(1, 6, len(rows)))
            vectors = torch.from_numpy(rng.normal(size=(int(lengths.sum()), 4)))
            wire.send(SENT, Ragged(vectors.float(), lengths), rows, Envelope(r))
            wire.send(VECTORS, torch.from_numpy(rng.normal(size=(len(rows), 3))), rows, Envelope(r))
            wire.send(Channel.TOKENS, Ragged(torch.arange(int(lengths.sum())), lengths), rows)
    return wire


def mapped():
    """Temporary files without a name that this process has mapped or open."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs Linux to see what is mapped")
    gc.collect()
    return len(re.findall(r"\(deleted\)", maps.read_text()))


@pytest.mark.parametrize("memory", [0, 700])
def test_what_is_spilled_reads_like_what_stayed_in_memory(memory):
    in_memory, spilled = recorded(2**30), recorded(memory)
    assert spilled._spilled
    assert not in_memory._spilled
    one, other = in_memory.transcript(), spilled.transcript()
    assert same_messages(one.messages, other.messages)
    for r in (0, 1):
        assert same_messages([one.collect(SENT, round=r)], [other.collect(SENT, round=r)])


def test_memory_budget_bounds_what_stays_and_only_the_other_one_drops():
    spilled = recorded(700)
    kept = [m for i, m in enumerate(spilled._messages) if i not in spilled._spilled]
    assert 0 < sum(m.values.nbytes for m in kept) <= 700
    assert not spilled.transcript().dropped
    whole = sum(m.values.nbytes for m in spilled.transcript().messages)
    dropped = recorded(700, budget=whole - 1).transcript().dropped_bytes
    assert 0 < dropped < whole


def test_spilled_arrays_cannot_be_made_writable():
    message = recorded(0).transcript().messages[0]
    with pytest.raises(ValueError, match="read-only"):
        message.values[0] = 9
    with pytest.raises(ValueError, match="WRITEABLE"):
        message.values.setflags(write=True)


def test_later_messages_do_not_change_a_spilled_transcript():
    wire = recorded(0)
    before = wire.transcript()
    copies = [m.values.copy() for m in before.messages]
    wire.send(VECTORS, torch.ones(1, 3), torch.tensor([0]), Envelope(9))
    assert same_messages([before.messages[-1]], [wire.transcript().messages[-2]])
    for message, copy in zip(before.messages, copies, strict=True):
        assert np.array_equal(message.values, copy)


def test_an_empty_array_can_be_spilled():
    spill = Spill()
    arrays = [np.zeros((0, 3), np.float32), np.arange(5), np.zeros(0)]
    for array in arrays:
        spill.append(array)
    for array, back in zip(arrays, spill.arrays(), strict=True):
        assert (array.shape, array.dtype) == (back.shape, back.dtype)
        assert np.array_equal(array, back)


@pytest.mark.slow
def test_a_spilled_cell_has_the_record_of_one_in_memory(tmp_path, monkeypatch):
    defenses = SAP(eta=50), P3EFT()
    attacks = NearestNeighbour(), LogitGradient(), Prior(), MeanMLP()
    one = run(tmp_path / "memory", *defenses, attacks=attacks)
    wires = []

    def small(*args):
        wires.append(Wire(*args, memory=0))
        return wires[-1]

    monkeypatch.setattr(cells, "Wire", small)
    other = run(tmp_path / "disk", *defenses, attacks=attacks)
    assert all(len(w._spilled) == len(w._messages) > 0 for w in wires)
    assert [r.outcome() for r in one] == [r.outcome() for r in other]
    assert leak_of(one[0], "eia-nn").status == "ok"


def test_no_file_of_a_cell_is_left_also_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(cells, "Wire", partial(Wire, memory=0))
    before, during = mapped(), []

    def fail(self, seen, knowledge, rng):
        during.append((mapped(), list((tmp_path / "spill").iterdir())))
        raise ZeroDivisionError

    monkeypatch.setattr(NearestNeighbour, "guess", fail)
    monkeypatch.setattr(cells, "projections", lambda seen, labels: 1 / 0)
    (record,) = run(tmp_path / "records", SAP())
    assert record.status == "failed"
    assert during == [(before + 1, [])]
    assert mapped() == before


def test_a_full_disk_fails_the_cell_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "Wire", partial(Wire, memory=0))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    plan = make(SAP(), limit=700, record={"examples": 700})
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        record = cells.run_cell(context_of(plan, plan.cells[0]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert record.status == "failed"
    assert "TMPDIR" in record.reason
    assert "record.examples" in record.reason


def test_a_missing_temporary_folder_is_named_by_its_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(LeakboardError, match="TMPDIR"):
        recorded(0)


def test_recording_and_reading_take_no_more_memory_than_the_budget(tiny):
    """40 MB of vectors pass within 2 MiB that stay and blocks of 1 MiB."""
    examples, tokens, width, batch = 2000, 13, 384, 20
    lengths = torch.full((batch,), tokens)
    vectors = torch.zeros(batch * tokens, width)
    tracemalloc.start()
    wire = Wire(frozenset({SENT}), {"train": np.arange(examples)}, memory=2**21)
    for i, rows in enumerate(torch.split(torch.arange(examples), batch)):
        wire.send(SENT, Ragged(vectors.fill_(float(i)), lengths), rows)
    seen, total = wire.transcript(), 0.0
    for block in seen.blocks(SENT, size=2**20):
        total += float(block.values[:, 0].sum())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(m.values.nbytes for m in seen.messages) == examples * tokens * width * 4
    assert total == sum(range(examples // batch)) * batch * tokens
    assert peak < 2**21 + 6 * 2**20
