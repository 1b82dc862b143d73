"""Points of privacy and utility, and those that nothing beats."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import leak, record

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.tables.frame import frame
from leakboard.leaderboards.tables.points import pareto, points

pytestmark = pytest.mark.usefixtures("few_methods", "certified")


def test_attributes_are_not_mixed() -> None:
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


def test_a_defense_unknown_here_is_labelled_by_its_only_varying_number() -> None:
    made = [record("mine", {"noise": n, "mode": "a", "on": True}) for n in (0.5, 2.0)]
    assert points(frame(made), "inversion")["label"].tolist() == ["noise = 0.5", "noise = 2"]
    made += [record("mine", {"noise": 2.0, "steps": 5})]
    assert set(points(frame(made), "inversion")["label"]) == {"mine"}


GRID = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")])


@given(st.lists(st.tuples(st.sampled_from("ab"), GRID, GRID), max_size=12))
def test_exactly_the_points_that_nothing_beats_in_both_stay(
    rows: list[tuple[str, float, float]],
) -> None:
    every = pd.DataFrame(rows, columns=["task", "utility", "ep"])
    every = every.assign(attribute="", standing="certified")
    wanted = [
        i
        for i, (task, utility, ep) in enumerate(rows)
        if not np.isnan([utility, ep]).any()
        and not any(t == task and u > utility and e > ep for t, u, e in rows)
    ]
    assert pareto(every).index.tolist() == wanted


def test_rows_with_one_index_value_are_not_confused() -> None:
    both = {
        "task": "a",
        "attribute": "",
        "utility": [0.9, 0.1],
        "ep": [0.9, 0.1],
        "standing": "certified",
    }
    every = pd.DataFrame(both, index=[7, 7])
    assert pareto(every)["ep"].tolist() == [0.9]
