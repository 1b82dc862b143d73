"""The short answer of some records: for every setting and goal the strongest attack, and what it costs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.tables.comparisons import Comparison
from leakboard.leaderboards.tables.deciding import NOTHING, deciding
from leakboard.leaderboards.tables.frame import Row
from leakboard.leaderboards.tables.means import SETTING, average, setting_of
from leakboard.leaderboards.tables.parameters import add_knobs, distinguish_labels
from leakboard.leaderboards.tables.standing import NOT_SHOWN, standings, told

PLACE = ["task", "model", "cut"]
COLUMNS = [
    *PLACE,
    *["defense", "setting", "goal", "attribute", "attack"],
    *["success", "success_low", "success_high", "chance", "ep"],
    *["utility", "utility_low", "utility_high"],
    *["cost", "cost_low", "cost_high", "megabytes", "seeds", "certificate", "standing", "note"],
]


class Best(pd.DataFrame):
    """A row for each setting and goal; printed, it is a table for people.

    Columns: `task`, `model`, `cut`, `defense`, `setting` (in words), `goal`, `attribute`; the `attack`
    that was strongest, as `leakboard.leaderboards.tables.deciding.deciding` says; `success` with `_low` and
    `_high` (95 %), `chance`, `ep`; `utility` with its interval; `cost`, the utility lost against no
    protection, from 0 to 1, with its interval, where there is such a cell; `megabytes` that cross the
    trust boundary per epoch of fine-tuning; `seeds`; the strength of the attack's `certificate`; its
    `standing`: certified, proven by what it finds, or not shown, and then without an `ep`; and `note`: the
    flags of the attack, or why there is none.
    """

    @property
    def _constructor(self) -> type[Best]:
        return Best

    # A selection of its columns is a table like any other.
    def __repr__(self) -> str:
        return printed(self) if list(self.columns) == COLUMNS else super().__repr__()

    def _repr_html_(self) -> str:
        if list(self.columns) == COLUMNS:
            return f"<pre>{escape(printed(self))}</pre>"
        return pd.DataFrame(self).to_html()


def strongest(rows: pd.DataFrame, compared: Sequence[Comparison]) -> Best:
    """For each setting and goal the strongest attack, as means over seeds.

    Args:
        rows: as `leakboard.leaderboards.tables.frame.frame` builds it.
        compared: its records in comparable groups, which tell what utility each setting lost.
    """
    by = [*SETTING, "goal", "attribute"]
    means = average(deciding(rows), by)
    means = means.assign(standing=standings(means))
    means = means.assign(ep=means["ep"].mask(means["standing"] == NOT_SHOWN))
    measured = {(*setting_of(row), row["goal"]) for row in means.to_dict("records")}
    broken = rows[~rows["status"].isin(["ok", "skipped"])].drop_duplicates([*SETTING, "goal"])
    idle = [
        row for row in broken.to_dict("records") if (*setting_of(row), row["goal"]) not in measured
    ]
    found = [*means.to_dict("records"), *(_idle(row) for row in idle)]
    if not found:
        return Best(columns=COLUMNS)
    # What tells settings apart is told where they stand together.
    places = add_knobs(pd.DataFrame(found)).groupby(PLACE, sort=False)
    named = pd.concat([distinguish_labels(own) for _, own in places])
    lost = {setting_of(row): row for one in compared for row in one.settings.to_dict("records")}
    sent = rows.drop_duplicates("key").groupby(SETTING, dropna=False)[
        ["epoch_bytes_up", "epoch_bytes_down"]
    ]
    megabytes = {
        setting_of(row): (row["epoch_bytes_up"] + row["epoch_bytes_down"]) / 1e6
        for row in sent.mean().reset_index().to_dict("records")
    }
    first = rows.drop_duplicates(SETTING).to_dict("records")
    appearance, goals = [setting_of(row) for row in first], ["", *Goal]

    def place(row: Row) -> tuple[int, int]:
        return appearance.index(setting_of(row)), goals.index(row["goal"])

    told = [
        _row(row, lost.get(setting_of(row), {}), megabytes[setting_of(row)])
        for row in sorted(named.to_dict("records"), key=place)
    ]
    return Best(pd.DataFrame(told, columns=COLUMNS))


def _idle(row: Row) -> Row:
    """A setting on which nothing was found since something broke."""
    why = f"{row['attack']} {row['status']}: {row['reason']}".strip()
    measured = ("success", "success_low", "success_high", "chance", "ep")
    empty: dict[Hashable, Any] = dict.fromkeys(measured, np.nan)
    return {**row, **NOTHING, **empty, "attack": "", "n_seeds": 1, "flags": why}


def _row(row: Row, lost: Row, megabytes: float) -> dict[Hashable, Any]:
    costs = {"cost": "points", "cost_low": "low", "cost_high": "high"}
    return {
        **{column: row[column] for column in COLUMNS if column in row},
        "setting": setting_named(row["defense"], row["label"]),
        **{column: lost.get(theirs, np.nan) / 100 for column, theirs in costs.items()},
        "megabytes": megabytes,
        "seeds": row["n_seeds"],
        "note": row["flags"],
    }


def setting_named(defense: str, label: str) -> str:
    """A setting in words, from its defense and from what tells it from the others of that defense."""
    alone = label == defense or label.startswith(f"{defense},")
    return label if alone else f"{defense} {label}".replace(" = ", "=")


def printed(best: pd.DataFrame) -> str:
    """The table in words: under each task, model and cut a line for each setting and goal."""
    parts = []
    for _, own in best.groupby(PLACE, sort=False):
        first = own.iloc[0]
        columns: dict[str, Iterable[str]] = {
            "setting": own["setting"].where(~own["setting"].duplicated(), ""),
            "goal": (own["goal"] + " " + own["attribute"]).str.strip(),
            "strongest": own["attack"].replace("", "–"),
            "success": _ranges(own, "success"),
            "chance": own["chance"].map(number),
            "EP": [
                told(number(ep), how) for ep, how in zip(own["ep"], own["standing"], strict=True)
            ],
            "utility": _ranges(own, "utility"),
            "cost": _ranges(own, "cost"),
            "MB/epoch": own["megabytes"].map(lambda value: number(value, ".3g")),
            "seeds": own["seeds"].map(str),
            "note": own["note"],
        }
        lines = [f"{first['task']} · {first['model']} · cut {first['cut']}"]
        parts.append("\n".join([*lines, *_lines(columns)]))
    return "\n\n".join(parts) or "no attack found anything"


def _lines(columns: Mapping[str, Iterable[str]]) -> list[str]:
    """Columns of text side by side, each as wide as its longest entry."""
    padded = []
    for name, entries in columns.items():
        told = [name, *entries]
        width = max(map(len, told))
        padded.append([text.ljust(width) for text in told])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]


def _ranges(rows: pd.DataFrame, name: str) -> list[str]:
    ends = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [ranged(*three) for three in ends]


def ranged(value: float, low: float, high: float) -> str:
    """A number with its interval, such as '0.912 [0.901, 0.923]'."""
    ends = "" if pd.isna(low) or pd.isna(high) else f" [{number(low)}, {number(high)}]"
    return number(value) + ends


def number(value: float, form: str = "z.3f") -> str:
    """A number in words; what is missing is a dash."""
    return "–" if pd.isna(value) else format(value, form)
