"""The table of speed: what a number means beside its goal and limit, and what may be asked for."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

import pytest
from records import record
from rich.console import Console
from site_records import digests, kept

from leakboard.bench.records.store import Store
from leakboard.bench.speed import __main__ as speed
from leakboard.bench.speed import publishing, tuning
from leakboard.bench.speed.figures import Figure, table


@pytest.mark.parametrize(
    ("value", "more", "verdict"),
    [
        (1.0, False, "met"),
        (1.5, False, "within the limit"),
        (2.1, False, "missed"),
        (2.0, True, "met"),
        (1.5, True, "within the limit"),
        (0.9, True, "missed"),
    ],
)
def test_a_verdict_knows_which_side_is_better(value, more, verdict):
    goal, limit = (2.0, 1.0) if more else (1.0, 2.0)
    assert Figure("time", value, goal, limit, more=more).verdict == verdict


def test_a_figure_without_a_goal_has_no_verdict():
    assert Figure("tokens", 12_345.6, unit="tokens/s").verdict == ""


def test_one_table_shows_each_figure_with_its_goal_and_limit():
    console = Console(width=120, record=True, file=StringIO())
    found = [
        Figure("start", 0.25, 0.3, 0.6, "s"),
        Figure("workers", 0.85, 0.9, 0.8, more=True),
        Figure("tokens", 12_345.6, unit="tokens/s"),
    ]
    console.print(table("2 threads", found))
    lines = console.export_text().splitlines()
    told = [[part.strip() for part in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert told == [
        ["start", "0.25 s", "≤ 0.3 s", "≤ 0.6 s", "met"],
        ["workers", "0.85", "≥ 0.9", "≥ 0.8", "within the limit"],
        ["tokens", "12,346 tokens/s", "–", "–", ""],
    ]


def test_all_but_the_long_comparisons_are_measured_unless_some_are_named(monkeypatch, capsys):
    asked = []

    def measured(name):
        return lambda: asked.append(name) or [Figure(name, 1.0)]

    for known in (speed.KNOWN, speed.LONG):
        for name in known:
            monkeypatch.setitem(known, name, measured(name))
    assert speed.main([]) == 0
    assert asked == [*speed.KNOWN]
    told = capsys.readouterr().out
    assert all(name in told for name in speed.KNOWN)
    asked.clear()
    assert speed.main(["workers", "snap"]) == 0
    assert asked == ["workers", "snap"]
    assert speed.main(["snop"]) == 2
    assert "snap" in capsys.readouterr().out


def test_so_many_shown_records_are_changed_as_were_asked_for(tmp_path):
    shown = [record(seed=seed) for seed in range(5)]
    silent = record(seed=7, utility=None)
    folders = [kept(tmp_path / "a", [*shown[:3], silent]), kept(tmp_path / "b", shown[2:])]
    before = digests(tmp_path)
    publishing._change(folders, 3)
    after = digests(tmp_path)
    changed = [path for path in before if before[path] != after[path]]
    assert len(changed) == 3
    assert not any(shown[2].key in path or silent.key in path for path in changed)
    for folder in folders:
        store = Store(folder)
        assert store.read_all()
        assert store.problems == []


def test_what_tuning_costs_is_the_training_of_all_trials_over_that_of_the_suite(monkeypatch):
    def lasting(*seconds):
        made = [record(seed=seed) for seed in range(len(seconds))]
        return [
            one.model_copy(update={"cost": one.cost.model_copy(update={"train_seconds": each})})
            for one, each in zip(made, seconds, strict=True)
        ]

    trials = SimpleNamespace(records=lasting(1.0, 2.0, 4.0))
    monkeypatch.setattr(tuning, "tune", lambda suite, folder: trials)
    monkeypatch.setattr(tuning, "make_plan", lambda suite, twins: None)
    monkeypatch.setattr(tuning.Engine, "run", lambda self, plan, store, reporter: lasting(0.5, 1.5))
    (figure,) = tuning.tuning()
    assert (figure.value, figure.goal, figure.verdict) == (3.5, 4.0, "met")
    assert "3 trials over 2 cells" in figure.name
