"""What helps against attacks on a transcript or a model, by the published records."""

from __future__ import annotations

import pytest

import leakboard as lb
from leakboard.leaderboards.results.attacked import HOMES
from leakboard.leaderboards.terminal import HELPS, helps


@pytest.mark.parametrize("goal", HOMES)
def test_the_home_of_a_goal_is_published_and_says_what_helps(goal):
    suite, task = HOMES[goal]
    rows = [r for r in lb.published(suite).table if (r.goal, r.setting.task) == (goal, task)]
    assert any(row.is_certified for row in rows)
    assert helps(rows, [(goal, task)]).startswith(HELPS)
