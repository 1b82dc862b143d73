"""Printed numbers of papers, for figures and tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.bench.records import canonical_json
from leakboard.bench.suites import Printed, Suite, load_suite, suite_names

TABLE = Path(__file__).with_name("printed.csv")
METRICS = {
    "accuracy": "utility",
    "ep_inversion": "ep",
    "leak": "ep",
    "exposure": "exposure",
    "perplexity": "perplexity",
    "xgboost_gradient_accuracy": "gradients",
}
"""Column of each printed metric; EP is 1 − leak."""
MEASURES = tuple(dict.fromkeys(METRICS.values()))
AS_PRINTED = ("exposure", "perplexity")
"""Measures that are no shares: exposure in bits, and perplexity."""
GOALS = {"ep_inversion": "inversion", "leak": "label", "exposure": "memorisation"}
POINT = ["paper", "artefact", "model", "task", "defense", "params", "goal"]
"""Columns that identify a printed point."""


def printed_points(paper: str, artefacts: Sequence[str], model: str | None = None) -> pd.DataFrame:
    """The printed points of some tables of a paper.

    Args:
        paper: name of the paper, such as 'SAP'.
        artefacts: tables or figures, such as ['Table 3'].
        model: restricts the rows to one model.

    Returns:
        One row per printed point: paper, artefact, model, task, defense, params (canonical JSON), goal, and MEASURES,
        with NaN for missing ones. Measures are shares from 0 to 1, except for exposures in bits and perplexities;
        `gradients` is the accuracy of XGBoost on the gradients that one server sees.

    Raises:
        LeakboardError: the paper, an artefact or the model is not in the table.
    """
    rows = pd.read_csv(TABLE, dtype={"value": float, "params": str}, keep_default_na=False)
    rows = _only(_only(rows, "paper", [paper]), "artefact", artefacts)
    rows = rows if model is None else _only(rows, "model", [model])
    share = (rows["value"] / 100).where(~rows["metric"].isin(AS_PRINTED), rows["value"])
    rows = rows.assign(
        params=rows["params"].map(_canonical),
        value=share.where(rows["metric"] != "leak", 1 - share),
        goal=next((goal for name, goal in GOALS.items() if (rows["metric"] == name).any()), ""),
        metric=rows["metric"].map(METRICS),
    )
    wide = rows.pivot(index=POINT, columns="metric", values="value")
    # pivot sorts its rows; the paper's order is that of the knob.
    order = pd.MultiIndex.from_frame(rows[POINT].drop_duplicates())
    wide = wide.reindex(index=order, columns=[*MEASURES])
    return wide.reset_index().rename_axis(columns=None)


def mirrored_points(paper: Printed) -> pd.DataFrame:
    """Printed points of the paper that a suite mirrors, with the suite's names of tasks."""
    return _as_ours(printed_points(paper.paper, paper.artefact, paper.model), [paper])


def artefacts() -> list[tuple[str, str]]:
    """All pairs of paper and table with printed numbers."""
    rows = pd.read_csv(TABLE, usecols=["paper", "artefact"]).drop_duplicates()
    return list(rows.itertuples(index=False, name=None))


def printed_table(paper: str, artefact: str) -> pd.DataFrame:
    """Printed points of one table of a paper, with the suites' names of tasks."""
    papers = [one.paper for one in mirroring_suites(paper, artefact) if one.paper]
    return _as_ours(printed_points(paper, [artefact]), papers)


@cache
def mirroring_suites(paper: str, artefact: str) -> tuple[Suite, ...]:
    """Suites that mirror a table of a paper, or if there is none, those that mirror another table of it."""
    every = [
        one for one in map(load_suite, suite_names()) if one.paper and one.paper.paper == paper
    ]
    own = [one for one in every if one.paper and artefact in one.paper.artefact]
    return tuple(own or every)


def _as_ours(known: pd.DataFrame, papers: Sequence[Printed]) -> pd.DataFrame:
    """Printed points with the suites' names of tasks."""
    ours = {theirs: name for paper in papers for name, theirs in paper.task.items()}
    return known.assign(task=known["task"].replace(ours))


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
    return canonical_json({name: _value(text) for name, text in pairs})


def _value(text: str) -> float | int | str | None:
    if text == "none":
        return None
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError:
        return text
