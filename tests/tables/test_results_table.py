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
from leakboard.leaderboards.tables.results import results_table, undefended_row

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


def test_no_protection_stands_for_no_protection_where_it_ran():
    """The twin leaks more and has more seeds, but it is another training."""
    twins = [record("sap", OFF, s, leaks=[leak(0.9)], undefended=True) for s in range(3)]
    none = [record("none", {}, s, leaks=[leak(0.8)], undefended=True) for s in range(2)]
    assert undefended_row(results_table([*twins, *none])).defense == "none"
    assert undefended_row(results_table(twins)).defense == "sap"
    assert undefended_row(results_table([record("sap", ON, 0, leaks=[leak(0.5)])])) is None


@pytest.mark.parametrize("word", ["inputs", "inversion", "input", "texts", "Inputs"])
def test_a_goal_is_taken_by_any_of_its_names(word):
    assert goal_of(word).value == "inversion"


def test_an_unknown_goal_is_refused_with_the_list():
    with pytest.raises(LeakboardError, match=r"labels.*Expected one of inputs, .*labels"):
        goal_of("lables")


# What follows shares no code with the package: it reads the JSON files and computes leakage with pandas.


LATER = {
    "answers": False,
    "swapped": 0.0,
    "candidates": "natural",
    "per_author": None,
    "utility": None,
}
"""Fields that older records lack, with their meaning there."""


def place(cell):
    """All that decides a cell, without its seed."""

    def known(value):
        if not isinstance(value, dict):
            return value
        return {k: known(v) for k, v in value.items() if k not in LATER or v != LATER[k]}

    return json.dumps(known({k: v for k, v in cell.items() if k != "seed"}), sort_keys=True)


def advantages(files):
    """One row per attack, moment and seed: its advantage over the baseline."""
    rows = []
    for one_file in files:
        seen, floors, kept = (
            set(),
            {},
            [x for x in one_file["leaks"] if x["status"] == "ok" and x["channel"]],
        )
        attacks = [(x["attack"]["name"], json.dumps(x["attack"]["params"])) for x in kept]
        versions = [x["attack"]["version"] for x in kept]
        newest = dict(sorted(zip(attacks, versions, strict=True), key=lambda pair: pair[1]))
        for attack, one in zip(attacks, kept, strict=True):
            if one["view"] == "last" and one["floor"]:
                floors[attack, one["channel"]] = one["floor"]["value"]
        for attack, one in zip(attacks, kept, strict=True):
            what = attack, one["channel"], one["goal"], one["attribute"]
            if what in seen or one["attack"]["version"] < newest[attack]:
                continue
            seen.add(what)
            end = max((p["step"] for p in one["curve"]), default=0) or 1
            # Seeds differ in their numbers of steps: moments are told in fiftieths of training.
            moments = [
                (-1 if p["step"] < 0 else round(50 * p["step"] / end), p["success"])
                for p in one["curve"]
            ]
            for step, success in moments or [(-1, one["success"])]:
                floor = (one["floor"] or {"value": 0})["value"]
                floor = floors.get((attack, one["channel"]), floor) if moments else floor
                base = max(success["chance"], floor)
                sure = success["value"] >= one["ceiling"] and success["n"] >= 20
                gain = (success["value"] - base) / (one["ceiling"] - base)
                where = place(one_file["cell"]), one["goal"], one["attribute"] or ""
                name = f"{what[:2]} {step}"
                rows.append((*where, name, one_file["cell"]["seed"], gain, sure))
    columns = ["cell", "goal", "attribute", "candidate", "seed", "advantage", "sure"]
    return pd.DataFrame(rows, columns=columns)


def strongest(own):
    """The mean over seeds of the candidate that is best on the other seeds; missing with one seed."""
    table = own.pivot_table(index="candidate", columns="seed", values="advantage", sort=False)
    if len(table.columns) < 2:
        return nan
    found = []
    for seed in table:
        others = table.drop(columns=seed)[table[seed].notna()].mean(axis=1)
        sure = own[(own.seed == seed) & own.sure].size or others.isna().all()
        found.append(1.0 if sure else table.loc[others.idxmax(), seed])
    return np.mean(found)


@pytest.mark.slow
def test_leakage_of_all_published_rows_is_the_same_by_code_of_its_own():
    from leakboard.leaderboards.results import published

    table = results_table(published().records)
    files = [json.loads(path.read_text("utf-8")) for path in sorted(PUBLISHED.glob("*/*.json"))]
    by_key = {}
    for one_file in files:
        if one_file["cell"]["shadow"] is not None:
            continue
        # A cell may stand in several folders, each with attacks of its own.
        known = by_key.setdefault(one_file["key"], one_file)
        mine = [leak["attack"] for leak in one_file["leaks"]]
        if known is not one_file:
            earlier = [leak for leak in known["leaks"] if leak["attack"] not in mine]
            by_key[one_file["key"]] = one_file | {"leaks": [*earlier, *one_file["leaks"]]}
    groups = advantages(by_key.values()).groupby(["cell", "goal", "attribute"])
    means = {where: strongest(own) for where, own in groups}
    compared = 0
    for row in table:
        goal = row.goal.value, row.attribute
        mine = means[(place(by_key[row.setting.keys[0]]["cell"]), *goal)]
        if len(row.success_by_seed) < 2 or np.isnan(mine):
            continue  # chosen on halves of the units
        assert mine == pytest.approx(row.advantage.value, abs=1e-9)
        if row.is_certified and row.twin_keys:
            own = groups.get_group((place(by_key[row.setting.keys[0]]["cell"]), *goal))
            twin = groups.get_group((place(by_key[row.twin_keys[0]]["cell"]), *goal))
            common = set(own.seed) & set(twin.seed) or {*own.seed, *twin.seed}
            share = strongest(own[own.seed.isin(common)]) / strongest(twin[twin.seed.isin(common)])
            if not np.isnan(share):
                assert share == pytest.approx(row.leakage.value, abs=1e-9)
                compared += 1
    assert compared > 300
