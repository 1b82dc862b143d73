"""What did not run, as lines."""

from __future__ import annotations

import pandas as pd


def failures(frame: pd.DataFrame) -> list[str]:
    """A line for each cell, or attack on a cell, that neither worked nor was skipped."""
    bad = frame[~frame["status"].isin(["ok", "skipped"])]
    lines = []
    for row in bad.to_dict("records"):
        parts = [row["task"], row["model"], f"{row['defense']} {row['params']}"]
        parts += [f"cut {row['cut']}", f"seed {row['seed']}"]
        parts += [row["attack"]] if row["attack"] else []
        lines.append(f"{', '.join(parts)}: {row['status']}: {row['reason'] or 'no reason given'}")
    return list(dict.fromkeys(lines))


def skipped(frame: pd.DataFrame) -> list[str]:
    """A line for each method that was skipped, and each reason."""
    rows = frame[frame["status"] == "skipped"]
    named = rows["attack"].where(rows["attack"] != "", rows["defense"])
    lines = named + " (" + rows["goal"] + "): " + rows["reason"]
    return list(dict.fromkeys(lines.str.replace(" ()", "")))
