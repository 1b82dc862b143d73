"""Whether ours have the shape of what a paper prints."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from leakboard.leaderboards.tables.agreeing import (
    AGREE,
    ALONE,
    DIFFER,
    NOT_MEASURED,
    NOT_TOLD,
    shapes,
)
from leakboard.leaderboards.tables.beside import MEASURES, Laid


def pair(printed, ours, half=0.01, shared="data"):
    row = {f"{name}{end}": np.nan for name in MEASURES for end in ("", "_low", "_high", "_printed")}
    row |= {"ep": ours, "ep_low": ours - half, "ep_high": ours + half, "ep_printed": printed}
    return row | {"task": "sst2", "here": SimpleNamespace(row={"shared": shared})}


def told(*pairs):
    (one,) = shapes(Laid("SAP", "Table 3", "roberta-large", pd.DataFrame(pairs), [], []))
    return one


def test_shapes_tell_distance_and_order_and_what_is_clear_of_it():
    one = told(pair(0.5, 0.7), pair(0.3, 0.4), pair(0.2, 0.405), pair(0.1, 0.9))
    assert str(one) == (
        "sst2, EP: ours less printed is +0.100 to +0.800 at 4 settings; of 6 pairs of settings 2 in the "
        "printed order (2 with intervals apart) and 4 in the other (3 with intervals apart): the shapes differ."
    )


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([pair(0.5, 0.7), pair(0.3, 0.4)], AGREE),
        ([pair(0.5, 0.4), pair(0.3, 0.7)], DIFFER),
        ([pair(0.5, 0.7), pair(0.3, 0.4), pair(0.2, 0.5)], DIFFER),
        ([pair(0.5, 0.7), pair(0.3, 0.4), pair(0.2, 0.405)], AGREE),
        ([pair(0.5, 0.7, 0.2), pair(0.3, 0.4, 0.2)], NOT_TOLD),
        ([pair(0.5, 0.4, 0.2), pair(0.3, 0.7, 0.2)], NOT_TOLD),
        ([pair(0.5, 0.7)], ALONE),
        ([pair(0.5, 0.7), pair(0.5, 0.4)], ALONE),
        ([pair(0.5, 0.7), pair(0.3, 0.4, shared="other data")], ALONE),
        ([pair(0.5, np.nan)], NOT_MEASURED),
    ],
)
def test_a_verdict_needs_a_pair_that_is_clear_and_none_that_is_clearly_turned(pairs, verdict):
    assert told(*pairs).verdict == verdict
