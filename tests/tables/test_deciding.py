"""The attack that decides."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from few_methods import BY, FEW
from records import leak, record, skipped, sweep

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.points import points

pytestmark = pytest.mark.usefixtures("few_methods")


def test_the_strongest_attack_counts_and_is_named() -> None:
    weak, strong = leak(0.3, attack="weak"), leak(0.6, attack="strong")
    other = leak(0.9, attack="other-goal", goal=Goal.LABEL)
    row = points(frame([record(leaks=[weak, strong, other])]), "inversion").iloc[0]
    assert (row["attack"], row["ep"]) == ("strong", 0.4)
    row = points(frame([record(leaks=[weak, strong])]), "inversion", "weak").iloc[0]
    assert (row["attack"], row["ep"]) == ("weak", 0.7)


def test_a_cell_to_which_only_a_baseline_applies_shows_no_privacy() -> None:
    made = [record(leaks=[leak(0.1, attack="prior", channel=None)])]
    assert points(frame(made), "inversion").empty
    assert len(points(frame(made), "inversion", "prior")) == 1


def test_the_strongest_is_chosen_on_the_mean_and_not_in_each_seed() -> None:
    found = [[leak(0.5, attack="a"), leak(b, attack="b")] for b in (0.6, 0.3)]
    made = [record(seed=seed, leaks=leaks) for seed, leaks in enumerate(found)]
    row = points(frame(made), "inversion").iloc[0]
    assert (row["attack"], row["ep"], row["n_seeds"]) == ("a", 0.5, 2)


def test_the_papers_attack_is_the_declared_one_that_ran() -> None:
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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = {"measured_by": BY, "measured_on": {Channel.ACTIVATIONS}}
    monkeypatch.setitem(FEW, "sap", SimpleNamespace(**vars(FEW["sap"]) | theirs))
    found = [leak(0.9, channel=Channel.GRADIENTS), leak(0.3, channel=Channel.ACTIVATIONS)]
    row = points(frame([record(leaks=found)]), "inversion", "paper").iloc[0]
    assert row["ep"] == 0.7


def test_the_strongest_parameters_of_an_attack_speak_for_it() -> None:
    found = [leak(s, params={"labelled": n}) for n, s in ((0.1, 0.4), (0.5, 0.6), (0.9, 0.5))]
    row = points(frame([record(leaks=found)]), "inversion", "eia-nn").iloc[0]
    assert (row["attack_params"], row["ep"]) == ('{"labelled": 0.5}', 0.4)


def test_an_unknown_attack_is_told_the_nearest_one() -> None:
    with pytest.raises(LeakboardError, match="Did you mean 'eia-nn'"):
        points(frame(sweep()), "inversion", "eia-n")


def test_only_the_first_view_of_an_attack_counts() -> None:
    made = record(leaks=[leak(0.3, view="train"), leak(0.8, view="dev")])
    row = points(frame([made]), "inversion").iloc[0]
    assert (row["view"], row["ep"]) == ("train", 0.7)


def test_an_old_version_of_an_attack_does_not_speak_for_the_new_one() -> None:
    made = record(leaks=[leak(0.8, version=1), leak(0.3, version=2)])
    assert points(frame([made]), "inversion")["ep"].tolist() == [0.7]


def test_skipped_and_failed_attacks_count_as_nothing() -> None:
    made = [record(leaks=[skipped()]), record(seed=1, status="failed", reason="boom")]
    assert points(frame(made), "inversion").empty
