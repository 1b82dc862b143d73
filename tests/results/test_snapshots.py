"""Snapshots and numbered versions of records: which data a number is from."""

from __future__ import annotations

import json
import re
from datetime import date

import pytest
from boards import seeds

import leakboard as lb
from leakboard.bench.records import store, versions
from leakboard.bench.records.parquet import pack, packed_print
from leakboard.bench.records.store import Store
from leakboard.bench.records.versions import data_version, folder_print
from leakboard.bench.submissions.collection import collect
from leakboard.leaderboards.results import sources
from leakboard.leaderboards.results.sources import enter

NONE, SAP = seeds("none", [0.9, 0.91], [0.9, 0.9]), seeds("sap", [0.8, 0.81], [0.5, 0.5])


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose published records are two folders, and no version yet."""
    for name, records in (("one", NONE), ("two", SAP)):
        for record in records:
            Store(tmp_path / "published" / name).write(record)
    (tmp_path / "versions.json").write_text("[]")
    monkeypatch.setattr(versions, "VERSIONS", tmp_path / "versions.json")
    monkeypatch.setattr(sources, "CHECKOUT", tmp_path / "published")
    return tmp_path / "published"


def test_published_records_know_their_version_and_what_changed_since(checkout):
    assert lb.published().version is None
    enter(date(2026, 1, 2))
    assert str(lb.published().version) == "data version 1 of 2026-01-02"
    assert "data version 1 of 2026-01-02>" in repr(lb.published())
    Store(checkout / "two").path(SAP[0].key).unlink()
    assert str(lb.published().version) == "data version 1 of 2026-01-02, with later changes in two"
    assert str(lb.published("one").version) == "data version 1 of 2026-01-02"
    enter(date(2026, 3, 4))
    assert str(lb.published().version) == "data version 2 of 2026-03-04"
    assert str(lb.published("one").version) == "data version 2 of 2026-03-04"


def test_a_version_without_a_change_is_none(checkout):
    enter(date(2026, 1, 2))
    with pytest.raises(lb.LeakboardError, match="nothing has changed since data version 1"):
        enter(date(2026, 1, 3))


def test_the_same_records_read_by_other_rules_are_another_version(checkout, monkeypatch):
    monkeypatch.setattr(versions, "RULES", 1)
    enter(date(2026, 1, 2))
    known = json.loads(versions.VERSIONS.read_text("utf-8"))
    del known[0]["rules"]  # entered before there were others
    versions.VERSIONS.write_text(json.dumps(known))
    with pytest.raises(lb.LeakboardError, match="nothing has changed"):
        enter(date(2026, 1, 3))
    monkeypatch.undo()
    monkeypatch.setattr(versions, "VERSIONS", checkout.parent / "versions.json")
    monkeypatch.setattr(sources, "CHECKOUT", checkout)
    enter(date(2026, 3, 4))
    assert (lb.published().version.number, lb.published().version.rules) == (2, versions.RULES)


def test_diff_says_in_a_line_by_which_rules_the_old_version_was_published(
    checkout, tmp_path, monkeypatch, leakboard
):
    with monkeypatch.context() as earlier:
        earlier.setattr(versions, "RULES", 1)
        enter(date(2026, 1, 2))
    before = lb.snapshot(tmp_path / "before.parquet")
    Store(checkout / "two").path(SAP[0].key).unlink()
    enter(date(2026, 3, 4))
    line = (
        "data version 1 was published by other rules (success of the strongest attack against a perfect one); "
        "both sides are read here by those of today (leakage against the undefended twin, cross-fitted)"
    )
    assert lb.diff(before).note == line
    assert lb.diff(lb.snapshot(tmp_path / "after.parquet")).note == ""
    assert lb.diff(lb.published("one"), checkout / "two").note == ""
    code, out, _ = leakboard("diff", before)
    assert code == 0
    assert " ".join(out.split()).startswith(line)


def test_every_number_of_rules_has_a_sentence():
    known = json.loads(versions.VERSIONS.read_text("utf-8"))
    assert list(versions.RULE_SENTENCES) == list(range(1, versions.RULES + 1))
    assert {one["rules"] for one in known} <= set(versions.RULE_SENTENCES)


def test_a_snapshot_of_an_earlier_release_says_which_it_is(checkout, tmp_path):
    enter(date(2026, 1, 2))
    before = lb.snapshot(tmp_path / "before.parquet")
    Store(checkout / "two").path(SAP[0].key).unlink()
    enter(date(2026, 3, 4))
    found = lb.load(before)
    assert str(found.version) == "data version 1 of 2026-01-02"
    assert {record.key for record in found} == {record.key for record in [*NONE, *SAP]}
    changes = lb.diff(before)
    assert len(changes) > 0
    assert {one.why[0] for one in changes} == {"seeds: 0, 1 → 1"}


def test_the_version_is_that_of_the_folders_in_a_wheel_as_in_a_checkout(checkout, tmp_path):
    pack([checkout / "one"], tmp_path / "packed.parquet")
    assert packed_print(tmp_path / "packed.parquet", "one") == folder_print(checkout / "one")


def test_records_of_a_data_version_are_not_hashed_again_and_changed_ones_are(checkout, monkeypatch):
    enter(date(2026, 1, 2))
    with monkeypatch.context() as unhashed:
        unhashed.setattr(store, "digest", None)
        assert len(lb.published("two")) == len(SAP)
    path = Store(checkout / "two").path(SAP[0].key)
    path.write_text(path.read_text("utf-8").replace('"status": "ok"', '"status": "failed"', 1))
    found = lb.published("two")
    assert len(found) == len(SAP) - 1
    assert "does not match its checksum" in found.problems[0]


def test_other_records_are_of_no_version(checkout):
    enter(date(2026, 1, 2))
    assert data_version({"one": "0" * 64}) is None


def test_the_foot_of_a_site_has_the_version_of_its_records(checkout):
    enter(date(2026, 1, 2))
    assert collect([checkout / "one"]).version == "data version 1 of 2026-01-02"
    Store(checkout / "two").path(SAP[0].key).unlink()
    assert collect(sorted(checkout.iterdir())).version.endswith("with later changes in two")


def test_the_versions_that_are_shipped_are_numbered_and_dated_in_order():
    known = json.loads(versions.VERSIONS.read_text("utf-8"))
    assert [one["number"] for one in known] == list(range(1, len(known) + 1))
    days = [date.fromisoformat(one["day"]) for one in known]
    assert days == sorted(days)
    assert all(
        re.fullmatch(r"[0-9a-f]{64}", own) for one in known for own in one["folders"].values()
    )


def test_a_folder_of_folders_is_loaded_as_all_of_them(checkout):
    assert lb.load(checkout).records == lb.load(checkout / "one", checkout / "two").records


MISTAKES = {
    "another suffix": (("before.zip",), "a snapshot is one .parquet file"),
    "no records": (("before.parquet", "empty"), "holds no records"),
    "no folder for it": (("no/before.parquet",), "cannot be written"),
    "two of one name": (("before.parquet", "published/one", "published/one"), "two folders are"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_snapshot_that_cannot_be_made_is_told(checkout, name):
    (file, *given), told = MISTAKES[name]
    place = checkout.parent
    (place / "empty").mkdir()
    with pytest.raises(lb.LeakboardError, match=re.escape(told)):
        lb.snapshot(place / file, *(place / one for one in given))
    assert not (place / file).exists()


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more"])
def test_what_is_no_snapshot_is_told(tmp_path, content):
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(lb.LeakboardError, match="expected a snapshot"):
        lb.load(tmp_path / "bad.parquet")


def test_another_table_is_no_snapshot(tmp_path, checkout):
    lb.load(checkout).export(tmp_path / "table.parquet")
    with pytest.raises(lb.LeakboardError, match="a table with columns other than folder"):
        lb.load(tmp_path / "table.parquet")


def test_the_commands_write_number_and_compare_snapshots(checkout, tmp_path, leakboard):
    file = tmp_path / "before.parquet"
    code, out, _ = leakboard("snapshot", file, "--enter")
    assert (code, "4 records in" in out, "data version 1 of 20" in out) == (0, True, True)
    Store(checkout / "two").path(SAP[0].key).unlink()
    code, out, _ = leakboard("diff", file)
    assert code == 0
    assert "seeds: 0, 1 → 1" in out
    code, out, _ = leakboard("diff", file, checkout, "--clear", "--format", "csv")
    assert (code, len(out.splitlines())) == (0, 1)
    code, _, err = leakboard("snapshot", file, checkout, "--enter")
    assert (code, "leave out the sources" in err) == (2, True)
    code, _, err = leakboard("diff", file, "--format", "xml")
    assert (code, "expected table or csv or json" in err) == (2, True)
