"""The results table: costs, and the same leakage by code that shares nothing with it."""

import json
from math import nan

import numpy as np
import pandas as pd
import pytest
from paths import ROOT
from records import leak, record

from leakboard.bench.contracts import LeakboardError
from leakboard.leaderboards.tables.goals import goal_of
from leakboard.leaderboards.tables.results import results_table

PUBLISHED = ROOT / "results" / "published"
OFF, ON = {"eta": None}, {"eta": 75.0}


def experiment(utility=0.8, plain=0.9, untuned=0.5, seeds=3, trials=()):
    """SAP, no protection and the untuned model; utilities differ a little by the seed."""
    cells = []
    for seed in range(seeds):
        cells += [
            record("none", {}, seed, plain + seed / 1000, undefended=True),
            record("sap", OFF, seed, plain, leaks=[leak(1.0)], undefended=True),
            record("sap", ON, seed, utility, leaks=[leak(0.5)]),
        ]
        cells += [] if untuned is None else [record("untuned", {}, seed, untuned, leaks=[])]
    return [
        one.model_copy(update={"provenance": one.provenance.model_copy(update={"trials": trials})})
        if one.cell.defense.name == "sap"
        else one
        for one in cells
    ]


def sap(cells):
    return next(r for r in results_table(cells) if r.defense == "sap" and not r.setting.undefended)


def test_cost_is_in_points_against_no_protection_by_the_seed():
    row = sap(experiment())
    assert row.cost.value == pytest.approx(10.1)
    assert row.cost_by_seed == {s: pytest.approx(10 + s / 10) for s in range(3)}


def test_a_setting_that_learnt_nothing_has_no_cost():
    row = sap(experiment(utility=0.5, untuned=0.5))
    assert row.cost.is_missing
    assert row.cost_reason == "its utility is not clearly above the untuned model's"


def test_without_the_untuned_model_there_is_no_cost():
    row = sap(experiment(untuned=None))
    assert row.cost.is_missing
    assert row.cost_reason == "the untuned model was not measured beside it"


def test_a_row_tuned_by_other_trials_is_marked():
    assert sap(experiment()).is_equally_tuned
    row = sap(experiment(trials=("a", "b")))
    assert not row.is_equally_tuned
    assert row.setting.trials == 2


def test_every_column_is_filled_or_missing_for_a_reason():
    table = results_table(experiment()).frame()
    assert not table["cost_reason"][table["cost"].notna()].any()
    assert table["cost_reason"][table["cost"].isna()].all()


@pytest.mark.parametrize("word", ["inputs", "inversion", "input", "texts", "Inputs"])
def test_a_goal_is_taken_by_any_of_its_names(word):
    assert goal_of(word).value == "inversion"


def test_an_unknown_goal_is_refused_with_the_list():
    with pytest.raises(LeakboardError, match=r"labels.*Expected one of inputs, labels"):
        goal_of("lables")


# What follows shares no code with the package: it reads the JSON files and computes leakage with pandas.


def advantages(folder):
    """One row per attack, moment and seed: its advantage over the baseline."""
    rows = []
    for path in sorted((PUBLISHED / folder).glob("*.json")):
        record = json.loads(path.read_text("utf-8"))
        cell, seen, floors = record["cell"], set(), {}
        for one in record["leaks"]:
            if one["status"] == "ok" and one["view"] == "last" and one["floor"]:
                floors[one["attack"]["name"], one["channel"]] = one["floor"]["value"]
        for one in record["leaks"]:
            attack = one["attack"]["name"], json.dumps(one["attack"]["params"]), one["channel"]
            what = (*attack, one["goal"], one["attribute"])
            if one["status"] != "ok" or one["channel"] is None or what in seen:
                continue
            seen.add(what)
            moments = [(p["step"], p["success"]) for p in one["curve"]]
            for step, success in moments or [(-1, one["success"])]:
                floor = (one["floor"] or {"value": 0})["value"]
                floor = floors.get(attack[::2], 0) if moments else floor
                base = max(success["chance"], floor)
                where = cell["defense"]["name"], json.dumps(cell["defense"]["params"])
                sure = success["value"] >= one["ceiling"] and success["n"] >= 20
                gain = (success["value"] - base) / (one["ceiling"] - base)
                rows.append(
                    (
                        *where,
                        cell["cut"],
                        one["goal"],
                        str(attack) + str(step),
                        cell["seed"],
                        gain,
                        sure,
                    )
                )
    columns = ["defense", "params", "cut", "goal", "candidate", "seed", "advantage", "sure"]
    return pd.DataFrame(rows, columns=columns)


def strongest(own):
    """The mean over seeds of the candidate that is best on the other seeds."""
    table = own.pivot_table(index="candidate", columns="seed", values="advantage", sort=False)
    found = []
    for seed in table:
        if own[(own.seed == seed) & own.sure].size:
            found.append(1.0)
            continue
        others = table.drop(columns=seed)[table[seed].notna()].mean(axis=1)
        found.append(table.loc[others.idxmax(), seed])
    return np.mean(found) if len(found) > 1 else nan


@pytest.mark.parametrize("folder", ["matrix", "label-adaptive", "sap-sst2"])
def test_twenty_lines_of_pandas_come_to_the_same_leakage(folder):
    from leakboard.leaderboards.results import published

    table = results_table(published(folder).records)
    means = {
        where: strongest(own)
        for where, own in advantages(folder).groupby(["defense", "params", "cut", "goal"])
    }
    compared = 0
    for row in table:
        first = row.setting.first
        where = (row.defense, json.dumps(first.cell.defense.params), first.cell.cut, row.goal.value)
        assert means[where] == pytest.approx(row.advantage.value, abs=1e-9)
        twins = set(row.twin_keys)
        files = [json.loads((PUBLISHED / folder / f"{key}.json").read_text()) for key in twins]
        names = {
            (f["cell"]["defense"]["name"], json.dumps(f["cell"]["defense"]["params"]))
            for f in files
        }
        if row.is_certified and len(names) == 1:
            off = means[(*names.pop(), first.cell.cut, row.goal.value)]
            assert means[where] / off == pytest.approx(row.leakage.value, abs=1e-9)
            compared += 1
    assert compared > 5
