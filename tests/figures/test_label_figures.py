"""Figures of label privacy show the numbers of the records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from records import estimate, leak, record

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.record import Point, Projection
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.figures.drawing import KINDS, Request, draw, plots
from leakboard.leaderboards.tables.record_set import RecordSet

KINDS_OF_LABELS = ("training", "sensitivity", "bars", "pca")


def found(attack, success, channel=Channel.ACTIVATIONS, curve=()):
    points = [
        Point(step=step, part=0, recipient="vendor", success=estimate(value, chance=0.55))
        for step, value in curve
    ]
    return leak(
        success, attack, Goal.LABEL, 0.5, view="worst", channel=channel, step=0, curve=points
    )


def cell(defense, seed, spectral, weight=None, **fields):
    leaks = [
        found("spectral", spectral, curve=[(0, 0.55), (9, spectral)]),
        found("kmeans", 0.6, curve=[(0, 0.6), (9, 0.6)]),
        found("logreg", 0.97),
        found("spectral", 0.99, Channel.GRADIENTS, [(0, 0.99), (9, 0.99)]),
    ]
    params = {} if weight is None else {"weight": weight, "sigma": 1.0}
    made = record(defense, params, seed, leaks=leaks, task="sst2", **fields)
    shown = Projection(channel=Channel.ACTIVATIONS, step=9, part=0, recipient="vendor", points=[[0, 1], [2, 3], [4, 5]], truth=[0, 1, 0])  # fmt: skip
    return made.model_copy(update={"loss": [0.7, 0.5 - seed / 10], "projections": [shown]})


RECORDS = [
    one
    for seed in (0, 1)
    for one in (
        cell("none", seed, 0.98, undefended=True),
        cell("p3eft", seed, 0.98, 0.0, undefended=True),
        cell("p3eft", seed, 0.8, 0.1),
        cell("p3eft", seed, 0.7 + seed / 10, 0.3),
    )
]
FOUND = replace(RecordSet.of(RECORDS, "mine"), run="p3eft-figure4")


def only(kind):
    (plot,) = plots(FOUND, Request(kind)).values()
    return plot


def test_the_leak_over_training_is_the_largest_at_each_step_in_the_mean_over_seeds():
    activations, gradients, loss = only("training").panels
    lines = {one.name: [p.y.value for p in one.points] for one in activations.series}
    assert lines["P³EFT, weight = 0.3"] == pytest.approx([0.6, 0.75])
    assert [p.y.value for p in gradients.series[0].points] == pytest.approx([0.99, 0.99])
    assert [p.y.value for p in loss.series[0].points] == pytest.approx([0.7, 0.45])
    assert activations.references[0].value == pytest.approx(0.55)


def test_seeds_whose_steps_differ_are_compared_moment_by_moment():
    records = [cell("none", 0, 0.98), cell("none", 1, 0.9)]
    for each in records[1].leaks:
        each.curve[:] = [one.model_copy(update={"step": one.step + 1}) for one in each.curve]
    (plot,) = plots(RecordSet.of(records, "mine"), Request("training")).values()
    activations, _, loss = plot.panels
    ends = [(p.x.value, p.y.value) for p in activations.series[0].points]
    assert ends == [(0.5, pytest.approx(0.6)), (9.5, pytest.approx(0.94))]
    assert [p.x.value for p in loss.series[0].points] == [0, 9.5]


def test_no_band_over_training_leaves_what_is_possible():
    ends = [p.y for one in only("training").panels[0].series for p in one.points]
    assert max(one.high for one in ends) <= 1.0
    assert min(one.low for one in ends) >= 0.0


def test_attackers_of_the_paper_any_on_activations_and_any_at_all_have_a_panel_each():
    theirs, activations, every = only("sensitivity").panels
    assert [one.title.split("\n")[1] for one in (theirs, activations, every)] == [
        "attacks of P³EFT's authors",
        "any attack on activations",
        "any attack",
    ]
    across = [
        [p.x.value for one in panel.series for p in one.points]
        for panel in (theirs, activations, every)
    ]
    assert across[0] == pytest.approx([0.3 / 0.48, 0.25 / 0.48])  # at the worst moment, above 0.5
    assert across[1] == pytest.approx([1.0, 1.0], abs=0.03)
    assert across[2] == pytest.approx([1.0, 1.0])


def test_bars_have_utility_the_strongest_attack_the_authors_and_printed_numbers():
    utility, success = only("bars").panels
    names = [name for _, name in utility.y.ticks]
    assert names[0] == "No protection"
    assert set(names[1:]) == {f"P³EFT, weight = {weight}" for weight in ("0", "0.1", "0.3")}
    strongest = [one.points[0].x.value for one in success.series if not one.name]
    assert strongest == pytest.approx([0.99] * 4)
    theirs = {
        names[round(one.points[0].y.value)]: one.points[0].x.value
        for one in success.series
        if one.name.startswith("attacks of")
    }
    assert theirs["P³EFT, weight = 0.1"] == pytest.approx(0.8)
    assert theirs["P³EFT, weight = 0.3"] == pytest.approx(0.75)
    assert any(one.hollow and one.name.endswith("as printed") for one in utility.series)


def test_vectors_of_one_component_are_drawn():
    made = cell("none", 0, 0.98)
    thin = made.projections[0].model_copy(update={"points": [[0], [3]], "truth": [0, 1]})
    made = made.model_copy(update={"projections": [thin]})
    (plot,) = plots(RecordSet.of([made], "mine"), Request("pca")).values()
    zero, one = plot.panels[0].series
    assert [(p.x.value, p.y.value) for p in (*zero.points, *one.points)] == [(0, 0), (3, 0)]


def test_projections_stand_with_a_colour_for_each_label():
    found = plots(FOUND, Request("pca"))
    assert next(iter(found)) == "mine-pca-sst2-none"
    zero, one = next(iter(found.values())).panels[0].series
    assert [(p.x.value, p.y.value) for p in zero.points] == [(0, 1), (4, 5)]
    assert zero.colour != one.colour


@pytest.mark.parametrize("kind", KINDS_OF_LABELS)
def test_every_kind_is_drawn(kind, tmp_path):
    assert kind in KINDS
    files = draw(FOUND, tmp_path, Request(kind))
    assert {path.suffix for path in files} == {".png", ".svg", ".pdf", ".txt"}


@pytest.mark.parametrize("kind", KINDS_OF_LABELS)
def test_without_what_it_shows_a_kind_says_so(kind, tmp_path):
    with pytest.raises(LeakboardError, match="nothing to plot: "):
        draw(RecordSet.of([record()], "mine"), tmp_path, Request(kind))
