"""Transcripts beyond memory, in blocks, and as folders."""

from __future__ import annotations

import gc
import json
import re
import resource
import tracemalloc
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from cells import fine_tuned, leak_of, make, run
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from attacks.aia_mlp import MeanMLP
from attacks.eia_nn import NearestNeighbour
from attacks.logit_gradient import LogitGradient
from attacks.prior import Prior
from bench.backbones.ragged import Ragged
from bench.conformance.trial import alike
from bench.contracts.channels import Channel
from bench.contracts.errors import LeakboardError
from bench.contracts.transcript import Message, Transcript
from bench.exchange.spill import Spill
from bench.exchange.transcripts import FORMAT, MANIFEST, read_transcript, write_transcript
from bench.exchange.wire import Wire
from bench.methods.knowledge import Auxiliary, Knowledge, Labelled
from bench.running import runner
from defenses.p3eft import P3EFT
from defenses.sap import SAP

VECTORS, SENT = Channel.ACTIVATIONS, Channel.REPRESENTATIONS


def recorded(memory, examples=40, budget=2**31):
    """A wire over which vectors of tokens and of examples went, in batches of 8 in two rounds."""
    wire = Wire(frozenset(Channel), {"train": np.arange(examples)}, budget, memory)
    rng = np.random.default_rng(0)
    for r in (0, 1):
        for rows in torch.split(torch.from_numpy(rng.permutation(examples)), 8):
            lengths = torch.from_numpy(rng.integers(1, 6, len(rows)))
            vectors = torch.from_numpy(rng.normal(size=(int(lengths.sum()), 4)))
            wire.send(SENT, Ragged(vectors.float(), lengths), rows, round=r)
            wire.send(VECTORS, torch.from_numpy(rng.normal(size=(len(rows), 3))), rows, round=r)
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
    assert alike(one.messages, other.messages)
    for r in (0, 1):
        assert alike([one.collect(SENT, round=r)], [other.collect(SENT, round=r)])


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
    wire.send(VECTORS, torch.ones(1, 3), torch.tensor([0]), round=9)
    assert alike([before.messages[-1]], [wire.transcript().messages[-2]])
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


def test_a_spilled_cell_has_the_record_of_one_in_memory(tmp_path, monkeypatch):
    defenses = SAP(eta=50), P3EFT()
    attacks = NearestNeighbour(), LogitGradient(), Prior(), MeanMLP()
    one = run(tmp_path / "memory", *defenses, attacks=attacks)
    wires = []

    def small(*args):
        wires.append(Wire(*args, memory=0))
        return wires[-1]

    monkeypatch.setattr(runner, "Wire", small)
    other = run(tmp_path / "disk", *defenses, attacks=attacks)
    assert all(len(w._spilled) == len(w._messages) > 0 for w in wires)
    assert [r.outcome() for r in one] == [r.outcome() for r in other]
    assert leak_of(one[0], "eia-nn").status == "ok"


def test_no_file_of_a_cell_is_left_also_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(runner, "Wire", partial(Wire, memory=0))
    before, during = mapped(), []

    def fail(self, seen, knowledge, rng):
        during.append((mapped(), list((tmp_path / "spill").iterdir())))
        raise ZeroDivisionError

    monkeypatch.setattr(NearestNeighbour, "guess", fail)
    monkeypatch.setattr(runner, "projections", lambda seen, labels: 1 / 0)
    (record,) = run(tmp_path / "records", SAP())
    assert record.status == "failed"
    assert during == [(before + 1, [])]
    assert mapped() == before


def test_a_full_disk_fails_the_cell_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "Wire", partial(Wire, memory=0))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    plan = make(SAP(), limit=700, record={"examples": 700})
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        inputs = runner.Inputs.of(
            plan.cells[0].cell, *plan.tasks.values(), *plan.backbones.values()
        )
        record = runner.run_cell(
            plan.cells[0], inputs, *plan.backbones.values(), [], runner.Silent()
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert record.status == "failed"
    assert "TMPDIR" in record.reason
    assert "record.examples" in record.reason


def test_a_missing_temporary_folder_is_named_by_its_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(LeakboardError, match="TMPDIR"):
        recorded(0)


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
    assert alike(one, other)
    assert max(parts.counts) > 5


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


@pytest.fixture(scope="module")
def sent():
    """The transcripts of a defense that sends vectors at the cut, and of one with moments."""
    return {d.name: fine_tuned(d)[0].wire.transcript() for d in (SAP(eta=50), P3EFT())}


@pytest.fixture
def folder(sent, tiny, tmp_path):
    write_transcript(sent["sap"], tmp_path / "sent", tiny, 0, 2)
    return tmp_path / "sent"


@pytest.mark.parametrize("name", ["sap", "p3eft"])
def test_a_transcript_comes_back_as_it_was_written(sent, tiny, tmp_path, monkeypatch, name):
    monkeypatch.setattr("bench.exchange.transcripts.FILE_BYTES", 2**14)
    transcript = replace(sent[name], dropped={Channel.GRADIENTS: 12})
    written = write_transcript(transcript, tmp_path / "a", tiny, 1, 2)
    manifest, back = read_transcript(tmp_path / "a", tiny)
    assert manifest == written
    assert len(manifest.files) > 1
    assert alike(transcript.messages, back.messages)
    assert back.dropped == transcript.dropped
    assert not any(m.values.flags.writeable for m in back.messages)


def test_reading_leaves_the_values_on_disk(tiny, tmp_path):
    values = np.zeros((1000, 20_000), np.float32)
    message = Message(VECTORS, "train", 0, "customer", "vendor", 0, np.arange(1000), values)
    write_transcript(Transcript((message,)), tmp_path / "big", tiny, 0, 2)
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("needs Linux to see what is in memory")

    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1]) * 1024

    before = resident()
    _, back = read_transcript(tmp_path / "big", tiny)
    assert resident() - before < values.nbytes / 2
    assert back.messages[0].values.sum() == 0


