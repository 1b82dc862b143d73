"""The published records: whole, scored and counted again, and what they say: short, supported, the same in every document.

All of them are read once for this file.
"""

import json
import math
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paths import PUBLISHED, ROOT

import leakboard as lb
from leakboard.bench.contracts import Goal
from leakboard.bench.records import store
from leakboard.bench.records.store import MANIFEST
from leakboard.bench.scoring.rescoring import rescore
from leakboard.leaderboards.findings import TITLES, Writers, fill, findings
from leakboard.leaderboards.findings.engine import Contrast
from leakboard.leaderboards.findings.rules import RULES
from leakboard.leaderboards.results import sources
from leakboard.leaderboards.tables.claims import differences_of, printed_claims
from leakboard.leaderboards.tables.leakage import Reader
from leakboard.leaderboards.tables.printed import artefacts
from leakboard.leaderboards.tables.result import BUDGET

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "docs" / "findings.md",
    ROOT / "docs" / "contradictions.md",
    ROOT / "docs" / "beside_the_papers.md",
    ROOT / "docs" / "what_we_got_wrong.md",
    ROOT / "results" / "PLAN.md",
]


pytestmark = pytest.mark.skipif(not PUBLISHED, reason="nothing has been published yet")


@pytest.fixture(scope="module")
def read(read_published):
    """All published records as results, and each file of them by its path."""
    files, from_bytes = {}, store.from_bytes

    def remembered(raw, name, where, _):  # with their checksums
        return files.setdefault(Path(where), from_bytes(raw, name, where))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "from_bytes", remembered)
        patch.setattr(sources, "_read", read_published)
        return lb.published(), files


@pytest.fixture(scope="module")
def records(read):
    return read[0]


@pytest.fixture(scope="module")
def files(read):
    return read[1]


@pytest.fixture(scope="module")
def table(records):
    return records.table


@pytest.fixture(scope="module")
def today(table):
    return findings(table)


@pytest.fixture(scope="module")
def writers(records):
    return Writers(records)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_hold_what_the_published_records_show_today(path, writers):
    text = path.read_text("utf-8")
    assert text == fill(text, writers), f"run: leakboard findings --into {path.relative_to(ROOT)}"


def test_every_printed_table_and_every_paper_with_claims_stands_in_the_document():
    text = (ROOT / "docs" / "beside_the_papers.md").read_text("utf-8")
    for paper, artefact in artefacts():
        assert f'<!-- papers: {paper} "{artefact}" -->' in text
    for paper in {one.paper for one in printed_claims()}:
        assert f"<!-- claims: {paper} -->" in text


def test_published_records_of_one_cell_agree(records):
    assert not records.problems


def test_no_sentence_rests_on_one_seed(today):
    assert min(finding.seeds for finding in today) > 1


def test_there_are_at_most_sixty_sentences_of_at_most_thirty_words(today):
    assert 30 <= len(today) <= 60
    assert [one.sentence for one in today if len(one.sentence.split()) > 30] == []
    assert len({one.sentence for one in today}) == len(today)


def test_the_most_important_come_first_and_every_sentence_has_its_records(records, today):
    order = [list(TITLES).index(one.rule) for one in today]
    assert order == sorted(order)
    keys = {record.key for record in records}
    assert all(one.keys and set(one.keys) <= keys for one in today)


def test_sentences_take_seconds(table):
    start = time.process_time()
    findings(table)
    assert time.process_time() - start < 5


def test_no_sentence_recommends_a_setting_above_the_budget_as_the_best(table, today):
    headlines = [one for one in today if one.rule == "headlines"]
    assert len(headlines) >= 5
    for one in headlines:
        if "nothing measured" in one.sentence:
            assert "nothing measured clearly protects" in one.sentence
            assert one.metric == "cost"
            assert one.value.value > BUDGET
            continue
        costs = [
            row.cost.value
            for row in table
            if row.has_cost and set(row.setting.keys) <= set(one.keys)
        ]
        assert costs
        assert min(costs) <= BUDGET


def test_what_randomised_response_sends_lies_at_its_law_and_texts_say_more(table):
    """A sent label is the true one with the probability exp ε / (1 + exp ε); who reads the text knows more."""

    def rows(attack, channel, epsilon):
        found = table.under(Reader((attack,), (channel,)))
        own = found.select(defense="randomised-response", goal=Goal.LABEL)
        return [row.success for row in own if row.setting.knob_value == epsilon]

    def law(epsilon):
        return 1 / (1 + math.exp(-epsilon))

    sent = rows("pooled-moments", "gradients", 2)
    assert sent
    assert all(success.low <= law(2) <= success.high for success in sent)
    for epsilon in (1, 2):
        with_text = rows("public-label", "tokens", epsilon)
        assert with_text
        assert all(success.low > law(epsilon) for success in with_text)


@pytest.mark.parametrize("defense", ["offsite-tuning", "dpnr"])
def test_some_defenses_are_judged_against_themselves_without_protection(defense, table, today):
    names = {"offsite-tuning": "Offsite-tuning", "dpnr": "DPNR's vectors"}
    (one,) = [f for f in today if f.rule == "twin" and f.sentence.startswith(names[defense])]
    assert one.metric == "leakage"
    rows = [row for row in table if set(row.setting.keys) <= set(one.keys)]
    assert {row.defense for row in rows} == {defense}
    assert {row.setting.undefended for row in rows} == {True, False}


def test_no_claim_of_p3eft_against_no_protection_is_decided_by_the_frozen_encoder(table):
    claims = [one for one in printed_claims() if one.a.defense == "p3eft"]
    assert len(claims) > 10
    for claim in claims:
        for pair in differences_of(claim, table):
            assert "frozen" not in (pair.a.defense, pair.b.defense)


