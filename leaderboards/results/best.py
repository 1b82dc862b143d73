"""The results as a data frame that prints as a table for people."""

from __future__ import annotations

from html import escape

import pandas as pd

from leakboard.leaderboards.tables import (
    GOAL_WORDS,
    Interval,
    ResultsTable,
    display_name,
    format_interval,
    format_percent_interval,
    goal_of,
)

NEEDED = {"task", "model", "cut", "defense", "setting", "goal", "attribute", "attack"}
NEEDED |= {
    f"{name}{end}" for name in ("leakage", "cost", "success") for end in ("", "_low", "_high")
}
"""Columns of the printed table."""


class Best(pd.DataFrame):
    """One row for each setting and goal; it prints a selection of its columns.

    `results/README.md` explains the columns.

    Examples:
        >>> import leakboard as lb
        >>> best = lb.published("sap-sst2").best()
        >>> sorted(best["defense"].unique())
        ['none', 'sap', 'sap-cti']
    """

    @classmethod
    def of(cls, table: ResultsTable) -> Best:
        return cls(table.frame())

    @property
    def _constructor(self) -> type[Best]:
        return Best

    def __repr__(self) -> str:
        # A selection of columns prints as an ordinary frame.
        if not set(self.columns) >= NEEDED:
            return super().__repr__()
        return self._words().to_string(index=False)

    def _repr_html_(self) -> str:
        if not set(self.columns) >= NEEDED:
            return str(pd.DataFrame(self).to_html())
        return f"<pre>{escape(repr(self))}</pre>"

    def _words(self) -> pd.DataFrame:
        rows = [
            {
                "task": row["task"],
                "model": row["model"],
                "cut": row["cut"],
                "defense": display_name(row["defense"]),
                "setting": "" if row["setting"] == row["defense"] else row["setting"],
                "goal": f"{GOAL_WORDS[goal_of(row['goal'])]} {row['attribute']}".strip(),
                "leakage": format_percent_interval(Interval.of_row(row, "leakage")),
                "points lost": format_interval(Interval.of_row(row, "cost"), 1),
                "success": format_interval(Interval.of_row(row, "success")),
                "attack": row["attack"],
            }
            for row in pd.DataFrame(self).to_dict("records")
        ]
        return pd.DataFrame(rows)
