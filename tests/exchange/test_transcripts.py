"""Transcripts as folders: written, read, damaged."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from cells import fine_tuned
from safetensors.numpy import load_file, save_file

from leakboard.bench.conformance.trial import same_messages
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.exchange.manifest import FORMAT, MANIFEST, Missing, PublicModel
from leakboard.bench.exchange.transcripts import has_transcript, read_transcript, write_transcript
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

VECTORS, SENT = Channel.ACTIVATIONS, Channel.REPRESENTATIONS


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
    monkeypatch.setattr("leakboard.bench.exchange.transcripts.FILE_BYTES", 2**14)
    transcript = replace(sent[name], dropped={Channel.GRADIENTS: 12})
    written = write_transcript(transcript, tmp_path / "a", tiny, 1, 2)
    manifest, back = read_transcript(tmp_path / "a", tiny)
    assert manifest == written
    assert len(manifest.files) > 1
    assert same_messages(transcript.messages, back.messages)
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
    "half a manifest": (lambda f: (f / MANIFEST).write_text('{"format": 1'), "not valid JSON"),
    "a later format": (lambda f: edited(f, format=FORMAT + 1, new=1), "Upgrade leakboard"),
    "a key nobody knows": (lambda f: edited(f, colour="red"), "colour"),
    "a missing file": (lambda f: first_file(f).unlink(), "it does not exist"),
    "a file elsewhere": (lambda f: edited(f, files={"../x": 1}), "it does not exist"),
    "a truncated file": (
        lambda f: first_file(f).write_bytes(first_file(f).read_bytes()[:-9]),
        "truncated or changed",
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
    "short lengths": (
        {"lengths": np.array([2])},
        "lengths must be whole numbers [2], got int64 [1]",
    ),
    "an example of no tokens": ({"lengths": np.array([0, 5])}, "from 1, got 0"),
    "rows of floats": (
        {"rows": torch.rand(2)},
        "rows must be whole numbers [n], got torch.float32",
    ),
    "values of text": ({"values": ["a", "b"]}, "values must be numbers"),
    "negative rows": ({"rows": np.array([-1, 0])}, "from 0"),
    "vectors as tokens": ({"channel": Channel.TOKENS}, "int64 [5]"),
    "vectors as labels": ({"channel": Channel.LABELS, "lengths": None}, "int64 [2]"),
    "labels below the first": (
        {"channel": Channel.LABELS, "lengths": None, "values": np.array([0, -1])},
        "labels count from 0, got -1",
    ),
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
    with pytest.raises(LeakboardError, match="already contains a transcript"):
        write_transcript(sent["p3eft"], folder, tiny, 0, 2)


def test_a_full_disk_leaves_nothing_and_a_later_run_writes_the_transcript(
    sent, tiny, tmp_path, monkeypatch
):
    def full(path, numbered):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("leakboard.bench.exchange.transcripts._save", full)
        with pytest.raises(LeakboardError, match=r"could not be written .No space left"):
            write_transcript(sent["sap"], tmp_path / "in" / "a", tiny, 0, 2)
    assert not list((tmp_path / "in").iterdir())
    assert not has_transcript(tmp_path / "in" / "a")
    write_transcript(sent["sap"], tmp_path / "in" / "a", tiny, 0, 2)
    assert has_transcript(tmp_path / "in" / "a")
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["a"]


@pytest.mark.parametrize("left", ["nothing", "no manifest", "a short file", "a lost file"])
def test_an_unfinished_transcript_is_found_and_replaced(folder, sent, tiny, left):
    messages = folder / "messages-00000.safetensors"
    if left == "a short file":
        messages.write_bytes(messages.read_bytes()[:-1])
    if left in ("nothing", "a lost file"):
        messages.unlink()
    if left in ("nothing", "no manifest"):
        (folder / "manifest.json").unlink()
    assert not has_transcript(folder)
    write_transcript(sent["sap"], folder, tiny, 0, 2)
    assert has_transcript(folder)
    assert same_messages(sent["sap"].messages, read_transcript(folder, tiny)[1].messages)


def test_a_folder_with_files_of_others_is_kept(sent, tiny, tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(LeakboardError, match=r"is not empty .notes\.txt"):
        write_transcript(sent["sap"], tmp_path, tiny, 0, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    "kind",
    [list, torch.tensor, partial(np.array, dtype=np.int16)],
    ids=["list", "tensor", "short integers"],
)
def test_rows_and_lengths_of_any_kind_are_written_as_those_of_numpy(tiny, tmp_path, kind):
    values = torch.ones(5, tiny.width, dtype=torch.bfloat16)
    given = one(rows=kind([1, 0]), lengths=kind([2, 3]), values=values)
    write_transcript(given, tmp_path / "a", tiny, 0, 2)
    (found,) = read_transcript(tmp_path / "a", tiny)[1].messages
    (expected,) = one(
        rows=np.array([1, 0]), lengths=np.array([2, 3]), values=np.ones((5, tiny.width), np.float32)
    ).messages
    assert same_messages([found], [expected])


def test_a_folder_of_the_first_format_is_still_read(sent, folder, tiny):
    path = folder / MANIFEST
    content = json.loads(path.read_text()) | {"format": 1}
    for later in ("labels", "cut_short", "left_out"):
        del content[later]
    path.write_text(json.dumps(content))
    manifest, back = read_transcript(folder, tiny)
    assert (manifest.labels, manifest.cut_short, manifest.left_out) == ((), "", {})
    assert same_messages(sent["sap"].messages, back.messages)


def test_what_is_missing_is_said_in_the_manifest(sent, tiny, tmp_path):
    missing = Missing("Stop: here", {"examples without a token": 3})
    write_transcript(sent["sap"], tmp_path / "a", tiny, 0, ("bad", "good"), missing=missing)
    manifest, _ = read_transcript(tmp_path / "a", tiny)
    assert (manifest.cut_short, manifest.left_out) == (missing.cut_short, missing.left_out)
    assert (manifest.classes, manifest.labels) == (2, ("bad", "good"))


def test_of_a_model_without_a_hash_only_vocabulary_and_width_must_fit(sent, tiny, tmp_path):
    shape = {"vocabulary": len(tiny.embeddings), "width": tiny.width}
    for name, model in {
        "fits": PublicModel("mine", **shape),
        "words": PublicModel("mine", vocabulary=7, width=tiny.width),
        "nothing": PublicModel("mine"),
    }.items():
        write_transcript(sent["sap"], tmp_path / name, model, 0, 2)
    for name in ("fits", "nothing"):
        assert read_transcript(tmp_path / name, tiny)[0].model_hash is None
    with pytest.raises(LeakboardError, match="'mine' of 7 token ids, not with 'tiny-bert'"):
        read_transcript(tmp_path / "words", tiny)
    narrow = one(values=np.zeros((5, 9), np.float32))
    write_transcript(
        narrow, tmp_path / "narrow", PublicModel("mine", None, shape["vocabulary"]), 0, 2
    )
    with pytest.raises(LeakboardError, match="vectors of this model have"):
        read_transcript(tmp_path / "narrow", tiny)