def test_utilities_and_costs_are_compared_at_equal_tuning_only(table):
    compared = [
        one
        for rule in RULES
        if isinstance(rule, Contrast) and rule.metric in ("utility", "cost")
        for one in rule.differences(table)
    ]
    claims = [one for one in printed_claims() if one.metric in ("utility", "perplexity")]
    compared += [one for claim in claims for one in differences_of(claim, table)]
    told = [one for one in compared if not one.mean.is_missing]
    assert told
    assert all(one.a.setting.trials == one.b.setting.trials for one in told)
    # Some pairs were tuned unequally, and are not told.
    assert any("not tuned alike" in one.reason for one in compared)


def test_the_trials_of_a_tuned_row_compare_a_setting_for_every_two_of_them(records):
    """Several seeds of one setting choose nothing, however many trials they are."""
    by_key = {record.key: record for record in records}
    rows = {record.provenance.trials for record in records if len(record.provenance.trials) > 1}
    assert len(rows) > 10
    for keys in rows:
        cells = [by_key[key].cell for key in keys]
        settings = {(str(cell.defense), str(cell.train)) for cell in cells}
        assert len(settings) * 2 >= len(cells), keys


def test_every_published_record_is_whole_and_of_a_committed_state(files):
    def place(path):
        return path.parent.name, path.name

    assert set(map(place, files)) == set(map(place, PUBLISHED))
    for path, found in files.items():
        assert found.status == "ok" or found.reason, path
        outside = (path.parent / MANIFEST).exists()  # where the package may have been installed
        # The README of the folder says so of those that are named here.
        assert found.provenance.commit or outside or path.parent.name == "base-size", path
        assert not found.provenance.dirty, path
        failed = {leak.attack.name for leak in found.leaks if leak.status == "failed"}
        assert failed <= ({"public-label"} if path.parent.name == "base-size" else set()), path


def test_published_records_follow_from_their_raw_guesses(files):
    metrics_seen: set[str] = set()
    for path, found in files.items():
        metrics = {leak.metric for leak in found.leaks if leak.success}
        if not metrics <= metrics_seen:
            metrics_seen |= metrics
            assert not rescore(found).mismatches, path
    assert {"token accuracy", "accuracy", "AUC (sign-free)", "matched accuracy"} <= metrics_seen


def test_the_answer_of_choose_names_records_that_are_published(records, monkeypatch):
    monkeypatch.setattr("leakboard.leaderboards.results.published", lambda: records)
    chosen = lb.choose(task="sst2", hide="inputs", max_cost=20)
    assert chosen.setting.cost.value <= 20
    assert chosen.leakage.high < 1
    assert set(chosen.setting.setting.keys) <= {path.stem for path in PUBLISHED}


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
            # Reading while the tuned model answers is a moment of its own.
            in_use = one["view"].endswith(", answered")
            what = attack, one["channel"], one["goal"], one["attribute"], in_use
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
                name = f"{what[:2]} {step} {in_use}"
                rows.append((*where, name, one_file["cell"]["seed"], gain, sure))
    columns = ["cell", "goal", "attribute", "candidate", "seed", "advantage", "sure"]
    return pd.DataFrame(rows, columns=columns)


def strongest(own):
    """The mean over seeds of the candidate that is best on the other seeds; missing with one seed."""
    table = own.pivot_table(index="candidate", columns="seed", values="advantage", sort=False)
    if len(table.columns) < 2:
        return math.nan
    found = []
    for seed in table:
        mine = own[
            own.seed == seed
        ].candidate.unique()  # of equal ones, the first of this record counts
        others = table.drop(columns=seed).loc[mine].mean(axis=1)
        sure = own[(own.seed == seed) & own.sure].size or others.isna().all()
        found.append(1.0 if sure else table.loc[others.idxmax(), seed])
    return np.mean(found)


def test_leakage_of_all_published_rows_is_the_same_by_code_of_its_own(table):
    by_key = {}
    for path in PUBLISHED:
        one_file = json.loads(path.read_text("utf-8"))
        if one_file["cell"]["shadow"] is not None:
            continue
        # A cell may stand in several folders, each with attacks of its own.
        known = by_key.setdefault(one_file["key"], one_file)
        mine = [leak["attack"] for leak in one_file["leaks"]]
        if known is not one_file:
            earlier = [leak for leak in known["leaks"] if leak["attack"] not in mine]
            by_key[one_file["key"]] = one_file | {"leaks": [*earlier, *one_file["leaks"]]}
    groups = dict(iter(advantages(by_key.values()).groupby(["cell", "goal", "attribute"])))

    @cache
    def mean(where, seeds):
        own = groups[where]
        return strongest(own[own.seed.isin(seeds)])

    compared = 0
    for row in table:
        where = (place(by_key[row.setting.keys[0]]["cell"]), row.goal.value, row.attribute)
        seeds = frozenset(groups[where].seed)
        if len(row.success_by_seed) < 2 or np.isnan(mean(where, seeds)):
            continue  # chosen on halves of the units
        assert mean(where, seeds) == pytest.approx(row.advantage.value, abs=1e-9)
        if row.is_certified and row.twin_keys:
            twin = (place(by_key[row.twin_keys[0]]["cell"]), *where[1:])
            of_twin = frozenset(groups[twin].seed)
            common = seeds & of_twin or seeds | of_twin
            share = mean(where, common) / mean(twin, common)
            if not np.isnan(share):
                assert share == pytest.approx(row.leakage.value, abs=1e-9)
                compared += 1
    assert compared > 300
