"""Where labels stand in a figure."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from leakboard.leaderboards.figures.point_labels import Label, place

GRID = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")])


@given(st.lists(st.tuples(GRID, GRID), min_size=1, max_size=25))
def test_labels_never_overlap_and_required_ones_all_stay(xy: list[tuple[float, float]]) -> None:
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
