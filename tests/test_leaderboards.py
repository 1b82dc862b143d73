"""Leaderboards: records in, tables and figures out."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from records import leak, record
from rich.console import Console
from scipy.stats import ttest_1samp

import bench.contracts as schema
import bench.methods.registry
import bench.scoring.checks
from bench.contracts.channels import Channel
from bench.contracts.claim import Claim
from bench.contracts.errors import LeakboardError
from bench.contracts.record import Record
from bench.contracts.threat import Goal
from leaderboards.figures.labels import Label, place
from leaderboards.figures.legend import keys
from leaderboards.figures.tradeoff import tradeoff
from leaderboards.tables import curves, looks
from leaderboards.tables import summaries as tables
from leaderboards.tables.frame import COLUMNS, export, frame, in_order, load
from leaderboards.tables.frontier import pareto, points
from leaderboards.tables.published import TABLE, published

README = Path(__file__).parents[1] / "results" / "README.md"
BY = {Goal.INVERSION: ("eia-nn", "eia-optimise"), Goal.ATTRIBUTE: ("aia-finetune",)}
KNOWN = {
    "sap": SimpleNamespace(
        colour="#0072b2", marker="o", knob="eta", measured_by=BY, measured_on=()
    ),
    "none": SimpleNamespace(
        colour="#222222", marker="*", knob=None, measured_by={}, measured_on=()
    ),
}


@pytest.fixture(autouse=True)
def _few_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn depends on these two defenses, not on those that happen to be installed."""
    monkeypatch.setattr(bench.methods.registry, "defenses", lambda: KNOWN)


def sweep(task: str = "sst2", seeds: int = 3) -> list[Record]:
    """A defense at three settings, and no defense."""
    made = []
    for seed in range(seeds):
        for eta, success, utility in ((50.0, 0.2, 0.7), (75.0, 0.5, 0.8), (100.0, 0.9, 0.9)):
            shift = 0.01 * seed
            found = [leak(success + shift), leak(success / 2, attack="eia-learned")]
            made.append(record("sap", {"eta": eta}, seed, utility - shift, found, task))
        made.append(record("none", {}, seed, 0.92, [leak(0.99)], task, undefended=True))
    return made


def skipped(**fields: object) -> schema.Leak:
    return leak(None, status="skipped", reason="needs a cut above 0", **fields)


