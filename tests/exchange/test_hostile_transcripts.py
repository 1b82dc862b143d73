"""Transcripts from strangers: what they state is bounded and is what they hold."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_tensors

from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.exchange.manifest import MANIFEST, Missing
from leakboard.bench.exchange.transcripts import read_transcript, write_transcript

WHERE = {"sender": "customer", "recipient": "vendor", "part": 0}


@pytest.fixture(scope="module")
def sent(tmp_path_factory, tiny):
    """A small transcript: vectors of five examples, and their activations in two rounds."""
    lengths = np.array([2, 3, 1, 4, 2])
    vectors = np.ones((12, tiny.width), np.float32)
    messages = [
        Message(Channel.REPRESENTATIONS, "train", 0, **WHERE, rows=np.arange(5), values=vectors, lengths=lengths),
        *(
            Message(Channel.ACTIVATIONS, "train", i, **WHERE, rows=np.arange(5), values=np.ones((5, 8), np.float32))
            for i in range(2)
        ),
    ]  # fmt: skip
    folder = tmp_path_factory.mktemp("sent") / "a"
    settings = TrainSettings.model_validate({})
    write_transcript(Transcript(tuple(messages)), folder, tiny, 0, 2, settings)
    return folder


@pytest.fixture
def folder(sent, tmp_path):
    return shutil.copytree(sent, tmp_path / "a")


def failure(folder, tiny):
    with pytest.raises(LeakboardError) as caught:
        read_transcript(folder, tiny)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 1000
    return message


def told(folder, way, value):
    """Puts a value into the manifest."""
    content = json.loads((folder / MANIFEST).read_text())
    at = content
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = value
    (folder / MANIFEST).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("way", "value", "expected"),
    [
        (["classes"], 10**12, "classes: Input should be less than or equal to 10000"),
        (["classes"], 1, "classes"),
        (["splits", "train"], 10**9, "splits: says 1000000000 of train, and the messages are about 5"),
        (["splits"], {}, "splits: says none, and the messages are about 5 of train"),
        (["splits"], {"train": 5, "dev": 1}, "splits: says 5 of train, 1 of dev, and"),
        (["splits", "train"], -1, "splits.train"),
        (["messages", 1, "round"], -1, "messages.1.round"),
        (["messages", 1, "part"], -1, "messages.1.part"),
        (["messages", 1, "step"], -2, "messages.1.step"),
        (["messages", 1, "moment"], -1, "messages.1.moment"),
        (["messages", 1, "round"], 10**30, "more than 64 bits"),
        (["messages", 0, "split"], "a\u202eb", "U+202E"),
        (["messages", 0, "recipient"], "x" * 300, "messages.0.recipient"),
        (["model"], "\x1b[2J", "U+001B"),
        (["labels"], ["a"] * 20_000, "labels"),
        (["cut"], float("nan"), "not finite"),
        (["train", "max_length"], 10**30, "more than 64 bits"),
        (["train", "learning_rate"], float("inf"), "not finite"),
        (["vocabulary"], 10**12, "vocabulary"),
        (["dropped"], {"tokens": -1}, "dropped.tokens"),
        (["messages", 0, "shape"], [[[[[[[[[[[[[1]]]]]]]]]]]]], "nested"),
    ],
)  # fmt: skip
def test_a_number_or_name_that_cannot_be_is_refused(folder, tiny, way, value, expected):
    told(folder, way, value)
    assert expected in failure(folder, tiny)


@pytest.mark.parametrize(
    "raw", ["[" * 200_000, '{"format": ' + "9" * 6000 + "}", "\0", "[]", "7", ""]
)
def test_a_manifest_that_is_none_is_refused(folder, tiny, raw):
    (folder / MANIFEST).write_text(raw)
    assert str(folder / MANIFEST) in failure(folder, tiny)


def test_a_manifest_without_end_is_not_read(folder, tiny):
    with (folder / MANIFEST).open("wb") as file:
        file.truncate(2**40)
    assert "is larger than 128 MiB" in failure(folder, tiny)


def resaved(folder, save, **tensors):
    (path,) = folder.glob("*.safetensors")
    save(load_file(path) | tensors if save is save_file else tensors, path)
    told(folder, ["files", path.name], path.stat().st_size)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["0.values", "2.values"])
def test_values_that_are_not_finite_are_refused_with_their_message(folder, tiny, number, name):
    (path,) = folder.glob("*.safetensors")
    values = load_file(path)[name].copy()
    values[-1, -1] = number
    resaved(folder, save_file, **{name: values})
    assert f"{path}: message {name[0]}: values must be finite" in failure(folder, tiny)


def test_lengths_whose_sum_overflows_to_the_right_number_are_refused(folder, tiny):
    lengths = np.array([2**62, 2**62, 2**62, 2**62, 12])
    with np.errstate(over="ignore"):
        assert lengths.sum() == 12
    resaved(folder, save_file, **{"0.lengths": lengths})
    assert "lengths must be at most the 12 values, got 4611686018427387904" in failure(folder, tiny)


def test_numbers_that_numpy_does_not_have_are_refused(folder, tiny):
    (path,) = folder.glob("*.safetensors")
    tensors = {name: torch.from_numpy(values) for name, values in load_file(path).items()}
    tensors["1.values"] = tensors["1.values"].bfloat16()
    resaved(folder, save_tensors, **tensors)
    assert "message 1: " in failure(folder, tiny)


def test_vectors_of_no_numbers_are_refused(folder, tiny):
    resaved(folder, save_file, **{"1.values": np.zeros((5, 0), np.float32)})
    told(folder, ["messages", 1, "shape"], [5, 0])
    assert "values must be float32 [5, d], got float32 [5, 0]" in failure(folder, tiny)


def test_folders_that_are_none_are_told(tmp_path, tiny):
    (tmp_path / "gone").symlink_to("nowhere")
    for name, expected in (
        ("~nouser/x", "not a user of this machine"), ("x" * 5000, "too long"), (str(tmp_path / "gone"), "is a link"),
    ):  # fmt: skip
        with pytest.raises(LeakboardError, match=expected):
            read_transcript(type(tmp_path)(name), tiny)


def test_an_error_that_cut_a_recording_short_can_be_read_back(tmp_path, tiny):
    message = Message(
        Channel.ACTIVATIONS,
        "train",
        0,
        **WHERE,
        rows=np.arange(2),
        values=np.ones((2, 8), np.float32),
    )
    why = Missing(cut_short="ValueError: \x1b[31mred\x1b[0m\nand\x00more " + "x" * 20_000)
    write_transcript(Transcript((message,)), tmp_path / "a", tiny, 0, 2, missing=why)
    told = read_transcript(tmp_path / "a", tiny)[0].cut_short
    assert told.startswith("ValueError: \\u001b[31mred")
    assert len(told) < 2100
