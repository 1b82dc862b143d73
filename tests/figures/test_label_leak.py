"""Figures of label privacy show the numbers of the records."""

from __future__ import annotations

import pytest
from records import estimate, leak, record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.record import Point, Projection
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.figures.kinds.bars import bars
from leakboard.leaderboards.figures.kinds.pca import pca
from leakboard.leaderboards.figures.kinds.sensitivity import sensitivity
from leakboard.leaderboards.figures.kinds.training import training
from leakboard.leaderboards.figures.label_leak import (
    ON_ACTIVATIONS,
    leaks,
    records_by_setting,
    strongest_leaks,
)
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.printed import printed


def found(attack, success, view="worst", channel=Channel.ACTIVATIONS, curve=()):
    points = [
        Point(step=step, part=0, recipient="vendor", success=estimate(value, chance=0.55))
        for step, value in curve
    ]
    return leak(
        success,
        attack,
        Goal.LABEL,
        chance=0.6,
        view=view,
        channel=channel,
        step=0,
        curve=points,
    )


def cell(defense, seed, spectral, kmeans=0.5, weight=None, **fields):
    leaks = [
        found("spectral", spectral, curve=[(0, 0.5), (9, spectral)]),
        found("spectral", spectral - 0.1, view="last"),
        found("kmeans", kmeans),
        found("logreg", 0.99),
        found("spectral", 1.0, channel=Channel.GRADIENTS, curve=[(0, 1.0), (9, 1.0)]),
    ]
    params = {} if weight is None else {"weight": weight, "sigma": fields.pop("sigma", 1.0)}
    return record(defense, params, seed, leaks=leaks, task="sst2", **fields)


def test_leak_is_the_largest_of_the_three_attacks_on_activations_at_the_worst_moment():
    rows = leaks(frame([cell("none", 0, 0.9), cell("none", 1, 0.8, kmeans=0.85)]))
    (row,) = rows.to_dict("records")
    assert row["success"] == pytest.approx((0.9 + 0.85) / 2)
    assert row["n_seeds"] == 2


def test_beside_what_the_paper_measures_stands_what_the_strongest_attack_reads():
    rows = frame(
        [
            record(
                "none",
                leaks=[
                    found("spectral", 0.7),
                    found("kmeans", 0.65, channel=Channel.RECOMPUTED),
                    found("activation-drift", 0.8, channel=Channel.RECOMPUTED),
                    found("logreg", 0.99, channel=Channel.GRADIENTS),
                ],
            )
        ]
    )
    told = [leaks(rows), strongest_leaks(rows, ON_ACTIVATIONS), strongest_leaks(rows)]
    assert [one["success"].tolist() for one in told] == [[0.7], [0.8], [0.99]]


def test_figures_of_the_papers_leak_draw_the_strongest_too(tmp_path, saved_by):
    records = [cell("p3eft", 0, 0.8, weight=w) for w in (0.1, 0.3)]
    drawn = saved_by("kinds.sensitivity")
    sensitivity(frame(records), tmp_path / "x", "t")
    panels = drawn[0].subfigs[0].axes
    across = [ax.lines[0].get_xdata().tolist() for ax in panels]
    assert across == [[0.8, 0.8], [0.99, 0.99], [1.0, 1.0]]
    drawn = saved_by("kinds.bars")
    bars(frame(records), None, tmp_path / "y", "t")
    _, strongest = drawn[0].subfigs[0].axes[1].collections[-2:]
    assert [segment[0][1] for segment in strongest.get_segments()] == [1.0, 1.0]


def test_records_without_these_attacks_are_told_what_to_add():
    with pytest.raises(LeakboardError, match="spectral, norm, kmeans"):
        leaks(frame([record()]))


def settings_beside_the_papers(records, out):
    known = printed("P3EFT", ["later submission table"])
    return bars(frame(records), known, out / "x", "t")


@pytest.mark.parametrize(
    "drawn",
    [
        lambda records, out: training(records, out / "x", "t"),
        lambda records, out: sensitivity(frame(records), out / "x", "t"),
        lambda records, out: pca(records, out, "x"),
        settings_beside_the_papers,
    ],
    ids=["training", "sensitivity", "pca", "bars"],
)
def test_every_kind_draws_three_formats_and_the_same_bytes_again(drawn, tmp_path):
    shown = Projection(
        channel=Channel.ACTIVATIONS,
        step=3,
        part=0,
        recipient="vendor",
        points=[[1000, -4], [-900, 7]],
        truth=[1, 0],
    )
    records = [
        *[cell("none", seed, 0.9, projections=[shown]) for seed in (0, 1)],
        *[cell("p3eft", s, 0.6 + s / 50, weight=w) for w in (0.1, 0.3) for s in (0, 1)],
        *[cell("p3eft", s, 0.7, weight=0.1, sigma=0.0) for s in (0, 1)],
    ]

    def bytes_in(folder):
        return {path.name: path.read_bytes() for path in drawn(records, tmp_path / folder)}

    first = bytes_in("one")
    assert {name.rpartition(".")[2] for name in first} == {"png", "svg", "pdf"}
    assert first == bytes_in("two")


def test_settings_of_one_defense_are_named_by_what_varies():
    records = [cell("p3eft", 0, 0.8, weight=0.1), cell("p3eft", 0, 0.7, weight=0.1, sigma=0.0)]
    assert [name for _, name in records_by_setting(records)] == ["p3eft σ = 1", "p3eft σ = 0"]


def test_the_leak_over_training_is_the_largest_at_each_step(tmp_path, saved_by):
    drawn = saved_by("kinds.training")
    training([cell("p3eft", 0, 0.8, weight=0.1)], tmp_path / "x", "t")
    activations = drawn[0].subfigs[0].axes[0]
    assert activations.lines[0].get_xydata().tolist() == [[0, 0.5], [9, 0.8]]


def test_no_band_over_training_leaves_what_is_possible(tmp_path, saved_by):
    drawn = saved_by("kinds.training")
    far = [cell("none", 0, 0.99), cell("none", 1, 0.3)]  # a mean ± 4.4 standard deviations
    training(far, tmp_path / "x", "t")
    (band,) = drawn[0].subfigs[0].axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 1)


def test_without_curves_over_training_the_figure_says_why(tmp_path):
    with pytest.raises(LeakboardError, match="curve over training"):
        training([record()], tmp_path / "x", "t")