class TestFrame:
    def test_columns_keep_their_order_and_types(self) -> None:
        for table in (frame(sweep()), frame([])):
            assert list(table.columns) == list(COLUMNS)
            assert table.dtypes.astype(str).to_dict() == COLUMNS

    def test_no_leak_and_no_record_is_lost(self) -> None:
        silent = record(
            "sap", {"eta": 1.0}, utility=None, leaks=[], status="diverged", reason="inf"
        )
        table = frame([*sweep(), silent])
        assert len(table) == 3 * (3 * 2 + 1) + 1
        last = table.iloc[-1]
        assert (last["status"], last["reason"], last["attack"]) == ("diverged", "inf", "")
        assert pd.isna(last["utility"])
        assert pd.isna(last["ep"])

    def test_a_failed_cell_does_not_hide_behind_a_leak_that_went_well(self) -> None:
        table = frame([record(status="failed", reason="disk full")])
        assert table[["status", "reason"]].iloc[0].tolist() == ["failed", "disk full"]

    def test_a_skipped_leak_keeps_its_own_reason(self) -> None:
        table = frame([record(leaks=[skipped()])])
        assert table[["status", "reason"]].iloc[0].tolist() == ["skipped", "needs a cut above 0"]

    def test_numbers_are_those_of_the_record(self) -> None:
        made = record(leaks=[leak(0.3, chance=0.1)])
        row = frame([made]).iloc[0]
        assert row["ep"] == 1 - 0.3
        assert (row["ep_low"], row["ep_high"]) == (1 - row["success_high"], 1 - row["success_low"])
        assert row["advantage"] == pytest.approx(0.2 / 0.9)
        assert row["bytes_up"] == made.cost.bytes_up
        assert (row["epoch_bytes_up"], row["epoch_bytes_down"]) == (500_000, 1_000.5)
        names = ["parameters", "tokens", "flops", "megabytes"]
        assert row[[f"bottom_{name}" for name in names]].tolist() == [300, 7, 9_000, 1.5]
        assert (row["chance"], row["utility_chance"]) == (0.1, 0.5)

    def test_a_customer_without_a_bottom_has_no_cost_of_one(self) -> None:
        made = record()
        made = made.model_copy(update={"cost": made.cost.model_copy(update={"bottom": None})})
        row = frame([made]).iloc[0]
        assert pd.isna(row["bottom_flops"])
        assert row["bytes_up"] == made.cost.bytes_up

    def test_step_of_the_moment_is_kept(self) -> None:
        table = frame([record(leaks=[leak(step=40, view="worst"), leak()])])
        assert table["step"].fillna(-9).tolist() == [40, -9]

    def test_flags_of_record_and_leak_are_joined(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = record(leaks=[leak(), leak(view="dev")])
        raised = {(made.key, -1): ("a",), (made.key, 1): ("b", "a")}
        monkeypatch.setattr(bench.scoring.checks, "flags", lambda records: raised)
        assert frame([made])["flags"].tolist() == ["a", "a,b"]

    def test_setups_differ_where_training_does_but_not_where_the_seed_does(self) -> None:
        one, other, longer = record(seed=0), record(seed=1), record(epochs=3)
        setup = frame([one, other, longer])["setup"].tolist()
        assert setup[0] == setup[1] != setup[2]

    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
    def test_an_export_reads_back_as_the_same_frame(self, tmp_path: Path, suffix: str) -> None:
        odd = record(
            "NA", {"text": 'a "b", é'}, utility=None, leaks=[], status="failed", reason="x\ny, 'z'"
        )
        found = [skipped(), leak(1 / 3, goal=Goal.ATTRIBUTE, attribute="gender", channel=None)]
        table = frame([odd, record(utility=2 / 3, limit=None, leaks=found), *sweep()])
        path = tmp_path / "new" / f"table{suffix}"
        export(table, path)
        pd.testing.assert_frame_equal(load(path), table, check_exact=True)
        export(frame([]), path)
        pd.testing.assert_frame_equal(load(path), frame([]))

    def test_an_unknown_suffix_is_told_the_three_known_ones(self, tmp_path: Path) -> None:
        for use in (lambda path: export(frame([]), path), load):
            with pytest.raises(LeakboardError, match=r"'\.xlsx'.*\.csv, \.parquet or \.json"):
                use(tmp_path / "table.xlsx")

    def test_a_failed_export_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "table.csv"
        path.write_text("old")

        def half_written(table: pd.DataFrame, to: Path, index: bool) -> None:
            Path(to).write_text("ha")
            raise OSError("no space left")

        monkeypatch.setattr(pd.DataFrame, "to_csv", half_written)
        with pytest.raises(OSError, match="no space"):
            export(frame([]), path)
        assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


class TestPoints:
    def test_means_and_intervals_over_seeds_are_students(self) -> None:
        found = points(frame(sweep()), "inversion", "eia-nn")
        row = found[found["label"] == "η = 75"].iloc[0]
        expected = ttest_1samp([0.5, 0.49, 0.48], 0).confidence_interval()
        assert row["ep"] == pytest.approx(0.49)
        assert (row["ep_low"], row["ep_high"]) == pytest.approx((expected.low, expected.high))
        assert (row["n_seeds"], row["knob"], row["knob_value"]) == (3, "eta", 75)

    def test_one_seed_keeps_the_interval_inside_the_cell(self) -> None:
        row = points(frame(sweep(seeds=1)), "inversion").iloc[0]
        assert (row["ep_low"], row["ep_high"]) == pytest.approx((0.79, 0.81))
        assert (row["utility_low"], row["utility_high"]) == pytest.approx((0.69, 0.71))

    def test_the_strongest_attack_counts_and_is_named(self) -> None:
        weak, strong = leak(0.3, attack="weak"), leak(0.6, attack="strong")
        other = leak(0.9, attack="other-goal", goal=Goal.LABEL)
        row = points(frame([record(leaks=[weak, strong, other])]), "inversion").iloc[0]
        assert (row["attack"], row["ep"]) == ("strong", 0.4)
        row = points(frame([record(leaks=[weak, strong])]), "inversion", "weak").iloc[0]
        assert (row["attack"], row["ep"]) == ("weak", 0.7)

    def test_a_cell_to_which_only_a_baseline_applies_shows_no_privacy(self) -> None:
        made = [record(leaks=[leak(0.1, attack="prior", channel=None)])]
        assert points(frame(made), "inversion").empty
        assert len(points(frame(made), "inversion", "prior")) == 1

    def test_the_strongest_is_chosen_on_the_mean_and_not_in_each_seed(self) -> None:
        found = [[leak(0.5, attack="a"), leak(b, attack="b")] for b in (0.6, 0.3)]
        made = [record(seed=seed, leaks=leaks) for seed, leaks in enumerate(found)]
        row = points(frame(made), "inversion").iloc[0]
        assert (row["attack"], row["ep"], row["n_seeds"]) == ("a", 0.5, 2)

    def test_the_papers_attack_is_the_declared_one_that_ran(self) -> None:
        weak, strong = leak(0.3), leak(0.9, attack="eia-map")
        deep = [skipped(), leak(0.2, attack="eia-optimise"), strong]
        none = [leak(1.0, attack="logit-gradient"), leak(0.1, attack="prior", channel=None)]
        made = [
            record(leaks=[strong, weak]),
            record(leaks=deep, cut=1),
            record("none", leaks=none),
            record(params={"eta": 9.0}, leaks=[strong]),
        ]
        table = points(frame(made), "inversion", "paper")
        # A defense without authors keeps its place as the reference.
        assert table["attack"].tolist() == ["eia-nn", "eia-optimise", "logit-gradient"]
        assert table["ep"].tolist() == pytest.approx([0.7, 0.8, 0.0])

    def test_the_papers_attack_counts_on_the_channels_of_its_paper_only(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        theirs = {"measured_by": BY, "measured_on": {Channel.ACTIVATIONS}}
        monkeypatch.setitem(KNOWN, "sap", SimpleNamespace(**vars(KNOWN["sap"]) | theirs))
        found = [leak(0.9, channel=Channel.GRADIENTS), leak(0.3, channel=Channel.ACTIVATIONS)]
        row = points(frame([record(leaks=found)]), "inversion", "paper").iloc[0]
        assert row["ep"] == 0.7

    def test_the_strongest_parameters_of_an_attack_speak_for_it(self) -> None:
        found = [leak(s, params={"labelled": n}) for n, s in ((0.1, 0.4), (0.5, 0.6), (0.9, 0.5))]
        row = points(frame([record(leaks=found)]), "inversion", "eia-nn").iloc[0]
        assert (row["attack_params"], row["ep"]) == ('{"labelled": 0.5}', 0.4)

    def test_attributes_are_not_mixed(self) -> None:
        traits = {"gender": (0.7, 0.6), "age": (0.5, 0.8)}
        found = [
            leak(s, attack=a, goal=Goal.ATTRIBUTE, attribute=name)
            for name, two in traits.items()
            for a, s in zip(("aia-mlp", "aia-finetune"), two, strict=True)
        ]
        table = points(frame([record(leaks=found)]), "attribute")
        assert table[["attribute", "attack"]].to_numpy().tolist() == [
            ["gender", "aia-mlp"],
            ["age", "aia-finetune"],
        ]
        assert pareto(table).index.tolist() == [0, 1]

    def test_an_unknown_attack_is_told_the_nearest_one(self) -> None:
        with pytest.raises(LeakboardError, match="Did you mean 'eia-nn'"):
            points(frame(sweep()), "inversion", "eia-n")

    def test_only_the_first_view_of_an_attack_counts(self) -> None:
        made = record(leaks=[leak(0.3, view="train"), leak(0.8, view="dev")])
        row = points(frame([made]), "inversion").iloc[0]
        assert (row["view"], row["ep"]) == ("train", 0.7)

    def test_an_old_version_of_an_attack_does_not_speak_for_the_new_one(self) -> None:
        made = record(leaks=[leak(0.8, version=1), leak(0.3, version=2)])
        assert points(frame([made]), "inversion")["ep"].tolist() == [0.7]

    def test_a_cell_present_twice_is_one_seed(self) -> None:
        row = points(frame([record(), record()]), "inversion").iloc[0]
        assert row["n_seeds"] == 1
        assert row["ep_low"] < row["ep"]

    def test_cells_trained_differently_are_not_averaged(self) -> None:
        made = [record(seed=0), record(seed=1, epochs=9), record(seed=2, limit=None)]
        assert points(frame(made), "inversion")["n_seeds"].tolist() == [1, 1, 1]

    def test_skipped_and_failed_attacks_count_as_nothing(self) -> None:
        made = [record(leaks=[skipped()]), record(seed=1, status="failed", reason="boom")]
        assert points(frame(made), "inversion").empty

    def test_a_defense_unknown_here_is_labelled_by_its_only_varying_number(self) -> None:
        made = [record("mine", {"noise": n, "mode": "a", "on": True}) for n in (0.5, 2.0)]
        assert points(frame(made), "inversion")["label"].tolist() == ["noise = 0.5", "noise = 2"]
        made += [record("mine", {"noise": 2.0, "steps": 5})]
        assert set(points(frame(made), "inversion")["label"]) == {"mine"}


GRID = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")])


class TestPareto:
    @given(st.lists(st.tuples(st.sampled_from("ab"), GRID, GRID), max_size=12))
    def test_exactly_the_points_that_nothing_beats_in_both_stay(
        self, rows: list[tuple[str, float, float]]
    ) -> None:
        every = pd.DataFrame(rows, columns=["task", "utility", "ep"]).assign(attribute="")
        wanted = [
            i
            for i, (task, utility, ep) in enumerate(rows)
            if not np.isnan([utility, ep]).any()
            and not any(t == task and u > utility and e > ep for t, u, e in rows)
        ]
        assert pareto(every).index.tolist() == wanted

    def test_rows_with_one_index_value_are_not_confused(self) -> None:
        both = {"task": "a", "attribute": "", "utility": [0.9, 0.1], "ep": [0.9, 0.1]}
        every = pd.DataFrame(both, index=[7, 7])
        assert pareto(every)["ep"].tolist() == [0.9]


class TestLooks:
    def test_a_new_method_shifts_no_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = [looks.look(name) for name in ("sap", "mine")]
        more = {
            "aaa": SimpleNamespace(
                colour="#111111", marker="x", knob="k", measured_by={}, measured_on=()
            ),
            **KNOWN,
        }
        monkeypatch.setattr(bench.methods.registry, "defenses", lambda: more)
        assert [looks.look(name) for name in ("sap", "mine")] == before
        assert before[0] == looks.Look("#0072b2", "o", "eta", BY, ())
        assert before[1].colour in looks.PALETTE

    def test_parameters_read_as_words(self) -> None:
        assert (
            looks.settings('{"eta": 75.0, "k": null, "m": 2}', ["eta", "k"]) == "η = 75, k = none"
        )


class TestCurves:
    def test_a_curve_holds_what_differs_only_in_the_knob_in_its_order(self) -> None:
        made = [
            record("sap", {"eta": eta, "bottom": bottom})
            for eta in (100.0, 50.0)
            for bottom in ("frozen", "trainable")
        ]
        found = curves.measured(points(frame(made), "inversion"))
        assert [c.name for c in found] == ["sap (frozen)", "sap (trainable)"]
        assert [c.rows["knob_value"].tolist() for c in found] == [[50, 100], [50, 100]]
        assert found[0].look == found[1].look
        assert found[0].style != found[1].style

    def test_models_and_data_limits_do_not_share_a_curve(self) -> None:
        made = [
            record("sap", {"eta": 1.0}, model=m, limit=n) for m in ("a", "b") for n in (10, None)
        ]
        found = curves.measured(points(frame(made), "inversion"))
        assert [c.name for c in found] == [
            "sap (a, limit = 10)",
            "sap (a, all data)",
            "sap (b, limit = 10)",
            "sap (b, all data)",
        ]

    def test_printed_points_are_hollow_and_say_where_they_stand(self) -> None:
        found = curves.printed(published("SAP", ["Table 3"]))
        assert all(c.hollow and len(c.rows) == 6 for c in found)
        assert found[1].name == "sap (SAP, Table 3, roberta-large, trainable)"
        assert found[0].rows["label"].iloc[0] == "η = 45"

    def test_no_noise_stands_at_the_far_end_of_a_printed_curve(self) -> None:
        found = curves.printed(published("SAP", ["Table 4"]))
        assert [c.rows["label"].iloc[-1] for c in found] == ["η = none"] * 4


class TestTradeoff:
    def test_two_renderings_have_the_same_bytes(self, tmp_path: Path) -> None:
        found = points(frame([*sweep(), *sweep("mrpc")]), "inversion")
        once = tradeoff(found, tmp_path / "a" / "plot.png", "Title", published("SAP", ["Table 3"]))
        again = tradeoff(found, tmp_path / "b" / "plot", "Title", published("SAP", ["Table 3"]))
        assert [p.name for p in once] == ["plot.png", "plot.svg", "plot.pdf"]
        assert [p.read_bytes() for p in once] == [p.read_bytes() for p in again]

    def test_a_dot_in_the_name_is_no_suffix(self, tmp_path: Path) -> None:
        made = tradeoff(points(frame(sweep()), "inversion"), tmp_path / "eta.75", "Title")
        assert [p.name for p in made] == ["eta.75.png", "eta.75.svg", "eta.75.pdf"]

    def test_the_figure_says_what_it_shows(self, tmp_path: Path) -> None:
        found = points(frame(sweep()), "inversion")
        svg = tradeoff(found, tmp_path / "p", "My title", published("SAP", ["Table 3"]))[1]
        # The letters are drawn as outlines; each text stands in a comment beside them.
        words = re.findall(r"<!-- (.*?) -->", svg.read_text("utf-8"))
        text = " ".join(words)
        assert {"My title", "sst2", "better ↗", "none", "η = 50", "undefended"} <= set(words)
        assert "Empirical privacy against inversion →" in text
        assert "1 − token accuracy" in text
        assert "Utility: accuracy →" in text
        assert "at most 2,000 examples per split; 3 seeds" in text
        assert "Hollow points are as printed, for roberta-large" in text

    def test_other_tasks_and_goals_of_a_paper_are_not_drawn(self, tmp_path: Path) -> None:
        found = points(frame(sweep("reviews")), "inversion")
        bare = tradeoff(found, tmp_path / "bare", "T")
        with_paper = tradeoff(found, tmp_path / "paper", "T", published("SAP", ["Table 3"]))
        assert bare[0].read_bytes() == with_paper[0].read_bytes()

    def test_a_point_named_directly_is_not_named_again_in_the_legend(self) -> None:
        found = curves.measured(points(frame(sweep()), "inversion"))
        assert [handle.get_label() for handle in keys(found)] == ["sap"]

    def test_nothing_to_plot_is_said_in_words(self, tmp_path: Path) -> None:
        with pytest.raises(LeakboardError, match="no attack of this goal has an ok result"):
            tradeoff(points(frame(sweep()), "label"), tmp_path / "p", "Title")
        made = [record(utility=None)]
        with pytest.raises(LeakboardError, match="none of the 1 points has a utility"):
            tradeoff(points(frame(made), "inversion"), tmp_path / "p", "Title")
        assert list(tmp_path.iterdir()) == []

    @given(st.lists(st.tuples(GRID, GRID), min_size=1, max_size=25))
    def test_labels_never_overlap_and_required_ones_all_stay(
        self, xy: list[tuple[float, float]]
    ) -> None:
        where = np.unique(np.nan_to_num(np.array(xy)), axis=0)
        figure = Figure(figsize=(5, 5))
        ax = figure.subplots()
        ax.set(xlim=(-0.3, 1.3), ylim=(-0.3, 1.3))
        black = (0.0, 0.0, 0.0)
        labels = [Label(x, y, f"η = {i}", black, required=i < 3) for i, (x, y) in enumerate(where)]
        place(ax, labels, where, [where], 6.5)
        boxes = [text.get_window_extent() for text in ax.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert {f"η = {i}" for i in range(min(3, len(where)))} <= {t.get_text() for t in ax.texts}


def printed_text(
    records: list, width: int = 240, everything: bool = False, compact: bool = False
) -> str:
    console = Console(width=width, file=StringIO())
    rows = frame(in_order(records))
    for part in tables.best(rows) if compact else tables.summary(rows, everything):
        console.print(part)
    return console.file.getvalue()


class TestTables:
    def test_only_parameters_that_vary_are_shown(self) -> None:
        text = printed_text(
            [record("sap", {"eta": eta, "bottom": "frozen"}) for eta in (50.0, 75.0)]
        )
        assert "η=50" in text
        assert "frozen" not in text

    def test_seeds_are_one_row_with_mean_and_interval(self) -> None:
        text = printed_text(sweep())
        assert text.count("η=") == 3
        assert "0.790 ±0.02" in text
        assert "0.490 [.465, .515]" in text

    def test_a_weaker_protection_of_a_method_stands_above_a_stronger_one(self) -> None:
        made = [record("sap", {"eta": eta}) for eta in (50.0, None, 75.0)]
        text = printed_text([*made, record("none", {}, undefended=True)])
        places = [text.index(word) for word in ("none", "η=none", "η=75", "η=50")]
        assert places == sorted(places)

    def test_channels_of_one_attack_stay_apart_and_are_named(self) -> None:
        about = {"attack": "spectral", "goal": Goal.LABEL}
        found = [
            leak(success, channel=channel, view=view, **about)
            for channel, success in ((Channel.ACTIVATIONS, 0.9), (Channel.ADAPTER_GRADIENTS, 0.7))
            for view in ("worst", "last")
        ]
        one = leak(0.6, attack="unmix", goal=Goal.LABEL, channel=Channel.GRADIENTS, view="worst")
        assert "…" not in printed_text([record(leaks=[*found, one])], width=80)
        text = printed_text([record(leaks=[*found, one])], width=120)
        for line in (
            "spectral activations 0.100",
            "spectral activations last 0.100",
            "spectral adapter-gradients 0.300",
            "spectral adapter-gradients last 0.300",
            "unmix 0.400",
        ):
            assert line in " ".join(text.split())

    def test_numbers_stay_whole_on_a_terminal_of_80_columns(self) -> None:
        text = printed_text(sweep(), width=80)
        assert "0.490 [.465, .515]" in text
        assert "…" not in text

    def test_a_skipped_attack_stands_once_with_its_reason_and_a_failed_cell_in_its_row(
        self,
    ) -> None:
        bad = record("sap", {"eta": 9.0}, utility=None, leaks=[], status="failed", reason="[b]oom")
        text = printed_text([record(seed=s, leaks=[leak(), skipped()]) for s in (0, 1)] + [bad])
        assert text.count("needs a cut above 0") == 1
        assert "failed: [b]oom" in text

    def test_what_reads_nothing_is_shown_only_when_asked_for(self) -> None:
        made = [record(leaks=[leak(), leak(0.1, attack="prior", channel=None)])]
        assert "prior" not in printed_text(made)
        assert "prior" in printed_text(made, everything=True)

    def test_a_seed_that_failed_is_not_averaged_away(self) -> None:
        lost = leak(None, status="failed", reason="boom")
        text = printed_text([record(seed=0), record(seed=1, leaks=[lost])])
        assert "failed: boom" in text
        assert "0.500 [.490, .510]" in text

    def test_rows_that_differ_only_in_training_are_told_apart(self) -> None:
        text = printed_text([record(epochs=2), record(epochs=5)])
        assert "epochs=2" in text
        assert "epochs=5" in text

    def test_the_compact_view_has_both_numbers_and_why_an_attack_is_missing(self) -> None:
        idle = leak(None, attack="eia-optimise", status="skipped", reason="nothing to [search]")
        lost = leak(None, attack="logit-gradient", status="failed", goal=Goal.LABEL, reason="boom")
        strong = leak(0.8, attack="eia-map")
        made = [record(seed=seed, leaks=[leak(0.3), strong, idle, lost]) for seed in (0, 1)]
        text = printed_text(made, width=80, compact=True)
        (inversion,) = [line for line in text.splitlines() if "inversion " in line and "0." in line]
        assert re.search(r"0\.700 +0\.200 \[\.200, \.200\] +eia-map +0\.950 +1", inversion)
        # A goal of which nothing came is a row, too; only notes say why.
        assert re.search(r"label +– +– +– +– +2", text)
        only = [leak(0.4, attack="prior", channel=None)]
        assert re.search(
            r"inversion +– +– +– +0\.950", printed_text([record(leaks=only)], compact=True)
        )
        assert "note 1, eia-optimise (inversion): skipped: nothing to [search]" in text
        assert "note 2, logit-gradient (label): failed: boom" in text
        assert "…" not in text

    def test_the_compact_view_has_a_row_for_each_attribute_and_names_what_is_swept(self) -> None:
        found = [
            leak(s, attack="aia-mlp", goal=Goal.ATTRIBUTE, attribute=name, params={"labelled": n})
            for n, s in ((0.1, 0.5), (0.5, 0.6))
            for name in ("gender", "age")
        ]
        text = printed_text([record(leaks=found)], compact=True)
        assert re.search(r"gender +– +0\.400 .* aia-mlp labelled=0\.5", text)
        assert re.search(r"age +– +0\.400 .* aia-mlp labelled=0\.5", text)

    def test_the_compact_view_tells_of_cells_that_gave_nothing(self) -> None:
        bad = record("sap", {"eta": 9.0}, utility=None, leaks=[], status="failed", reason="boom")
        off = record("sap", cut=3, utility=None, leaks=[], status="skipped", reason="at 0 only")
        text = printed_text([bad, off], compact=True)
        assert "failed: boom" in text
        assert "skipped: sap: at 0 only" in text

    def test_failures_list_cells_and_attacks_but_not_what_was_skipped(self) -> None:
        cell = record("sap", {"eta": 1.0}, status="diverged", reason="loss is inf")
        lost = leak(None, status="out-of-memory", reason="", attack="eia-optimise")
        lines = tables.failures(frame([cell, record(seed=3, leaks=[leak(), skipped(), lost])]))
        assert len(lines) == 2
        assert lines[0].endswith("diverged: loss is inf")
        assert "seed 3, eia-optimise: out-of-memory: no reason given" in lines[1]


class TestPublished:
    def test_a_printed_point_has_both_numbers_as_shares(self) -> None:
        found = published("SAP", ["Table 3"], "roberta-large")
        assert len(found) == 12
        first = found.iloc[0]
        assert first["params"] == '{"bottom": "frozen", "eta": 45, "split": 0}'
        assert (first["ep"], first["utility"]) == pytest.approx((0.5077, 0.8075))

    def test_a_number_that_the_paper_does_not_print_is_missing(self) -> None:
        found = published("SAP", ["Table 2", "Section 5.2"])
        assert found[found["defense"] == "none"]["ep"].isna().all()
        assert found[found["defense"] == "sap-cti"]["ep"].tolist() == pytest.approx([0.3829])
        assert found[found["defense"] == "sap-cti"]["utility"].tolist() == pytest.approx([0.9508])

    @pytest.mark.parametrize(
        ("asked", "hint"),
        [
            (("SAPP", ["Table 3"], None), "SAP"),
            (("SAP", ["Table 9"], None), "Table 4"),
            (("SAP", ["Table 3"], "gpt2"), "roberta-large"),
        ],
    )
    def test_an_unknown_name_is_told_the_known_ones(
        self, asked: tuple[str, list[str], str | None], hint: str
    ) -> None:
        with pytest.raises(LeakboardError, match=hint):
            published(*asked)

    def test_no_printed_share_is_above_one(self) -> None:
        table = pd.read_csv(TABLE)
        for paper, rows in table[table["metric"] != "exposure"].groupby("paper"):
            numbers = published(paper, list(rows["artefact"].unique()))[
                ["utility", "ep"]
            ].to_numpy()
            assert np.nanmax(numbers) <= 1
            assert np.nanmin(numbers) >= 0


class TestReadme:
    def explained(self, section: str) -> list[str]:
        parts = re.split(r"^###? ", README.read_text("utf-8"), flags=re.MULTILINE)
        text = dict(part.split("\n", 1) for part in parts)[section]
        return re.findall(r"^\| `([^`]+)` \| .*\w", text, flags=re.MULTILINE)

    def test_every_export_column_is_explained_in_order(self) -> None:
        assert self.explained("Columns of an export") == list(COLUMNS)

    @pytest.mark.parametrize(
        "part",
        [
            schema.Record,
            schema.Cell,
            schema.MethodSpec,
            schema.TrainSettings,
            schema.Recording,
            schema.Plant,
            schema.Estimate,
            schema.Leak,
            schema.Point,
            schema.Projection,
            Claim,
            schema.Cost,
            schema.BottomCost,
            schema.Provenance,
        ],
    )
    def test_every_field_of_a_record_is_explained(self, part: type[schema.Part]) -> None:
        assert self.explained(part.__name__) == list(part.model_fields)

    def test_every_status_and_flag_is_explained(self) -> None:
        assert self.explained("Statuses") == list(get_args(schema.Status))
        assert self.explained("Flags") == list(bench.scoring.checks.FLAGS)
