"""`leakboard.load`, `published` and `choose`, and what their results can do."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from experiments import compared
from matplotlib.figure import Figure
from paths import PUBLISHED
from records import leak

import leakboard as lb
from leakboard.bench.records.parquet import pack
from leakboard.bench.records.store import Store
from leakboard.leaderboards.results import sources

RECORDS = compared({75.0: (0.5, 0.88)}, task="reviews", seeds=2)
SAP = [one for one in RECORDS if one.cell.defense.params.get("eta") == 75.0]
NONE = [one for one in RECORDS if one not in SAP]


@pytest.fixture
def folders(tmp_path):
    for name, records in (("one", NONE), ("two", SAP)):
        for record in records:
            Store(tmp_path / name).write(record)
    return tmp_path / "one", tmp_path / "two"


def test_records_of_several_folders_are_one_collection(folders):
    both = lb.load(*map(str, folders))
    assert len(both) == 8
    assert list(both) == list(both.records)
    assert [record.cell.defense.name for record in both] == [
        *["none"] * 2,
        *["sap"] * 4,
        *["untuned"] * 2,
    ]
    assert both.name == "one + two"
    assert both.folders == folders
    assert repr(both) == (
        "<Results one + two: 8 records; task reviews; model minilm; defenses none, sap, untuned; seeds 0, 1>"
    )


def test_joining_is_loading_together_and_a_cell_counts_once(folders):
    one, two = map(lb.load, folders)
    assert (one + two).records == lb.load(*folders).records
    assert (one + one).records == one.records
    assert (one + one).problems == ()
    with pytest.raises(TypeError):
        one + 3


def test_attacks_of_one_cell_from_two_places_are_joined(tmp_path, folders):
    more = SAP[0].model_copy(update={"leaks": [leak(0.8, "eia-map")]})
    Store(tmp_path / "more").write(more)
    (joined,) = [r for r in lb.load(folders[1], tmp_path / "more") if r.key == more.key]
    assert sorted(each.attack.name for each in joined.leaks) == [
        "eia-learned",
        "eia-map",
        "eia-nn",
    ]


def test_records_that_disagree_are_told_and_the_first_stands(tmp_path, folders):
    Store(tmp_path / "other").write(SAP[0].model_copy(update={"leaks": [leak(0.1)]}))
    both = lb.load(folders[1], tmp_path / "other")
    assert both.records == lb.load(folders[1]).records
    assert both.problems == (
        f"record {SAP[0].key} is there twice and differs in attack eia-nn; the first one counts",
    )
    assert "1 problem" in repr(both)


def test_a_damaged_record_is_left_out_and_told(folders):
    path = Store(folders[0]).path(NONE[0].key)
    path.write_text(path.read_text()[:-40])
    results = lb.load(folders[0])
    assert {record.key for record in results} == {record.key for record in NONE[1:]}
    assert NONE[0].key in results.problems[0]


def test_a_suite_that_was_run_is_found_by_its_name_with_what_its_paper_prints(
    folders, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for record in NONE:
        Store(tmp_path / "results/local/sap-figure2").write(record)
    results = lb.load("sap-figure2")
    assert results.name == "sap-figure2"
    assert results.suite.paper.paper == "SAP"


def test_a_changed_frame_changes_no_result(folders):
    results = lb.load(*folders)
    table = results.frame()
    table["success"] = 0.0
    assert results.frame()["success"].max() > 0


def test_the_short_answers_come_from_the_records(folders):
    results = lb.load(*folders)
    best = results.best()
    pd.testing.assert_frame_equal(pd.DataFrame(best), results.table.frame())
    assert best["setting"].tolist() == ["none", "η = none", "η = 75"]
    assert re.search(
        r"reviews +minilm +0 +SAP +η = 75 +inputs +48 % \[\d\d, \d\d\] +2.0 ", repr(best)
    )
    assert "model" in repr(best[["task", "model"]])
    with pytest.raises(lb.LeakboardError, match="Did you mean 'headlines'"):
        results.findings("headline")
    assert all(one.keys for one in results.findings())
    chosen = lb.choose("reviews", "inputs", records=results)
    assert chosen.setting.defense == "sap"
    assert set(chosen.setting.setting.keys) == {record.key for record in SAP}
    assert chosen.leakage.value == pytest.approx(best["leakage"].iloc[2])


@pytest.mark.parametrize("word", ["inputs", "inversion", "input", "text"])
def test_a_goal_goes_by_all_its_names(folders, word):
    results = lb.load(*folders)
    assert lb.choose("reviews", word, records=results).setting
    assert results.plot(goal=word, out=folders[0] / "plots")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"max_cost": 0.02}, "points of utility, not a share; for a share of 0.02 give 2"),
        ({"max_cost": -1}, "expected points of utility from 0 to 100"),
        ({"max_cost": "3"}, "expected points of utility from 0 to 100"),
        ({"hide": "imputs"}, "hide: unknown 'imputs'. Did you mean 'inputs'"),
        ({"task": "review"}, "Did you mean 'reviews'"),
    ],
)
def test_a_choice_that_cannot_be_made_is_told(folders, words, told):
    with pytest.raises(lb.LeakboardError, match=told):
        lb.choose(**{"task": "reviews", "records": lb.load(*folders), **words})


def test_two_rows_are_compared_over_their_common_seeds(folders):
    results = lb.load(*folders)
    sap, none = (results.table.select(defense=name)[-1] for name in ("sap", "none"))
    found = lb.compare(sap, none)
    assert (found.verdict, found.seeds) == ("less", 2)
    assert found.mean.value == pytest.approx(sap.leakage.value - 1)
    assert lb.compare(none, sap, "utility").mean.value == pytest.approx(2.0)
    with pytest.raises(lb.LeakboardError, match=r"metric: unknown 'leak'\. Did you mean 'leakage'"):
        lb.compare(sap, none, "leak")
    with pytest.raises(lb.LeakboardError, match="b: expected a row of"):
        lb.compare(sap, results.best())


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_an_export_holds_the_frame(folders, tmp_path, suffix):
    results = lb.load(*folders)
    path = results.export(str(tmp_path / f"all.{suffix}"))
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[suffix](path)
    assert read["key"].tolist() == results.frame()["key"].tolist()
    assert read["success"].tolist() == pytest.approx(
        results.frame()["success"].tolist(), nan_ok=True
    )


def test_figures_are_written_and_named_after_the_records(folders, tmp_path):
    paths = lb.load(*folders).named("mine").plot(out=tmp_path / "plots")
    assert sorted(path.name for path in paths) == [
        f"mine-inputs.{s}" for s in ("pdf", "png", "svg", "txt")
    ]
    assert all(path.stat().st_size > 1000 for path in paths if path.suffix != ".txt")


def test_a_figure_comes_as_axes_of_the_given_width_or_on_the_given_axes(folders, tmp_path):
    results = lb.load(*folders)
    ax = results.plot(width=3.3)
    assert ax.figure.get_figure(root=True).get_size_inches()[0] == 3.3
    assert ax.get_xlabel() == "← leakage of inputs"
    ax.figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000
    mine = Figure().add_subplot()
    assert results.plot(ax=mine) is mine
    assert mine.get_xlabel() == "← leakage of inputs"
    plt.close("all")
    with pytest.raises(lb.LeakboardError, match=r"ax: this figure has \d panels"):
        results.plot("goals", ax=mine)
    with pytest.raises(lb.LeakboardError, match="ax: leave out `out`"):
        results.plot(out=tmp_path, ax=mine)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"kind": "tradeof"}, "kind: unknown 'tradeof'. Did you mean 'tradeoff'?"),
        ({"goal": "lables"}, "goal: unknown 'lables'. Did you mean 'labels'?"),
        ({"attack": "eia-n"}, "Did you mean 'eia-nn'?"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_told(folders, tmp_path, words, told):
    with pytest.raises(lb.LeakboardError, match=told):
        lb.load(*folders).plot(out=tmp_path, **words)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((), "folders: give a folder of records"),
        ((3,), "folders: expected the path of a folder or the name of a suite, got 3"),
        (("smoke",), "no records in results/local/smoke. Run the suite first"),
        (("nowhere",), "no run in results/local is called 'nowhere'"),
        ((".",), "holds no records"),
        (
            ("some/README.md",),
            r"some/README.md is not a folder of records.* To give folders only: some/\*/",
        ),
    ],
)
def test_what_cannot_be_loaded_is_told(tmp_path, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "README.md").write_text("# Records\n", "utf-8")
    with pytest.raises(lb.LeakboardError, match=told):
        lb.load(*given)


def test_choosing_among_something_else_than_results_is_told():
    with pytest.raises(
        lb.LeakboardError, match="records: expected Results, as `load` returns them"
    ):
        lb.choose(records=[])


@pytest.mark.skipif(not PUBLISHED, reason="nothing has been published yet")
class TestPublished:
    """What ships with the project, from a checkout and from what a wheel holds."""

    def test_a_folder_of_it_is_what_its_files_say(self):
        results = lb.published("matrix")
        files = [path for path in PUBLISHED if path.parent.name == "matrix"]
        assert sorted(record.key for record in results) == [path.stem for path in files]
        assert results.name == results.suite.name == "matrix"

    def test_a_wheel_gives_the_same_records(self, tmp_path, monkeypatch):
        here = lb.published("sap-sst2")
        file = tmp_path / "published.parquet"
        pack([path.parent for path in PUBLISHED if path.parent.name == "sap-sst2"][:1], file)
        monkeypatch.setattr(sources, "CHECKOUT", tmp_path / "nowhere")
        monkeypatch.setattr(sources, "SHIPPED", file)
        there = lb.published("sap-sst2")
        assert there.records == here.records
        pd.testing.assert_frame_equal(there.frame(), here.frame())
        assert lb.published().records == here.records

    def test_an_unknown_name_is_told_with_the_nearest(self):
        with pytest.raises(
            lb.LeakboardError, match=r"published as 'matrx'\. Did you mean 'matrix'?"
        ):
            lb.published("matrx")

    def test_an_installation_without_records_says_so(self, tmp_path, monkeypatch):
        for place in ("CHECKOUT", "SHIPPED"):
            monkeypatch.setattr(sources, place, tmp_path / "nowhere")
        with pytest.raises(lb.LeakboardError, match="contains no published records"):
            lb.published()

    def test_the_suite_is_loaded_when_it_is_asked_for(self):
        results = lb.published("sap-table3")
        assert results.run == "sap-table3"
        assert results.suite.paper.paper == "SAP"
        assert (results + lb.published("matrix")).suite is None
