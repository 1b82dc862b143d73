"""Records as one tidy table, in memory and as a file. `results/README.md` explains each column."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from leakboard.bench.contracts import (
    Cell,
    Estimate,
    Leak,
    LeakboardError,
    Record,
    digest,
)
from leakboard.bench.records.store import replacing
from leakboard.bench.scoring import Flags, Strengths, advantage_low, flags, provable, strengths

Row = Mapping[Hashable, Any]
"""A row of a table, by column."""
TEXT, WHOLE, REAL, TRUTH = "str", "Int64", "float64", "bool"

COLUMNS = {
    "task": TEXT,
    "model": TEXT,
    "cut": WHOLE,
    "defense": TEXT,
    "params": TEXT,
    "seed": WHOLE,
    "attack": TEXT,
    "attack_params": TEXT,
    "goal": TEXT,
    "view": TEXT,
    "attribute": TEXT,
    "channel": TEXT,
    "step": WHOLE,
    "status": TEXT,
    "reason": TEXT,
    "utility_metric": TEXT,
    "utility": REAL,
    "utility_low": REAL,
    "utility_high": REAL,
    "utility_chance": REAL,
    "metric": TEXT,
    "success": REAL,
    "success_low": REAL,
    "success_high": REAL,
    "chance": REAL,
    "floor": REAL,
    "ep": REAL,
    "ep_low": REAL,
    "ep_high": REAL,
    "ep_chance": REAL,
    "ep_level": REAL,
    "above": REAL,
    "advantage": REAL,
    "advantage_low": REAL,
    "certificate": REAL,
    "epsilon": REAL,
    "epsilon_ceiling": REAL,
    "n": WHOLE,
    "units": WHOLE,
    "flags": TEXT,
    "undefended": TRUTH,
    "reproduced": TRUTH,
    "limit": WHOLE,
    "epochs": WHOLE,
    "precision": TEXT,
    "train": TEXT,
    "copies": TEXT,
    "bytes_up": WHOLE,
    "bytes_down": WHOLE,
    "epoch_bytes_up": REAL,
    "epoch_bytes_down": REAL,
    "bottom_parameters": WHOLE,
    "bottom_tokens": WHOLE,
    "bottom_flops": WHOLE,
    "bottom_megabytes": REAL,
    "train_seconds": REAL,
    "attack_seconds": REAL,
    "device": TEXT,
    "key": TEXT,
    "commit": TEXT,
    "attack_version": WHOLE,
    "setup": TEXT,
    "shared": TEXT,
}
"""Name and type of every column. A missing number is empty; a text that does not apply is ''."""
LEAK_COLUMNS = frozenset(
    [
        *["attack", "attack_params", "attack_version", "goal", "view", "attribute", "channel"],
        *["step", "status", "reason", "metric", "success", "success_low", "success_high", "chance"],
        *["floor", "ep", "ep_low", "ep_high", "ep_chance", "ep_level", "above", "advantage"],
        *["advantage_low", "n", "units", "attack_seconds"],
    ]
)
"""Columns that depend on the leak only."""


def sort_records(records: Sequence[Record]) -> list[Record]:
    """Records in the order of tables: by task, model and cut, then by defense, parameters and seed.

    "none" is the first defense. Parameters decrease, with None before all numbers.
    """

    def place(record: Record) -> tuple[Any, ...]:
        cell, params = record.cell, record.cell.defense.params
        numbers = [-v if isinstance(v, int | float) else -math.inf for v in params.values()]
        defended = not record.undefended or bool(params)
        return cell.task, cell.model, cell.cut, defended, cell.defense.name, numbers, cell.seed

    return sorted(records, key=place)


def frame(
    records: Sequence[Record], certified: Strengths | None = None, raised: Flags | None = None
) -> pd.DataFrame:
    """One row per cell and leak, in the order of the records and of their leaks.

    A record without leaks has one row with its status and reason. Shadow models have no row.

    Args:
        certified: certificates of the records, if already computed.
        raised: flags of the records, if already computed.
    """
    records = [record for record in records if record.cell.shadow is None]
    certified = strengths(records) if certified is None else certified
    raised = flags(records, certified) if raised is None else raised
    rows = []
    for record in records:
        leaks: Sequence[Leak | None] = record.leaks or [None]
        cell, own = _of_cell(record), raised.get((record.key, -1), ())
        for index, leak in enumerate(leaks):
            flagged = own if leak is None else (*own, *raised.get((record.key, index), ()))
            row = {**cell, **_of_leak(leak), "flags": ",".join(dict.fromkeys(flagged))}
            row["certificate"] = certified.get((record.key, index))
            if leak is not None:
                # The reason of a failed cell has priority over those of its leaks.
                if record.status == "ok":
                    row |= {"status": leak.status, "reason": leak.reason}
                row |= {"epsilon": leak.epsilon, "epsilon_ceiling": provable(record, leak)}
            rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def leaks_frame(leaks: Sequence[Leak]) -> pd.DataFrame:
    """One row per leak of a transcript, with the columns of `frame` that need no cell."""
    rows = [{**_of_leak(leak), "status": leak.status, "reason": leak.reason} for leak in leaks]
    columns = {name: kind for name, kind in COLUMNS.items() if name in LEAK_COLUMNS}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def rows_of(table: pd.DataFrame) -> list[Row]:
    """Rows of a table as dicts, several times faster than pandas."""
    names = list(table.columns)
    columns = [table[name].tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def canonical_json(params: Any) -> str:
    """Parameters as JSON with sorted keys, so that equal parameters are equal text."""
    return json.dumps(params, sort_keys=True, ensure_ascii=False)


def _of_cell(record: Record) -> dict[str, Any]:
    cell, cost = record.cell, record.cost
    return {
        "task": cell.task,
        "model": cell.model,
        "cut": cell.cut,
        "defense": cell.defense.name,
        "params": canonical_json(cell.defense.params),
        "seed": cell.seed,
        "status": record.status,
        "reason": record.reason,
        "utility_metric": record.utility_metric,
        **_estimate("utility", record.utility),
        "utility_chance": record.utility and record.utility.chance,
        "undefended": record.undefended,
        "reproduced": not record.provenance.not_reproduced,
        "limit": cell.limit,
        "epochs": cell.train.epochs,
        "precision": cell.train.precision,
        "train": canonical_json(cell.train.model_dump()),
        "copies": ", ".join(map(str, cell.plant.copies))
        if cell.plant and cell.plant.canaries
        else "",
        "bytes_up": cost and cost.bytes_up,
        "bytes_down": cost and cost.bytes_down,
        "epoch_bytes_up": cost and cost.epoch_bytes_up,
        "epoch_bytes_down": cost and cost.epoch_bytes_down,
        **{f"bottom_{name}": value for name, value in (cost and cost.bottom) or ()},
        "train_seconds": cost and cost.train_seconds,
        "device": record.provenance.device,
        "key": record.key,
        "commit": record.provenance.commit,
        "setup": setup_digits(cell),
        "shared": group_digits(cell),
    }


def _of_leak(leak: Leak | None) -> dict[str, Any]:
    if leak is None:
        return dict.fromkeys(
            ("attack", "attack_params", "goal", "view", "attribute", "channel", "metric"), ""
        )
    ep = leak.ep
    return {
        "attack": leak.attack.name,
        "attack_params": canonical_json(leak.attack.params),
        "attack_version": leak.attack.version,
        "goal": leak.goal.value,
        "view": leak.view,
        "attribute": leak.attribute or "",
        "channel": leak.channel.value if leak.channel else "",
        "step": leak.step,
        "metric": leak.metric,
        **_estimate("success", leak.success),
        "chance": leak.success and leak.success.chance,
        "floor": leak.floor and leak.floor.value,
        **_estimate("ep", ep),
        "ep_chance": ep and ep.chance,
        "ep_level": None if leak.level is None else 1 - leak.level / leak.ceiling,
        "above": leak.above,
        "advantage": leak.advantage,
        "advantage_low": advantage_low(leak),
        "n": leak.success and leak.success.n,
        "units": leak.units,
        "attack_seconds": leak.seconds,
    }


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float]:
    if estimate is None:
        return {}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def setup_digits(cell: Cell) -> str:
    """Eight digits of a hash of all inputs except for task, model, cut, defense parameters and seed.

    Rows with different digits must not be averaged, since data, training settings or versions differ.
    """
    rest = cell.model_dump(mode="json", exclude={"task", "model", "cut", "seed", "shadow"})
    rest["defense"] = cell.defense.version
    if cell.utility is None:  # younger than the digits
        del rest["utility"]
    return digest(rest)[:8]


ALIKE = frozenset({"precision", "max_length"})
"""Training settings that must agree in a comparison, since they are not tuned for a defense."""
FREE = {"defense", "seed", "cut", "record", "model", "train"}
"""Fields of a cell that may differ in a comparison."""


def group_digits(cell: Cell) -> str:
    """Eight digits of a hash of all inputs that comparable cells share: task, data, model, planted secrets, ….

    Training settings belong to the defense, since each defense is tuned.
    """
    rest = cell.model_dump(mode="json", exclude=FREE)
    if cell.plant is not None and cell.plant.candidates == "natural":
        # Left out, since it is newer than names and addresses with these digits.
        del rest["plant"]["candidates"]
    if cell.utility is None:
        del rest["utility"]
    return digest(rest | {"train": cell.train.model_dump(mode="json", include=set(ALIKE))})[:8]


def failures(frame: pd.DataFrame) -> list[str]:
    """One line per failed cell, or failed attack on a cell."""
    bad = frame[~frame["status"].isin(["ok", "skipped"])]
    lines = []
    for row in bad.to_dict("records"):
        parts = [row["task"], row["model"], f"{row['defense']} {row['params']}"]
        parts += [f"cut {row['cut']}", f"seed {row['seed']}"]
        parts += [row["attack"]] if row["attack"] else []
        lines.append(f"{', '.join(parts)}: {row['status']}: {row['reason'] or 'no reason given'}")
    return list(dict.fromkeys(lines))


def skipped(frame: pd.DataFrame) -> list[str]:
    """One line per skipped method and reason."""
    rows = frame[frame["status"] == "skipped"]
    named = rows["attack"].where(rows["attack"] != "", rows["defense"])
    lines = named + " (" + rows["goal"] + "): " + rows["reason"]
    return list(dict.fromkeys(lines.str.replace(" ()", "")))


def export(table: pd.DataFrame, path: Path) -> None:
    """Writes a frame as .csv, .parquet or .json; a reader never sees half a file.

    Raises:
        LeakboardError: another suffix.
    """
    if path.suffix not in WRITERS:
        raise LeakboardError(
            f"{path}: the suffix '{path.suffix}' is unknown; use .csv, .parquet, .json, .tex or .md"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        WRITERS[path.suffix](table, file)


def _write_json(table: pd.DataFrame, to: Path) -> None:
    # pandas' own writer keeps at most 15 digits of a number; json keeps them all.
    rows = [
        {name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")
    ]
    to.write_text(json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


WRITERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    ".csv": lambda table, to: table.to_csv(to, index=False),
    ".parquet": lambda table, to: table.to_parquet(to, index=False),
    ".json": _write_json,
}
"""Functions that write a frame, by the suffix of the file."""


def _plain(value: Any) -> Any:
    missing = value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return None if missing else value
