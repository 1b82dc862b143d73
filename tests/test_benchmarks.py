"""Figures of the benchmarks: sides of their bounds, interleaved rounds, and failure beyond a limit."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from benchmarking import Comparison, Figure


class Benchmark(SimpleNamespace):
    """A stand-in for the fixture of pytest-benchmark: each round of the work takes 8 s."""

    def pedantic(self, work, setup, rounds, warmup_rounds):
        for _ in range(warmup_rounds + rounds):
            setup()
            work()
        self.stats = SimpleNamespace(stats=SimpleNamespace(data=[8.0] * rounds))


@pytest.fixture
def comparison():
    return Comparison(Benchmark(disabled=False, extra_info={}), [])


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


def test_a_row_has_the_figure_with_its_goal_and_limit():
    figures = [
        Figure("start", 0.25, 0.3, 0.6, "s"),
        Figure("workers", 0.85, 0.9, 0.8, more=True),
        Figure("tokens", 12_345.6, unit="tokens/s"),
    ]
    assert [figure.cells for figure in figures] == [
        ("start", "0.25 s", "≤ 0.3 s", "≤ 0.6 s", "met"),
        ("workers", "0.85", "≥ 0.9", "≥ 0.8", "within the limit"),
        ("tokens", "12,346 tokens/s", "–", "–", ""),
    ]


def test_references_run_in_turn_with_the_work_and_warm_up_does_not_count(comparison, monkeypatch):
    order = []
    # A reference takes 100 s in the warm-up round, then 2, 4 and 4.
    clock = iter([0, 100, 100, 102, 102, 106, 106, 110])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    comparison.measure(lambda: order.append("work"), lambda: order.append("reference"))
    assert order == ["reference", "work"] * 4
    assert comparison.references == [[2, 4, 4]]
    assert (comparison.median, comparison.ratio()) == (8.0, 2.0)


def test_a_figure_beyond_its_limit_fails_and_stays_on_the_record(comparison):
    good, bad = Figure("start", 0.5, 0.3, 0.6, "s"), Figure("help", 1.5, 0.5, 1.0, "s")
    comparison.report(good)
    with pytest.raises(pytest.fail.Exception, match=r"help 1.5 s ≤ 0.5 s ≤ 1 s missed"):
        comparison.report(bad)
    assert comparison.figures == [good, bad]
    assert comparison.benchmark.extra_info["help"] == {
        "value": 1.5,
        "goal": 0.5,
        "limit": 1.0,
        "unit": "s",
        "verdict": "missed",
    }
