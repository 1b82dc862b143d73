"""Numbers that papers print, so that a figure can show them beside what was measured here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bench.contracts import LeakboardError, did_you_mean
from bench.suites import Printed, load_suite, suite_names
from leaderboards.tables.frame import canonical

TABLE = Path(__file__).with_name("printed.csv")
METRICS = {"accuracy": "utility", "ep_inversion": "ep", "leak": "ep"}
"""The printed metrics that a figure can hold, and the column that each becomes; EP is 1 − leak."""
GOALS = {"ep_inversion": "inversion", "leak": "label"}
POINT = ["paper", "artefact", "model", "task", "defense", "params", "goal"]
"""What identifies a printed point."""


def printed(paper: str, artefacts: Sequence[str], model: str | None = None) -> pd.DataFrame:
    """The printed points of some tables of a paper.

    Args:
        paper: such as 'SAP'.
        artefacts: such as ['Table 3'].
        model: keeps this model's rows only.

    Returns:
        One row per printed point: paper, artefact, model, task, defense, params (canonical JSON),
        goal, utility and ep, both from 0 to 1, NaN where the paper prints only the other one.

    Raises:
        LeakboardError: the paper, an artefact or the model is not in the table.
    """
    rows = _of(paper, artefacts, model)
    rows = rows[rows["metric"].isin(METRICS)]
    share = rows["value"] / 100
    rows = rows.assign(
        params=rows["params"].map(_canonical),
        value=share.where(rows["metric"] != "leak", 1 - share),
        goal=next((goal for name, goal in GOALS.items() if (rows["metric"] == name).any()), ""),
        metric=rows["metric"].map(METRICS),
    )
    wide = rows.pivot(index=POINT, columns="metric", values="value")
    # pivot sorts its rows; the paper's order is that of the knob.
    order = pd.MultiIndex.from_frame(rows[POINT].drop_duplicates())
    wide = wide.reindex(index=order, columns=["utility", "ep"])
    return wide.reset_index().rename_axis(columns=None)


def paper_of(suite: str) -> Printed | None:
    """The paper that a suite mirrors; None where it mirrors none, or is none of the project's."""
    return load_suite(suite).paper if suite in suite_names() else None


def mirrored(paper: Printed) -> pd.DataFrame:
    """What the paper that a suite mirrors prints, its tasks by the names that the suite has for them."""
    known = printed(paper.paper, paper.artefact, paper.model)
    ours = {theirs: name for name, theirs in paper.task.items()}
    return known.assign(task=known["task"].replace(ours))


def exposures(paper: Printed) -> pd.DataFrame:
    """The exposures of canaries, in bits, that the paper prints which a suite mirrors.

    Returns:
        One row per number: paper, artefact, model, task, defense, params (canonical JSON, the number
        of copies among them) and value.
    """
    rows = _of(paper.paper, paper.artefact, paper.model)
    rows = rows[rows["metric"] == "exposure"]
    return rows.assign(params=rows["params"].map(_canonical))


def _of(paper: str, artefacts: Sequence[str], model: str | None) -> pd.DataFrame:
    rows = pd.read_csv(TABLE, dtype={"value": float, "params": str}, keep_default_na=False)
    rows = _only(rows, "paper", [paper])
    rows = _only(rows, "artefact", artefacts)
    return rows if model is None else _only(rows, "model", [model])


def _only(rows: pd.DataFrame, column: str, wanted: Sequence[str]) -> pd.DataFrame:
    known = set(rows[column])
    for name in wanted:
        if name not in known:
            raise LeakboardError(
                f"no published numbers for {column} '{name}'. {did_you_mean(name, known)}"
            )
    return rows[rows[column].isin(wanted)]


def _canonical(params: str) -> str:
    """'eta=45;bottom=frozen' as JSON with sorted keys; numbers become numbers, 'none' null."""
    pairs = (pair.split("=", 1) for pair in params.split(";") if pair)
    return canonical({name: _value(text) for name, text in pairs})


def _value(text: str) -> float | int | str | None:
    if text == "none":
        return None
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError:
        return text
