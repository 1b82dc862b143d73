"""Results as a table on the terminal, and what failed as plain lines."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from leaderboards.frontier import SETTING, average
from leaderboards.looks import settings, setup, varying

LEAK = ["attack", "attack_params", "goal", "view", "attribute"]


def summary(frame: pd.DataFrame, title: str | None = None) -> Table:
    """One row per setting, attack and view, as means over seeds; what did not work stands dim.

    Utility carries ± half the width of its 95 % interval, EP its whole interval. Parameters are
    shown where they vary within their method.
    """
    table = Table(title=title, header_style="bold", pad_edge=False)
    for name in ("task", "model", "defense", "parameters", "utility", "attack", "guesses"):
        table.add_column(name, overflow="fold")
    for name in ("success", "chance", "EP", "seeds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("flags, reason", overflow="fold", min_width=18)
    shown = _shown(frame)
    # A reason belongs to one seed; joined with a success of another it would say nothing true.
    means = average(frame, [*SETTING, *LEAK, "status", "reason"])
    for _, same in means.groupby(["task", "model", "defense"], sort=False):
        for row in same.to_dict("records"):
            own = settings(row["params"], shown[row["defense"]])
            other = setup(same, row["limit"], row["epochs"], row["setup"])
            words = ", ".join(part for part in (own, other) if part)
            worked = row["status"] == "ok"
            table.add_row(*_cells(row, words, shown, worked), style="" if worked else "dim")
    return table


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


def _cells(
    row: Mapping[Hashable, Any], parameters: str, shown: Mapping[str, list[str]], worked: bool
) -> list[Text]:
    attack = str(row["attack"])
    attack_params = str(row["attack_params"]) or "{}"
    flags = row["flags"].replace(",", "\n")
    reason = "" if worked else f"{row['status']}: {row['reason'] or 'no reason given'}"
    words = [
        row["task"],
        f"{row['model']}, cut {row['cut']}",
        row["defense"],
        parameters,
        _with_half(row, "utility"),
        " ".join(part for part in (attack, settings(attack_params, shown.get(attack, []))) if part),
        " ".join(str(row[name]) for name in ("goal", "attribute", "view") if row[name]),
        _number(row["success"]),
        _number(row["chance"]),
        _with_interval(row, "ep"),
        row["n_seeds"],
        "\n".join(part for part in (reason, flags) if part),
    ]
    # Text, not str: a bracket in a reason must not be read as markup.
    return [Text(str(word)) for word in words]


def _shown(frame: pd.DataFrame) -> dict[str, list[str]]:
    """For each method the parameters that vary within it."""
    found = {}
    for method, params in (("defense", "params"), ("attack", "attack_params")):
        for name, rows in frame[frame[method] != ""].groupby(method):
            found[str(name)] = varying(json.loads(text) for text in rows[params].unique())
    return found


def _number(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value:.3f}"


def _with_half(row: Mapping[Hashable, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if pd.isna(low) or pd.isna(high):
        return _number(row[name])
    return f"{_number(row[name])} ± {(high - low) / 2:.3f}"


def _with_interval(row: Mapping[Hashable, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if pd.isna(low) or pd.isna(high):
        return _number(row[name])
    return f"{_number(row[name])} [{_number(low)}, {_number(high)}]"
