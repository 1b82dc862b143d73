"""What stands below a figure in words."""

from __future__ import annotations

import pandas as pd

from leakboard.leaderboards.tables import NOT_SHOWN, PROVEN, count, describe_limit, distinct

AGAINST = {
    "attribute": "attribute inference",
    "label": "label inference",
    "membership": "membership inference",
    "model": "use without the vendor",
}
"""What empirical privacy is measured against, where the goal's own name does not say it."""


def note(points: pd.DataFrame, printed_for: str = "", more: str = "", about: str = "") -> str:
    """What the reader must know of the points: attack, seeds, model, data.

    Args:
        printed_for: the models of the printed points beside them, if there are any.
        more: what else differs between those and these.
        about: model, data, training and seeds, where all points share them.
    """
    seen = points[points["standing"] != NOT_SHOWN]
    about = about or measured_on(seen)
    text = f"Measured: {about}, with 95 % intervals; attack: {distinct(seen['attack'])}."
    if hidden := len(points) - len(seen):
        text += f" Not shown: {count(hidden, 'point')} without a certified attack."
    if bounds := int((points["standing"] == PROVEN).sum()):
        sign = "≤" if "label" in points else count(bounds, "point")
        text += f" {sign}: at most so private, by an attack without a certificate."
    if printed_for:
        text += (
            f" Hollow points are as printed, for {printed_for} and the paper's own data size: "
            "compare the shapes, not the values."
        )
        text += f" {more}" if more else ""
    return text


def measured_on(points: pd.DataFrame) -> str:
    """Model, data and seeds of the points."""
    limits = points["limit"].dropna()
    data = describe_limit(max(limits) if len(limits) else None)
    few, many = int(points["n_seeds"].min()), int(points["n_seeds"].max())
    seeds = ("" if few == many else f"{few} to ") + count(many, "seed")
    return f"{distinct(points['model'])}, {data}; {seeds}"
