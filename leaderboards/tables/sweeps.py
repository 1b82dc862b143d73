"""Means against one swept parameter, of the cell, a defense or an attack, and what papers print of it."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pandas as pd

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.tables.deciding import PAPER, STRONGEST, deciding
from leakboard.leaderboards.tables.frame import Row
from leakboard.leaderboards.tables.means import SETTING, average
from leakboard.leaderboards.tables.parameters import (
    describe_setup,
    format_parameters,
    knob_of,
    varying_names,
)
from leakboard.leaderboards.tables.standing import shown
from leakboard.leaderboards.tables.styles import PALETTE, style_of

OF_CELL = ("cut", "limit", "epochs")
"""What can be swept besides the parameters of defenses and attacks."""
Home = Literal["cell", "params", "attack_params"]


def swept(frame: pd.DataFrame, goal: str, against: str, attack: str = STRONGEST) -> pd.DataFrame:
    """Means over seeds of every setting, for each value of one parameter.

    Args:
        frame: as `leakboard.leaderboards.tables.frame.frame` builds it.
        goal: what the attacks guess.
        against: 'cut', 'limit', 'epochs', or a parameter of defenses or of attacks. Of an attack's
            parameter, the deciding attack is chosen among those that have it, for each value; the
            strongest of the others is a level line beside it.
        attack: the attack that decides, as for `leakboard.leaderboards.tables.deciding.deciding`. Of one by its
            name, other parameters than the swept one tell lines apart.

    Returns:
        As `leakboard.leaderboards.tables.means.average`, with the `standing` of each, of which those that are not
        shown have neither `ep` nor `success`; with `x`, the value of the parameter; `line`, what the
        points of one line share, in words; and `value`, that of the defense's knob.

    Raises:
        LeakboardError: the parameter does not occur, or no attack of the goal has an ok result.
    """
    rows = frame[frame["goal"] == goal]
    home = _home(rows, against)
    xs = pd.Series([_x(row, against, home) for row in rows.to_dict("records")], rows.index, "str")
    rows = rows.assign(x=xs, apart="")
    level, rows = rows[xs == ""], rows[xs != ""]
    if home == "attack_params" and attack not in (STRONGEST, PAPER):
        own = rows["attack_params"].where(rows["attack"] == attack, "{}")
        told = varying_names(own[rows["attack"] == attack], but=against)
        rows = rows.assign(apart=[format_parameters(params, told) for params in own])
    by = ["x", "apart"]
    chosen = [deciding(rows, attack, by)]
    if home == "attack_params" and (level["channel"] != "").any():
        plain = deciding(level)
        chosen += [plain.assign(x=x, apart=plain["attack"]) for x in sorted(set(rows["x"]))]
    every = pd.concat(chosen)
    means = shown(average(every, [*SETTING, "attribute", *by]))
    if means.empty:
        raise LeakboardError(
            f"nothing to plot: no attack of the goal '{goal}' has an ok result; "
            "'leakboard show' lists what failed or was skipped, and why"
        )
    first = every.drop_duplicates([*SETTING, "attribute", *by])
    x = pd.Series([json.loads(value) for value in first["x"]], means.index, object)
    return _lined(means.assign(x=x, apart=first["apart"].to_numpy()), against)


def _home(rows: pd.DataFrame, against: str) -> Home:
    """Where a parameter stands."""
    if against in OF_CELL:
        return "cell"
    homes: tuple[Home, ...] = ("params", "attack_params")
    found = {
        home: {k for text in set(rows[home]) - {""} for k in json.loads(text)} for home in homes
    }
    for home in homes:
        if against in found[home]:
            return home
    known = sorted({*OF_CELL, *found["params"], *found["attack_params"]})
    raise LeakboardError(
        f"no parameter '{against}' is in the records. {did_you_mean(against, known)}"
    )


def _x(row: Row, against: str, home: Home) -> str:
    """The value of the parameter as JSON, or '' where the row has none."""
    if home == "cell":
        return "null" if row[against] is pd.NA else json.dumps(int(row[against]))
    params = json.loads(row[home] or "{}")
    return json.dumps(params[against]) if against in params else ""


def _lined(means: pd.DataFrame, against: str) -> pd.DataFrame:
    """Adds in words what the points of one line share, and the value that decides its colour."""
    lines = pd.Series("", means.index, dtype="str")
    values = pd.Series(None, means.index, dtype=object)
    apart = list(dict.fromkeys(means.get("apart", pd.Series(dtype="str"))))
    several = {n: means[n].nunique() > 1 for n in ("defense", "model", "cut")}
    for defense, own in means.groupby("defense", sort=False):
        name = knob_of(str(defense), own["params"])
        told = varying_names(own["params"], but=against)
        for index, row in zip(own.index, own.to_dict("records"), strict=True):
            parts = [str(defense)] if several["defense"] or not told else []
            parts += [row["model"]] if several["model"] else []
            parts += [f"cut = {row['cut']}"] if several["cut"] and against != "cut" else []
            parts += [own_words] if (own_words := format_parameters(row["params"], told)) else []
            if against not in ("limit", "epochs"):
                same = own[(own["task"] == row["task"]) & (own["model"] == row["model"])]
                parts += [other] if (other := describe_setup(row, same)) else []
            parts += [row["apart"]] if len(apart) > 1 and row["apart"] else []
            lines[index] = ", ".join(parts)
            if name in told:
                values[index] = json.loads(row["params"]).get(name)
            elif several["cut"] and against != "cut":
                values[index] = row["cut"]
            else:
                values[index] = style_of(str(defense)).colour
    if len(apart) > 1:
        names = list(dict.fromkeys(lines))
        values = lines.map(lambda name: PALETTE[names.index(name) % len(PALETTE)])
    return means.assign(line=lines, value=values)


def printed_sweep(printed: pd.DataFrame | None, against: str, means: pd.DataFrame) -> pd.DataFrame:
    """The printed points that can be drawn against the parameter, in the columns of `means`."""
    empty = means.iloc[:0].assign(source=pd.Series(dtype="str"))
    if printed is None:
        return empty
    # A figure of attributes is not one of inversion.
    same = printed["goal"].isin(means["goal"]) & printed["task"].isin(means["task"])
    rows = printed[same].dropna(subset=["utility", "ep"], how="all")
    loaded = [json.loads(text) for text in rows["params"]]
    # Papers' cuts stand among the parameters; what was swept is no part of a line's name.
    key = "split" if against == "cut" else against
    kept = [key in params for params in loaded]
    rows, loaded = rows[np.array(kept, dtype=bool)], [p for p in loaded if key in p]
    if rows.empty:
        return empty
    rest = [json.dumps({k: v for k, v in p.items() if k != key}, sort_keys=True) for p in loaded]
    rows = rows.assign(
        x=pd.Series([p[key] for p in loaded], rows.index, object),
        params=rest,
        source=rows["model"] + " (" + rows["paper"] + ", " + rows["artefact"] + ")",
        attribute="",
        cut=0,
        setup="",
        shared="",
        limit=None,
        train="{}",
    )
    lined = [_lined(own, against) for _, own in rows.groupby("source", sort=False)]
    return pd.concat([own for own in lined if own["x"].nunique() > 1] or [empty])
