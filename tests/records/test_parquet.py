"""Records in one file are the records of their folders."""

from __future__ import annotations

import pytest
from records import leak, record

from leakboard.bench.records.parquet import pack, packed_folders, unpacked
from leakboard.bench.records.store import MANIFEST, Corrupt, Store


@pytest.fixture
def folders(tmp_path):
    """Two folders of records; beside those of one lies who sent them."""
    for name, params in (("one", [{"eta": 75.0}, {"eta": 50.0}]), ("two", [{}])):
        for each in params:
            Store(tmp_path / name).write(record(params=each, leaks=[leak(raw={"hits": [1, 2]})]))
    (tmp_path / "two" / MANIFEST).write_text("{}")
    return [tmp_path / "two", tmp_path / "one"]


def test_what_is_packed_comes_out_whole_and_in_the_order_of_its_store(folders, tmp_path):
    file = tmp_path / "packed.parquet"
    assert pack(folders, file) == 4
    assert packed_folders(file) == ["one", "two"]
    for folder in folders:
        assert unpacked(file, folder.name) == Store(folder).read_all()
    assert unpacked(file, "three") == []


def test_a_record_that_was_changed_is_found_out(folders, tmp_path):
    path = next(folders[1].glob("*.json"))
    path.write_text(path.read_text().replace("0.9", "0.8"))
    pack(folders, tmp_path / "packed.parquet")
    with pytest.raises(Corrupt, match="checksum"):
        unpacked(tmp_path / "packed.parquet", "one")
