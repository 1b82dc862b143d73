"""Tables from strangers: bounded while they are read, and what is odd in them is named or kept."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tracemalloc
import zlib

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks import content, readers
from leakboard.bench.tasks.abcd import abcd
from leakboard.bench.tasks.annotated import load_file
from leakboard.bench.tasks.hub import to_table
from leakboard.bench.tasks.loading import data_folder, load_task
from leakboard.bench.tasks.readers import read_table
from leakboard.bench.tasks.user_task import UserTask


def failure(path):
    with pytest.raises(LeakboardError) as caught:
        read_table(path)
    return str(caught.value)


def bomb(path, unit, size):
    """A packed file that holds the unit again and again, made without holding it."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = unit * (2**20 // len(unit))
    with path.open("wb") as file:
        file.write(squeeze.compress(b"text\tlabel\n"))
        for _ in range(size // len(block)):
            file.write(squeeze.compress(block))
        file.write(squeeze.flush())


# Size


@pytest.mark.parametrize("unit", [b"0" * 64, b"a\tb\n", b"\t" * 64])
def test_a_packed_bomb_is_stopped_while_it_is_unpacked(tmp_path, unit):
    path = tmp_path / "train.tsv.gz"
    bomb(path, unit, 2**29)
    assert path.stat().st_size < 2**20
    script = (
        "import resource, sys\n"
        "from leakboard.bench.tasks.readers import read_table\n"
        "from pathlib import Path\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    read_table(Path(sys.argv[1]))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    told, grown = done.stdout.splitlines()
    assert told.startswith(f"LeakboardError {path}: ")
    assert "held in memory" in told or "at most" in told or "fields" in told or "rows" in told
    assert int(grown) < 300 * 1024  # KiB


HOSTILE = {
    "a line without end.csv": (b"text,label\n", b"a" * 2**18, b"\n", "larger than|longer than"),
    "a line without end.jsonl": (b'{"text": "', b"a" * 2**18, b'"}\n', "larger than|longer than"),
    "a field over many lines.csv": (b'text,label\n"', b"some words\n" * 2**14, b'",1\n', "limit"),
    "rows of two letters.csv": (b"text,label\n", b"aa,bb\n" * 2**15, b"", "memory"),
    "lists in lists.jsonl": (b'{"text":', b"[" * 2**18, b"", "longer than"),
    "lists of nothing.json": (b"[", b"[]," * 2**16, b"[]]", "memory|longer than"),
    "one emoji per text.txt": (
        b"",
        ("\U0001f600" + "a" * 500 + "\n").encode() * 2**10,
        b"",
        "memory",
    ),
}


@pytest.mark.parametrize("size", ["above", "below"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch, name, size):
    """With a 64th of the limits, a 64th of 1 GiB is enough."""
    start, piece, end, told = HOSTILE[name]
    for limit in ("MOST_BYTES", "MOST_HELD", "LONGEST_LINE"):
        monkeypatch.setattr(content, limit, getattr(content, limit) // 64)
    monkeypatch.setattr(readers, "LONGEST_FIELD", 2**18)
    path = tmp_path / name
    path.write_bytes(start + piece * (20 if size == "above" else 14) + end)
    tracemalloc.start()
    try:
        said = failure(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert re.search(told if size == "below" else "larger than|longer than|memory|limit", said), (
        said
    )
    assert name in said
    assert peak < 2**30 // 64


def test_a_parquet_file_of_many_small_values_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MOST_HELD", 2**22)
    lists = pa.array([["ab"] * 1000] * 200)
    parquet.write_table(pa.table({"text": ["x"] * 200, "label": lists}), tmp_path / "train.parquet")
    assert "takes more than 4,194,304 bytes of memory" in failure(tmp_path / "train.parquet")


def test_blank_lines_are_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MOST_ROWS", 1000)
    for kind, first in {"csv": "text,label", "txt": "a text", "jsonl": '{"text": "a"}'}.items():
        (tmp_path / f"train.{kind}").write_text(first + "\n" * 2500)
        assert "lines; leave blank lines out" in failure(tmp_path / f"train.{kind}")


def test_texts_that_shrink_well_are_read(tmp_path):
    path = tmp_path / "train.tsv.gz"
    rows = "".join(f"the same words over and over again\t{i % 2}\n" for i in range(50_000))
    path.write_bytes(gzip.compress(f"text\tlabel\n{rows}".encode()))
    assert len(rows) > 30 * path.stat().st_size
    assert len(read_table(path)) == 50_000


def test_a_column_that_stands_once_and_fills_a_million_rows_is_refused(tmp_path):
    path = tmp_path / "train.parquet"
    index = pa.array([0] * 100_000, pa.int32())
    column = pa.DictionaryArray.from_arrays(index, pa.array(["x" * 100_000]))
    parquet.write_table(pa.table({"text": column}), path)
    assert path.stat().st_size < 2**20
    assert "unpacks from" in failure(path)


@pytest.mark.parametrize("kind", ["tsv", "txt", "parquet"])
@pytest.mark.parametrize("what", ["rows", "fields"])
def test_more_than_a_machine_holds_is_refused(tmp_path, monkeypatch, what, kind):
    monkeypatch.setattr(content, f"MOST_{what.upper()}", 9_999)
    path = tmp_path / f"train.{kind}"
    if kind == "parquet":
        pd.DataFrame({"text": ["a"] * 10_000}).to_parquet(path)
    else:
        path.write_text("a\n" * 10_001)
    assert f"has more than 9,999 {what}; leave some out" in failure(path)


@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_more_than_a_thousand_columns_are_refused(tmp_path, kind):
    path = tmp_path / f"train.{kind}"
    names = [f"c{i}" for i in range(1001)]
    if kind == "parquet":
        pd.DataFrame({name: ["a"] for name in names}).to_parquet(path)
    else:
        path.write_text("\t".join(names) + "\n" + "\t".join(names) + "\n")
    assert "has more than 1,000 columns" in failure(path)


def test_a_file_that_is_not_packed_is_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MOST_BYTES", 100)
    (tmp_path / "train.tsv").write_text("text\n" + "a" * 100)
    assert "is larger than 100 bytes; all rows are held in memory" in failure(
        tmp_path / "train.tsv"
    )


@pytest.mark.parametrize("size", [0, 100, 10**6])
def test_a_damaged_parquet_file_is_an_error_of_ours(tmp_path, size):
    pd.DataFrame({"text": ["a"] * 1000}).to_parquet(tmp_path / "good.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "bad.parquet").write_bytes(good[:size] + b"PAR1" * 3)
    assert "not a readable Parquet file" in failure(tmp_path / "bad.parquet")


# Characters


@pytest.mark.parametrize("suffix", ["tsv", "csv", "txt"])
def test_a_nul_is_refused_with_its_line(tmp_path, suffix):
    path = tmp_path / f"train.{suffix}"
    path.write_bytes(b"text\ngood\nba\0d\n")
    assert failure(path) == (
        f"{path}, line 3: contains a NUL character; save the file as UTF-8 text"
    )


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf16_is_read_by_its_mark_and_refused_without(tmp_path, order):
    path = tmp_path / "train.tsv"
    path.write_bytes("\ufefftext\näöü 漢字 😀\n".encode(order))
    assert read_table(path).column("text") == ["äöü 漢字 😀"]
    path.write_bytes("text\nabc\n".encode(order))
    assert "contains a NUL character; save the file as UTF-8 text" in failure(path)
    path.write_bytes("\ufefftext\nä\n".encode(order)[:-1])
    assert "not UTF-16" in failure(path)


def test_other_control_characters_stay_for_the_tokeniser(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes("text\na\x07b\x1b[2Jc\x85d\u200be\n".encode())
    assert read_table(path).column("text") == ["a\x07b\x1b[2Jc\x85d\u200be"]


@pytest.mark.parametrize("name", ["a\x1b[2J", "\u202eb", "a\x07"])
@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_a_column_whose_name_does_not_show_is_refused(tmp_path, name, kind):
    path = tmp_path / f"train.{kind}"
    if kind == "tsv":
        path.write_text(f"text\t{name}\na\tb\n")
    else:
        pd.DataFrame({"text": ["a"], name: ["b"]}).to_parquet(path)
    message = failure(path)
    assert "holds the invisible character U+" in message
    assert message.isprintable()


def test_a_label_among_thousands_is_not_compared_with_each(tmp_path):
    for split, first in (("train", 0), ("dev", 50_000)):
        rows = "".join(
            f"sentence {i}\tlabel number {i // 2}\n" for i in range(first, first + 50_000)
        )
        (tmp_path / f"{split}.tsv").write_text(f"text\tlabel\n{rows}")
    with pytest.raises(LeakboardError, match=r"does not occur in train\. 25,000 are known\."):
        load_task(UserTask(name="mine", path=tmp_path))


# Paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~nouser/x.tsv", "'~nouser' is not a user of this machine"),
        ("x" * 5000, "File name too long"),
        ("a\0b", "not a valid path"),
        ("gone.tsv", "is a link to nowhere, which does not exist"),
        ("ring.tsv", "cannot be reached"),
    ],
)
def test_paths_that_are_none_are_told_wherever_they_come_from(
    tmp_path, monkeypatch, path, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone.tsv").symlink_to("nowhere")
    (tmp_path / "ring.tsv").symlink_to("ring.tsv")
    for call in (
        lambda: load_task(UserTask(name="mine", path=path)),
        lambda: load_task(UserTask(name="mine", path={"train": path, "dev": path})),
        lambda: data_folder(type(tmp_path)(path)),
        lambda: load_file(type(tmp_path)(path)),
    ):
        with pytest.raises(LeakboardError, match=expected):
            call()


def test_a_split_that_is_a_link_to_nothing_is_named(tmp_path):
    (tmp_path / "train.tsv").symlink_to("nowhere.tsv")
    with pytest.raises(
        LeakboardError, match=r"train\.tsv: is a link to nowhere\.tsv, which does not"
    ):
        load_task(UserTask(name="mine", path=tmp_path))


def test_a_pipe_in_place_of_a_table_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "train.tsv")
    assert "no such file" in failure(tmp_path / "train.tsv")


# JSON inside


@pytest.mark.parametrize("field", ["[" * 100_000, "9" * 6000, '[{"start": 1e999}]', '{"a": 1}'])
def test_marks_that_are_none_are_refused_with_their_row(tmp_path, field):
    path = tmp_path / "file.tsv"
    path.write_text(f"text\tspans\nhello\t{field}\n")
    with pytest.raises(LeakboardError, match=r"data row 1: column 'spans' must be a JSON list"):
        load_file(path)


@pytest.mark.parametrize("record", ["[" * 100_000, "9" * 6000, "nope", "[]"])
def test_records_of_the_hub_that_are_none_are_refused(record):
    from types import SimpleNamespace

    class Data(dict):
        column_names = ("profile",)

    hub = SimpleNamespace(columns={"label": "profile.income"}, labels=())
    with pytest.raises(LeakboardError, match=r"the hub: (a record is not JSON|no 'income' in the)"):
        to_table(Data(profile=[record]), hub, "the hub")


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"train": ' + b"9" * 6000 + b"}", b"\0", b""])
def test_a_file_of_abcd_that_is_none_is_refused(tmp_path, raw):
    (tmp_path / "abcd_v1.1.json").write_bytes(raw)
    with pytest.raises(LeakboardError, match=r"abcd_v1\.1\.json"):
        abcd(tmp_path)


def test_a_bomb_in_place_of_abcd_is_stopped(tmp_path):
    bomb(tmp_path / "abcd_v1.1.json.gz", b" " * 64, 2**28)
    with pytest.raises(LeakboardError, match="unpacks from"):
        abcd(tmp_path)
