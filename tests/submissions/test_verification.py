"""What is tampered with is refused."""

from __future__ import annotations

import json

import pytest
from records import leak, record
from submitted import (
    RECORDS,
    changed,
    honest,
    manifest,
    members,
    raw,
    resealed,
    verdict,
    why,
    zipped,
)

from leakboard.bench.contracts.threat import Goal
from leakboard.bench.records.store import to_text
from leakboard.bench.scoring.rescoring import rescore
from leakboard.bench.submissions.completeness import gaps


def test_honest_records_are_accepted(place):
    report = verdict(place, zipped(members(raw(RECORDS))))
    assert report.sound, why(report)
    assert len(report.records) == 4


def test_a_success_that_does_not_follow_from_the_guesses_is_found(place):
    def better(content):
        content["leaks"][0]["success"] |= {"value": 0.2, "low": 0.1, "high": 0.3}

    report = verdict(place, changed(better))
    assert "eia-nn inversion representations train token accuracy: value is stated as 0.2" in why(
        report
    )
    assert "give 0.375" in why(report)
    assert RECORDS[0].key in why(report)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("success", "value", 0.2), ("success", "low", 0.0), ("success", "high", 1.0),
        ("success", "n", 4000), ("leak", "units", 10**6), ("leak", "ceiling", 19.93),
        ("utility", "value", 0.99), ("utility", "low", 0.5), ("utility", "chance", 0.1),
    ],
)  # fmt: skip
def test_every_number_that_the_guesses_decide_is_compared(place, where, name, value):
    def other(content):
        at = {"success": content["leaks"][0]["success"], "leak": content["leaks"][0],
              "utility": content["utility"]}  # fmt: skip
        at[where][name] = value

    assert f"{name} is stated as" in why(verdict(place, changed(other)))


@pytest.mark.parametrize(
    "guesses",
    [
        {}, {"hits": [1]}, {"hits": [5], "tokens": [4]}, {"hits": [1, 1], "tokens": [4]},
        {"hits": [-1], "tokens": [4]}, {"hits": [], "tokens": []}, {"hits": [0], "tokens": [0]},
        {"hits": [1] * 100_001, "tokens": [1] * 100_001}, {"guess": [1], "truth": [1]},
    ],
)  # fmt: skip
def test_raw_guesses_that_cannot_be_are_refused(place, guesses):
    report = verdict(place, changed(lambda content: content["leaks"][0].update(raw=guesses)))
    assert "the raw guesses give nothing" in why(report)


def test_labels_that_would_fill_the_memory_are_not_scored():
    huge = {"guess": [0, 10**9], "truth": [0, 1]}
    label = {"attack": "kmeans", "goal": Goal.LABEL, "view": "worst"}
    for metric, values in (
        ("matched accuracy", huge),
        ("AUC (sign-free)", huge | {"truth": [0, 10**9]}),
    ):
        lied = leak(raw=values, **label).model_copy(update={"metric": metric})
        (mismatch,) = rescore(record(leaks=[lied], utility=None)).mismatches
        assert str(mismatch.recomputed).startswith("nothing")


def test_a_metric_that_is_not_known_is_not_passed_over(place):
    report = verdict(place, changed(lambda content: content["leaks"][0].update(metric="my score")))
    assert "knows no inversion by 'my score'" in why(report)


def test_what_is_not_scored_again_is_said(place):
    report = verdict(place, zipped(members(raw(RECORDS))))
    assert ("not re-scored", "note", "chance of eia-nn") in report.lines


def test_record_that_is_not_the_one_of_the_manifest_is_refused(place):
    content = raw(RECORDS)
    named = members(content)
    key = RECORDS[0].key
    other = to_text(RECORDS[0].model_copy(update={"reason": "other"})).encode()
    named = [(n, other if key in n else c) for n, c in named]
    assert "SHA-256 differs" in why(verdict(place, zipped(named)))


def test_checksum_inside_a_record_is_compared(place):
    content = raw(RECORDS)
    key = RECORDS[0].key
    content[key] = content[key].replace(b'"reason": ""', b'"reason": "x"')
    assert "does not match its checksum" in why(verdict(place, zipped(members(content))))


@pytest.mark.parametrize("how", ["name", "key", "cell"])
def test_forged_key_is_refused(place, how):
    content = raw(RECORDS)
    value = json.loads(content.pop(RECORDS[0].key))
    forged = "0123456789abcdef"
    if how == "cell":
        value["cell"]["defense"]["params"] = {"eta": 10.0}
    else:
        value["key"] = forged if how == "key" else value["key"]
    content[forged if how == "name" else RECORDS[0].key] = resealed(value)
    assert "do not match" in why(verdict(place, zipped(members(content))))


def test_missing_seed_is_named(place):
    report = verdict(place, zipped(members(raw(RECORDS[:3]))))
    assert "mine: 1 settings lack seed 1, the first of them none" in why(report)


def test_built_in_suite_needs_all_of_its_seeds(place):
    content = raw(RECORDS[:2])
    fake = json.loads(manifest(content))
    for entry in fake["records"].values():
        entry["suite"] = "sap-sst2"  # of three seeds
    named = [("manifest.json", json.dumps(fake).encode()), *members(content)[1:]]
    assert "sap-sst2: 2 settings lack seed 1, 2" in why(verdict(place, zipped(named)))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c["leaks"].pop(), "logit-gradient {} was run on other cells of mine, not here"),
        (lambda c: c.update(leaks=[]), "has no results of attacks"),
        (lambda c: c.update(status="failed", reason="oh"), "ended failed: oh; run it again"),
        (lambda c: c.update(status="diverged"), "does not say why"),
        (lambda c: c.update(utility=None), "has no utility"),
        (lambda c: c["leaks"][0].update(success=None), "nothing was measured"),
        (lambda c: c["leaks"][0].update(status="failed"), "does not say why"),
        (lambda c: c["provenance"].update(dirty=True), "uncommitted changes"),
        (lambda c: c.update(undefended=False), "does not match its defense"),
        (lambda c: c["predictions"].update(truth=[1, 0] * 12), "have different labels"),
        (
            lambda c: c["leaks"][0]["success"].update(chance=2.0),
            "has an invalid chance level of 2.0",
        ),
    ],
)
def test_incomplete_and_contradictory_records_are_refused(place, change, expected):
    assert expected in why(verdict(place, changed(change)))


def test_a_goal_of_an_attack_that_no_result_tells_of_is_a_fault(place):
    def told_less(content):
        content["leaks"] = [
            one
            for one in content["leaks"]
            if (one["attack"]["name"], one["goal"]) != ("prior", "attribute")
        ]

    report = verdict(place, changed(told_less))
    assert "prior applies to sap for attribute, but has no result" in why(report)


def test_what_attackers_train_themselves_need_not_meet_every_attack():
    target = RECORDS[0]
    cell = target.cell.model_copy(update={"shadow": 0})
    shadow = target.model_copy(update={"cell": cell, "key": cell.key, "leaks": target.leaks[:1]})
    assert list(gaps("mine", [target, shadow])) == []
    assert list(gaps("mine", [target, honest().model_copy(update={"leaks": target.leaks[:1]})]))
