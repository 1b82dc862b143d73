"""What changed between two collections of records, and the reasons that are given."""

from __future__ import annotations

import pytest
from boards import seeds

from leakboard.bench.contracts.cell import MethodSpec
from leakboard.leaderboards.tables.changes import changes
from leakboard.leaderboards.tables.record_set import RecordSet

NONE = seeds("none", [0.9, 0.91, 0.92], [0.9, 0.9, 0.9])
SAP = seeds("sap", [0.8, 0.81, 0.82], [0.5, 0.51, 0.52], params={"eta": 75.0})


def changed(old, new):
    return changes(RecordSet.of(old, "old"), RecordSet.of(new, "new"))


def rekeyed(record, **cell):
    """The same record of a cell of which something else decides."""
    own = record.cell.model_copy(update=cell)
    return record.model_copy(update={"cell": own, "key": own.key})


def newer(record, **fields):
    spec = {"name": record.cell.defense.name, "params": record.cell.defense.params, "version": 2}
    return rekeyed(record, defense=MethodSpec(**{**spec, **fields}))


def shifted(record, success):
    """The same record whose attack found something else."""
    (leak,) = record.leaks
    ends = {"value": success, "low": success - 0.01, "high": success + 0.01}
    found = leak.success.model_copy(update=ends)
    return record.model_copy(update={"leaks": [leak.model_copy(update={"success": found})]})


def test_equal_records_have_no_changes_whatever_their_order():
    found = changed([*NONE, *SAP], [*SAP, *NONE])
    assert (len(found), found.same) == (0, 2)


def test_settings_come_and_go_by_name():
    found = changed(NONE, SAP)
    assert [(one.kind, one.setting, one.what) for one in found] == [
        ("new", "SAP, η = 75", "setting"),
        ("gone", "No protection", "setting"),
    ]


def test_another_version_of_a_method_is_the_reason_and_the_difference_is_paired_by_seed():
    # Between seeds success moves by 0.01; what the new version adds is 0.100, 0.101, 0.102.
    new = [newer(shifted(one, 0.6 + 0.011 * n)) for n, one in enumerate(SAP)]
    (change,) = changed(SAP, new)
    assert (change.kind, change.what, change.why) == (
        "changed",
        "inputs",
        ("method: sap version 1 → 2",),
    )
    assert change.difference.value == pytest.approx(0.101)
    assert change.difference.high - change.difference.low == pytest.approx(0.005, abs=1e-3)
    assert change.clear


def test_unlike_seeds_are_compared_on_the_common_ones_and_the_row_says_so():
    # On both common seeds 0.2 is added; the third seed alone moves the mean by more.
    more = [shifted(one, value) for one, value in zip(SAP, (0.7, 0.71, 0.99), strict=True)]
    (utility, inversion) = changed(SAP[:2], more)
    limit = ("seeds: 0, 1 → 0, 1, 2", "difference on common seeds only: 0, 1")
    assert utility.why == inversion.why == limit
    assert (utility.new.value, utility.difference.ends) == (pytest.approx(0.81), (0, 0, 0))
    assert inversion.difference.value == pytest.approx(0.2)
    assert inversion.clear
    assert not utility.clear
    # Another seed that leaves all as it was is no change.
    same = [shifted(one, 0.5).model_copy(update={"utility": SAP[0].utility}) for one in SAP]
    assert len(changed(same[:2], same)) == 0
    # One common seed has the interval of its cells, not that of means over other seeds.
    (_, inversion) = changed(SAP[:1], more)
    assert inversion.difference.low == pytest.approx(0.2 - (0.01**2 * 2) ** 0.5)


def test_without_a_common_seed_the_interval_is_that_of_strangers():
    (utility, inversion) = changed(SAP[:1], SAP[1:2])
    assert utility.why == inversion.why == ("seeds: 0 → 1", "no seed in common")
    assert utility.difference.value == pytest.approx(0.01)
    assert not utility.clear


def test_data_model_and_training_are_told_part_by_part():
    old = SAP[0]
    other = rekeyed(
        shifted(old, 0.7),
        data_hash="0" * 64,
        model_hash="1" * 64,
        limit=500,
        train=old.cell.train.model_copy(update={"epochs": 3}),
    )
    (change,) = changed([old], [other])
    assert change.why == (
        "data: other texts of reviews",
        "data: limit = 2000 → 500",
        "model: other weights of minilm",
        "training: epochs = 2 → 3",
    )


def test_a_stronger_attacker_is_the_reason():
    old = SAP[0]
    (leak,) = old.leaks
    stronger = leak.model_copy(
        update={
            "attack": MethodSpec(name="eia-map", version=3),
            "success": leak.success.model_copy(update={"value": 0.7, "low": 0.69, "high": 0.71}),
        }
    )
    (change,) = changed([old], [old.model_copy(update={"leaks": [leak, stronger]})])
    assert change.why == ("attack: eia-nn version 1 → eia-map version 3",)
    # One seed: the interval is that of both cells together.
    assert change.difference.low == pytest.approx(0.2 - (0.01**2 * 2) ** 0.5)


def test_other_code_is_told_where_the_numbers_moved():
    made = SAP[0].provenance.model_copy(update={"leakboard": "0.2.0", "commit": "9" * 40})
    new = shifted(SAP[0], 0.6).model_copy(update={"provenance": made})
    (change,) = changed(SAP[:1], [new])
    assert change.why == ("code: 0.1.0 at 0123abc → 0.2.0 at 9999999",)


def test_of_two_candidates_the_one_that_differs_less_is_the_former_one():
    near = rekeyed(SAP[0], limit=500)
    far = rekeyed(SAP[0], limit=500, data_hash="0" * 64, model_hash="1" * 64)
    new = shifted(rekeyed(SAP[0], limit=600), 0.7)
    found = changed([far, near], [new])
    assert [one.why for one in found if one.kind == "changed"] == [("data: limit = 500 → 600",)]
    assert [one.kind for one in found] == ["changed", "gone"]


def test_other_parameters_are_another_setting():
    other = seeds("sap", [0.7], [0.3], params={"eta": 50.0})
    assert [one.kind for one in changed(SAP[:1], other)] == ["new", "gone"]


def test_a_parameter_that_a_newer_version_adds_is_a_reason():
    new = newer(shifted(SAP[0], 0.7), params={"eta": 75.0, "smooth": True})
    (change,) = changed(SAP[:1], [new])
    assert change.why == ("method: sap version 1 → 2", "method: smooth = True is new")


def test_what_is_measured_by_another_metric_has_no_difference():
    (leak,) = SAP[0].leaks
    other = leak.model_copy(update={"metric": "token F1"})
    (change,) = changed(SAP[:1], [SAP[0].model_copy(update={"leaks": [other]})])
    assert (change.difference, change.clear) == (None, False)


def test_a_frame_has_a_row_for_each_and_no_number_stands_for_what_is_missing():
    found = changed([*NONE, *SAP[:2]], SAP)
    table = found.frame()
    assert len(table) == len(found) == 3
    assert table.loc[table["kind"] == "gone", ["old", "new", "difference"]].isna().all().all()
    assert "1 gone; 2 numbers changed, 0 of them clearly; 0 settings are unchanged" in repr(found)
    assert len(found.clearly()) == 1