def edited(folder, **changes):
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def first_file(folder):
    return min(folder.glob("*.safetensors"))


def resaved(folder, change):
    """Changes the tensors of the first file, and the manifest's size of it."""
    path = first_file(folder)
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    edited(folder, files={path.name: path.stat().st_size})


def described(folder, i, **changes):
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["messages"][i] |= changes
    edited(folder, messages=manifest["messages"])


DAMAGE = {
    "a folder without manifest": (lambda f: (f / MANIFEST).unlink(), "not a transcript"),
    "half a manifest": (lambda f: (f / MANIFEST).write_text('{"format": 1'), "not whole JSON"),
    "a later format": (lambda f: edited(f, format=FORMAT + 1, new=1), "Upgrade leakboard"),
    "a key nobody knows": (lambda f: edited(f, colour="red"), "colour"),
    "a missing file": (lambda f: first_file(f).unlink(), "it is not there"),
    "a file elsewhere": (lambda f: edited(f, files={"../x": 1}), "it is not there"),
    "a truncated file": (
        lambda f: first_file(f).write_bytes(first_file(f).read_bytes()[:-9]),
        "cut short",
    ),
    "a file that is no safetensors": (
        lambda f: first_file(f).write_bytes(b"x" * first_file(f).stat().st_size),
        "message 0: ",
    ),
    "a missing tensor": (lambda f: resaved(f, lambda t: t.pop("0.rows")), "0.rows"),
    "another shape than it says": (lambda f: described(f, 0, shape=[3, 3]), "the manifest says"),
    "another model": (lambda f: edited(f, model="mine", model_hash="0" * 64), "model 'mine'"),
    "a cut that is too deep": (lambda f: edited(f, cut=99), "cannot be cut at 99"),
    "vectors too narrow": (
        lambda f: (
            resaved(f, lambda t: t.update({"0.values": t["0.values"][:, :5].copy()})),
            described(
                f, 0, shape=[json.loads((f / MANIFEST).read_text())["messages"][0]["shape"][0], 5]
            ),
        ),
        "vectors of this model have",
    ),
    "lengths that do not add up": (
        lambda f: resaved(f, lambda t: t.update({"0.lengths": t["0.lengths"] + 1})),
        "values must be float32",
    ),
    "a row twice": (
        lambda f: resaved(f, lambda t: t.update({"0.rows": t["0.rows"] * 0})),
        "different whole numbers",
    ),
    "a row in the place of another": (
        lambda f: resaved(f, lambda t: t.update({"0.rows": t["0.rows"] + 1000})),
        "as in every other round",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_refused_with_what_is_wrong(folder, tiny, damage):
    harm, message = DAMAGE[damage]
    harm(folder)
    with pytest.raises(LeakboardError, match=re.escape(message)) as error:
        read_transcript(folder, tiny)
    assert str(folder) in str(error.value) or "cut" in damage


def one(**changes):
    """A transcript of one message, with something wrong in it."""
    fields = {"channel": SENT, "rows": np.arange(2), "values": np.zeros((5, 32), np.float32)}
    fields |= {"lengths": np.array([2, 3])} | changes
    where = {"split": "train", "round": 0, "sender": "customer", "recipient": "vendor", "part": 0}
    return Transcript((Message(**where, **fields),))


MALFORMED = {
    "doubles": ({"values": np.zeros((5, 32))}, "float32"),
    "no lengths": ({"lengths": None}, "expected lengths"),
    "short lengths": ({"lengths": np.array([2])}, "lengths must be int64 [2]"),
    "an example of no tokens": ({"lengths": np.array([0, 5])}, "at least 1"),
    "rows of another type": ({"rows": np.arange(2, dtype=np.int32)}, "rows must be int64"),
    "negative rows": ({"rows": np.array([-1, 0])}, "from 0"),
    "vectors as tokens": ({"channel": Channel.TOKENS}, "int64 [5]"),
    "ids beyond the vocabulary": (
        {"channel": Channel.TOKENS, "values": np.full(5, 10**6)},
        "token ids must be from 0",
    ),
}


@pytest.mark.parametrize("mistake", MALFORMED)
def test_what_attacks_could_not_read_is_not_written(tiny, tmp_path, mistake):
    changes, message = MALFORMED[mistake]
    if "values" not in changes:
        changes = changes | {"values": np.zeros((5, tiny.width), np.float32)}
    with pytest.raises(LeakboardError, match=re.escape(message)):
        write_transcript(one(**changes), tmp_path / "a", tiny, 0, 2)
    assert not (tmp_path / "a").exists()


def test_a_folder_with_a_transcript_is_not_overwritten(folder, sent, tiny):
    with pytest.raises(LeakboardError, match="already holds a transcript"):
        write_transcript(sent["p3eft"], folder, tiny, 0, 2)
