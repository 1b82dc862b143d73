"""Settings that others submitted and nobody reproduced: marked everywhere, and no yardstick for others."""

from __future__ import annotations

from records import leak, record

from leakboard.leaderboards.findings import findings
from leakboard.leaderboards.tables import NOT_REPRODUCED
from leakboard.leaderboards.tables.curves import Curve
from leakboard.leaderboards.tables.results import results_table


def marked(given):
    made = given.provenance.model_copy(update={"not_reproduced": True})
    return given.model_copy(update={"provenance": made})


def none(seed=0):
    return record("none", {}, seed=seed, leaks=[leak(0.9)], undefended=True)


def twin():
    return record("sap", {"eta": None}, leaks=[leak(0.9)], undefended=True)


def sap(eta=75.0, seed=0):
    return record("sap", {"eta": eta}, seed=seed, leaks=[leak(0.5)])


def test_a_setting_that_nobody_reproduced_is_marked_wherever_it_is_named():
    table = results_table([none(), sap(), marked(sap(eta=50.0))])
    by_name = {row.name: row for row in table if row.defense == "sap"}
    (mine,) = [name for name in by_name if name.endswith(f"({NOT_REPRODUCED})")]
    assert len(by_name) == 2
    assert not by_name[mine].setting.is_reproduced
    frame = table.frame()
    assert sorted(frame[frame["defense"] == "sap"]["reproduced"]) == [False, True]
    rows = tuple(by_name.values())
    first = rows[0]
    curve = Curve(first.setting.task, first.setting.model, "sap", first.goal, "", rows)
    assert curve.title == f"SAP ({NOT_REPRODUCED})"


def test_a_seed_that_nobody_reproduced_marks_its_setting():
    (row,) = [r for r in results_table([none(), sap(), marked(sap(seed=1))]) if r.defense == "sap"]
    assert not row.setting.is_reproduced


def test_no_other_setting_is_compared_with_an_unreproduced_baseline():
    (honest,) = [r for r in results_table([marked(twin()), sap()]) if not r.setting.undefended]
    assert honest.twin_keys == ()
    (both,) = [
        r for r in results_table([marked(twin()), marked(sap())]) if not r.setting.undefended
    ]
    assert both.twin_keys == (twin().key,)


def test_no_finding_rests_on_unreproduced_records():
    records = [none(), sap()]
    table = results_table([*records, marked(sap(eta=50.0))])
    assert len(table.reproduced) == len(results_table(records))
    assert findings(table) == findings(results_table(records))
