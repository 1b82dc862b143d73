"""The records that a site is made of."""

from __future__ import annotations

import json

import pytest
from records import leak, record
from site_records import kept

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.submissions.collection import collect
from leakboard.leaderboards.site.build import publish


def test_no_records_and_damaged_records_are_errors(tmp_path):
    with pytest.raises(LeakboardError, match="nothing to publish"):
        publish([], tmp_path / "site")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LeakboardError, match="empty holds no records"):
        publish([tmp_path / "empty"], tmp_path / "site")
    folder = kept(tmp_path / "some", [record()])
    (folder / "0123456789abcdef.json").write_text("{")
    with pytest.raises(LeakboardError, match=r"damaged records.*\n.*0123456789abcdef"):
        publish([folder], tmp_path / "site")
    (folder / "0123456789abcdef.json").write_text('{"hello": 1}')
    with pytest.raises(LeakboardError, match=r"or other files; .*\n.*not a record"):
        publish([folder], tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_record_of_a_later_schema_is_an_error_that_names_it(tmp_path):
    folder = kept(tmp_path / "later", [record()])
    path = next(folder.glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))
    with pytest.raises(LeakboardError, match=f"{path.name}: written with record schema 99"):
        publish([folder], tmp_path / "site")


def test_two_records_of_one_key_that_differ_are_an_error_that_names_both(tmp_path):
    a = kept(tmp_path / "a", [record(utility=0.9)])
    b = kept(tmp_path / "b", [record(utility=0.8)])
    with pytest.raises(LeakboardError, match=r"a/\w+\.json and .*b/\w+\.json .*differ in utility"):
        publish([a, b], tmp_path / "site")
    kept(tmp_path / "b", [record(utility=0.9, leaks=[leak(0.7)])])
    with pytest.raises(LeakboardError, match="differ in attack eia-nn"):
        publish([a, b], tmp_path / "site")


def test_the_attacks_of_one_cell_in_two_folders_are_joined(tmp_path):
    a = kept(tmp_path / "a", [record(leaks=[leak(0.5)])])
    b = kept(tmp_path / "b", [record(leaks=[leak(0.5), leak(0.9, "eia-map")])])
    found = collect([a, b])
    ((key, one),) = found.records.items()
    assert [leak.attack.name for leak in one.leaks] == ["eia-nn", "eia-map"]
    assert found.files == {key: f"a/{key}.json"}


def test_a_suite_without_utility_is_noted(tmp_path, other):
    a = kept(tmp_path / "a", [record(utility=None, utility_metric="")])
    publish([a], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "No record of a has a utility" in page


def test_models_that_attackers_train_are_no_results(tmp_path):
    whole = record(seed=1)
    cell = whole.cell.model_copy(update={"shadow": 0, "plant": Plant(audit=4)})
    shadow = whole.model_copy(update={"cell": cell, "key": cell.key})
    assert [*collect([kept(tmp_path / "both", [whole, shadow])]).records] == [whole.key]
    with pytest.raises(LeakboardError, match="all records are of shadow models"):
        collect([kept(tmp_path / "only", [shadow])])


def test_a_file_is_named_inside_the_repository_and_never_by_a_folder_of_the_machine(tmp_path):
    folder = kept(tmp_path / "results" / "published" / "mine", [record()])
    assert [*collect([folder]).files.values()] == [f"results/published/mine/{record().key}.json"]
