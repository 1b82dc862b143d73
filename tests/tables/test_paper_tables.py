"""The papers' numbers beside ours."""

from __future__ import annotations

import pytest
from boards import CHANCE, cell
from printed_tables import SST2, laid, row_of, sap
from records import estimate, leak, record

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.suites import load_suite


def test_papers_numbers_stand_beside_what_their_own_attacks_found_here():
    stronger = leak(0.9, "eia-map", chance=CHANCE)
    mine = [sap(50.0, cut=4, more=[stronger]), sap(50.0, cut=3, success=0.3)]
    row = row_of(laid("SAP", "Table 4", mine=mine), setting="η = 50, cut = 4")
    assert row["EP printed"] == "0.38"
    assert row["EP here"].startswith("0.60 [")  # eia-map is not the paper's
    assert row["EP difference"] == "+0.22"
    assert row["measured on"] == "minilm, 1 seed, at most 2,000 examples (mine)"


def test_baselines_are_measured_as_the_paper_measures_them():
    label = [leak(0.7, "kmeans", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    label += [leak(1.0, "spectral", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)]
    label += [leak(0.9, "xgboost", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    mine = [cell("none", success=None, more=label, **SST2)]
    one = laid("P3EFT", "later submission table", mine=mine)
    row = row_of(one, task="sst2", defense="none")
    assert (row["EP printed"], row["EP here"].split()[0]) == ("0.01", "0.30")


@pytest.mark.parametrize(
    ("mine", "setting", "why"),
    [
        ([sap(50.0, task="mrpc")], "frozen, η = 50", "no records of sst2"),
        ([cell("none", **SST2)], "frozen, η = 50", "no records of sst2"),
        ([sap(60.0), sap(75.0)], "frozen, η = 50", "no η = 50 (60, 75)"),
        ([sap(60.0)], "frozen, η = 45", "no η = 45 (60)"),
        ([sap(60.0)], "trainable, η = 60", "no trainable"),
        (
            [sap(60.0), sap(50.0, "trainable")],
            "trainable, η = 60",
            "each of its values was measured, but not all of them together",
        ),
        (
            [sap(60.0).model_copy(update={"leaks": [leak(0.4, "eia-map")], "utility": None})],
            "frozen, η = 60",
            "no records of sst2",
        ),
    ],
)
def test_a_row_that_was_not_measured_says_why(mine, setting, why):
    row = row_of(laid("SAP", "Table 3", mine=mine), setting=setting)
    assert row["measured on"] == f"not measured: {why}"
    assert (row["utility here"], row["utility difference"]) == ("–", "–")


def test_a_cut_that_the_model_does_not_have_is_told():
    row = row_of(laid("SAP", "Table 4", mine=[sap(50.0, cut=4)]), setting="η = 50, cut = 8")
    assert row["measured on"] == "not measured: no cut after block 8"
    row = row_of(laid("SAP", "Table 4", mine=[sap(50.0, cut=4)]), setting="η = 50, cut = 2")
    assert row["measured on"] == "not measured: no cut after block 2"


def test_every_printed_row_is_there_whatever_was_measured():
    one = laid("SAP", "Table 4", mine=[sap(50.0, cut=4)])
    is_measured = ~one.frame["measured on"].str.startswith("not measured")
    assert (len(one.frame), is_measured.sum()) == (28, 1)


def test_what_the_paper_does_not_state_is_as_in_the_suite_that_mirrors_it():
    (own,) = [r.defense for r in load_suite("p3eft-figure4").defenses if r.defense.name == "p3eft"]
    found = [leak(0.5, "prior", Goal.LABEL, 0.5, channel=None)]
    same = {"success": None, "more": found, **SST2}
    other = cell("p3eft", params={**own.params, "weight": 0.3}, utility=0.6, **same)
    one = laid("P3EFT", "later submission table", mine=[other])
    told = row_of(one, task="sst2", defense="p3eft")["measured on"]
    assert told == "not measured: only with other values of what the paper does not state"
    mine = [other, cell("p3eft", params=own.params, utility=0.7, **same)]
    row = row_of(laid("P3EFT", "later submission table", mine=mine), task="sst2", defense="p3eft")
    assert row["utility here"].startswith("0.70")


def test_of_several_folders_the_suite_speaks_then_most_seeds_then_examples_then_settings():
    few = [sap(60.0, limit=1000, utility=0.6)]
    more = [sap(60.0, limit=300, seed=s, utility=0.7) for s in (0, 1)]
    both = [sap(60.0, limit=500, utility=0.5), sap(50.0, limit=500, utility=0.5)]

    def told(**folders):
        row = row_of(laid("SAP", "Table 3", **folders), setting="frozen, η = 60")
        return row["measured on"].split("(")[1]

    assert told(few=few, more=more) == "more)"
    assert told(few=few, both=both) == "few)"
    assert told(a=both[:1], both=both) == "both)"
    assert told(few=few, more=more, both=both) == "more)"
    assert told(**{"sap-table3": few}, more=more, both=both) == "sap-table3)"


def test_a_folder_that_measured_all_that_is_printed_goes_before_one_with_more_seeds():
    more = [sap(60.0, seed=s, success=None, more=[leak(0.4, "eia-map")]) for s in (0, 1)]
    row = row_of(laid("SAP", "Table 3", more=more), setting="frozen, η = 60")
    assert (row["EP here"], row["measured on"][-6:]) == ("–", "(more)")
    one = [sap(60.0, limit=9)]
    row = row_of(laid("SAP", "Table 3", more=more, one=one), setting="frozen, η = 60")
    assert (row["EP here"] == "–", row["measured on"][-5:]) == (False, "(one)")


def test_exposure_and_perplexity_stand_beside_what_jft_prints():
    def own(copies, bits):
        planted = record("none", {}, 0, 0.3, [], "wikitext2", undefended=True)
        seen = leak(
            bits,
            "canary-exposure",
            Goal.MEMORISATION,
            channel=Channel.MODEL,
            view=f"planted {copies} times",
        ).model_copy(update={"metric": "exposure"})
        plant = Plant.model_validate({"canaries": ("a {digits}",), "copies": (copies,), "each": 1})
        made = planted.cell.model_copy(update={"plant": plant})
        measures = {"perplexity per token": estimate(14.0, 512.0, 1.0)}
        update = {"cell": made, "key": made.key, "leaks": [seen], "measures": measures}
        return planted.model_copy(update=update)

    one = laid("JFT", "released result files", mine=[own(10, 9.0), own(3, 2.0)])
    row = row_of(one, defense="none")
    assert (row["exposure printed"], row["exposure difference"]) == ("8.03", "+0.97")
    assert (row["perplexity printed"], row["perplexity here"]) == (
        "20.08",
        "14.00 [13.00, 15.00]",
    )
    assert "utility printed" not in row
