"""`leakboard submit` and `leakboard verify`."""

from __future__ import annotations

import json

import pytest
from submitted import RECORDS, raw

from leakboard.bench.records.store import Store


@pytest.fixture
def leakboard(leakboard, monkeypatch, tmp_path):
    """The command, in a folder that holds the records of a suite."""
    monkeypatch.chdir(tmp_path)
    for record in RECORDS:
        Store(tmp_path / "mine").write(record)
    return leakboard


def test_from_records_to_a_published_folder_and_back(leakboard, tmp_path):
    code, out, err = leakboard(
        "submit", "mine", "--method", "My noise", "--link", "https://a.org/p"
    )
    assert code == 0, out + err
    words = ("verify", "my-noise.zip", "--rerun", "none", "--accept-without-rerun", "--accept")
    code, out, err = leakboard(*words)
    assert code == 0, out + err
    assert "accepted, not reproduced: none, sap" in out
    place = tmp_path / "results/published/my-noise"
    assert {p.stem for p in place.iterdir()} == {*raw(RECORDS), "submission"}
    store = Store(place)
    assert len(store.read_all()) == 4
    assert store.problems == []
    told = json.loads((place / "submission.json").read_text())
    assert told["link"] == "https://a.org/p"
    assert told["verified"]["repeated"] == []
    assert not told["verified"]["defended"]
    assert all(record.provenance.not_reproduced for record in store.read_all())
    assert leakboard("verify", place, *words[2:5])[0] == 0
    code, _, err = leakboard(*words)
    assert code == 2
    assert "not overwritten" in err
    (place / f"{RECORDS[0].key}.json").unlink()
    assert leakboard("verify", place, *words[2:5])[0] == 1


def test_without_another_run_nothing_is_accepted_unless_one_says_so(leakboard, tmp_path):
    leakboard("submit", "mine", "--method", "My noise")
    code, out, _ = leakboard("verify", "my-noise.zip", "--rerun", "none", "--accept")
    assert code == 1
    assert "not accepted: no check failed, but no cell of none, sap was reproduced" in out
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("source", ["~nouser/a.zip", "a" * 5000, "a\0b", "gone.zip", "ring"])
def test_names_that_are_no_files_are_bad_input(leakboard, tmp_path, source):
    (tmp_path / "gone.zip").symlink_to("nowhere")
    (tmp_path / "ring").symlink_to("ring")
    code, _, err = leakboard("verify", source)
    assert code == 2
    assert "Error" in err


def test_verify_ends_with_one_on_a_refusal_and_two_on_bad_input(leakboard, tmp_path):
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    code, out, _ = leakboard("verify", "bad.zip", "--accept")
    assert code == 1
    assert "is not a zip file" in out
    assert not (tmp_path / "results").exists()
    assert leakboard("verify", "absent.zip")[0] == 2
    assert leakboard("verify", "bad.zip", "--rerun", "many")[0] == 2


def test_submit_writes_nothing_that_verify_would_refuse(leakboard, tmp_path):
    Store(tmp_path / "mine").path(RECORDS[0].key).unlink()
    code, out, err = leakboard("submit", "mine")
    assert code == 2
    assert "lack seed 0" in out
    assert "was not written" in err
    assert not (tmp_path / "mine.zip").exists()


def test_submit_without_records_says_what_to_run(leakboard):
    code, _, err = leakboard("submit", "smoke")
    assert code == 2
    assert "Run the suite first: leakboard run smoke" in err
