"""The baseline that guesses from public frequencies."""

from __future__ import annotations

import pytest
from cells import leak_of, run

from defenses.blackout import Blackout


def test_prior_reaches_the_chance_level_where_public_frequencies_are_those_of_the_data(tmp_path):
    # All of `reviews`: the most frequent token is the same in public and private text.
    (record,) = run(tmp_path, Blackout(), limit=2000, record={"examples": 1000})
    for view in ("train", "dev"):
        success = leak_of(record, "prior", view).success
        assert success.value == pytest.approx(success.chance, abs=1e-12)
