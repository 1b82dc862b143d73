"""Pairs differ in what a comparison is about, and agree in the rest."""

import pytest
from records import leak, record

from leakboard.bench.contracts import Channel, Goal
from leakboard.leaderboards.tables.compare import (
    ANY_VALUE,
    Rows,
    differences,
    one_per_setting,
    pairs,
    parameter,
    place_but,
    place_by,
)
from leakboard.leaderboards.tables.leakage import Reader
from leakboard.leaderboards.tables.results import results_table

SAP, CTI = Rows("sap", {"eta": ANY_VALUE}), Rows("sap-cti", {"eta": ANY_VALUE})


def cell(defense, params, epochs=2, cut=0, leaks=None, precision="float32"):
    fields = {"epochs": epochs, "cut": cut, "precision": precision}
    return record(defense, params, 0, 0.9, leaks or [leak(0.5)], "sst2", **fields)


def found(records, a=CTI, b=SAP, differ=()):
    return pairs(results_table(records), a, b, place_but(differ, a, b))


def test_a_pair_agrees_in_all_that_is_not_compared():
    records = [cell(name, {"eta": eta}) for name in ("sap", "sap-cti") for eta in (90.0, 75.0)]
    etas = [(parameter(a, "eta"), parameter(b, "eta")) for a, b in found(records)]
    assert sorted(etas) == [(75.0, 75.0), (90.0, 90.0)]
    assert len(found(records, differ=("eta",))) == 4
    assert found([cell("sap", {"eta": 75.0}, cut=3), cell("sap-cti", {"eta": 75.0})]) == []
    trained = [cell("sap", {"eta": 75.0, "bottom": "trainable"}), cell("sap-cti", {"eta": 75.0})]
    assert found(trained) == []


def test_a_parameter_that_one_side_fixes_is_what_is_compared():
    records = [cell("sap", {"eta": 75.0, "bottom": bottom}) for bottom in ("frozen", "trainable")]
    a, b = Rows("sap", {"bottom": "trainable"}), Rows("sap", {"bottom": "frozen"})
    ((one, other),) = found(records, a, b)
    assert (parameter(one, "bottom"), parameter(other, "bottom")) == ("trainable", "frozen")


def test_what_was_trained_alike_is_compared_first():
    plain = [cell("none", {}, epochs=epochs) for epochs in (2, 3)]
    own = [cell("dc", {"weight": 0.5}, epochs=3)]
    ((_, b),) = found([*plain, *own], Rows("dc"), Rows("none"))
    assert b.setting.first.cell.train.epochs == 3
    other = [cell("dc", {"weight": 0.5}, epochs=4)]
    assert len(found([*plain, *other], Rows("dc"), Rows("none"))) == 2


def test_cells_that_differ_in_precision_alone_share_a_place():
    records = [cell("sap", {"eta": 75.0}, precision=p) for p in ("float32", "bf16")]
    records.append(cell("sap", {"eta": 90.0}))
    a, b = (Rows("sap", train={"precision": p}) for p in ("bf16", "float32"))
    ((one, other),) = found(records, a, b, ("precision",))
    assert parameter(one, "eta") == parameter(other, "eta") == 75.0
    assert found(records, a, b) == []


@pytest.mark.parametrize(
    ("rows", "admitted"),
    [
        (Rows(), True),
        (Rows(("dc", "sap")), True),
        (Rows("dc"), False),
        (Rows("sap", {"eta": (60.0, 75.0)}), True),
        (Rows("sap", {"eta": None}), False),
        (Rows("sap", {"head": "vendor"}), True),  # younger than the record: its default
        (Rows("sap", cut=(3, 5)), False),
        (Rows("sap", undefended=True), False),
        (Rows("sap", task="mrpc"), False),
        (Rows("sap", train={"precision": "bf16"}), False),
    ],
)
def test_a_selection_admits_alternatives_and_leaves_free_what_it_does_not_name(rows, admitted):
    (row,) = results_table([cell("sap", {"eta": 75.0})])
    assert rows(row) is admitted


def test_a_place_may_be_named_by_the_parameters_that_are_shared():
    one, other = results_table([cell("sap", {"eta": eta}) for eta in (75.0, 90.0)])
    assert place_by(["eta"], True)(one) != place_by(["eta"], True)(other)
    assert place_by([], True)(one) == place_by([], True)(other)


def test_leakages_are_compared_for_each_goal_and_utilities_once_for_a_setting():
    more = [leak(0.5), leak(0.8, "kmeans", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    table = results_table([cell(name, {"eta": 75.0}, leaks=more) for name in ("sap", "sap-cti")])

    def number(metric, goal=None):
        return len(differences(table, goal, metric, CTI, SAP, place_but((), CTI, SAP)))

    assert (number("success"), number("success", Goal.LABEL), number("utility")) == (2, 1, 1)


def test_a_table_under_some_attacks_alone_is_computed_once():
    leaks = [leak(0.9, "eia-map", params={"auxiliary": "own"}), leak(0.4, "eia-nn")]
    table = results_table([cell("sap", {"eta": 75.0}, leaks=leaks)])
    weak = Reader(("eia-nn",))
    assert table.under(Reader()) is table
    assert table.under(weak) is table.under(Reader(("eia-nn",)))
    assert [row.success.value for row in table.under(weak)] == [0.4]
    assert [row.attack for row in table.under(Reader(params={"auxiliary": "own"}))] == ["eia-map"]
    assert list(table.under(Reader(channels=("gradients",)))) == []


def test_utility_is_compared_once_for_each_setting():
    from leakboard.bench.contracts import Goal

    leaks = [leak(0.9), leak(0.9, "logit-gradient", Goal.LABEL, 0.5)]
    table = results_table([cell("sap", {"eta": 75.0}, leaks=leaks)])
    assert len(table) == 2
    assert one_per_setting(table) == [table[0]]
