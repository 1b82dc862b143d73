"""Records as one tidy table, and the table as a file. `results/README.md` explains each column."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.contracts import (
    BottomCost,
    Cell,
    Estimate,
    Leak,
    LeakboardError,
    MethodSpec,
    Record,
    digest,
)

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
    "ep": REAL,
    "ep_low": REAL,
    "ep_high": REAL,
    "ep_chance": REAL,
    "advantage": REAL,
    "n": WHOLE,
    "units": WHOLE,
    "flags": TEXT,
    "undefended": TRUTH,
    "limit": WHOLE,
    "epochs": WHOLE,
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
}
"""Name and type of every column. A missing number is empty; a text that does not apply is ''."""


def in_order(records: Sequence[Record]) -> list[Record]:
    """Cell by cell as a reader looks for them, whatever the files are called.

    By task, model and cut; in each "none" first, then method by method along its parameters from
    the larger number to the smaller, "none" before all numbers; seeds last.
    """

    def place(record: Record) -> tuple[Any, ...]:
        cell, params = record.cell, record.cell.defense.params
        numbers = [-v if isinstance(v, int | float) else -math.inf for v in params.values()]
        defended = not record.undefended or bool(params)
        return cell.task, cell.model, cell.cut, defended, cell.defense.name, numbers, cell.seed

    return sorted(records, key=place)


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """One row per cell and leak, in the order of the records and of their leaks.

    A record without leaks gives one row with its status and reason, so that nothing vanishes. The
    models that attackers train themselves are no results, and have no row.
    """
    from bench.scoring import flags

    records = [record for record in records if record.cell.shadow is None]
    raised = flags(records)
    rows = []
    for record in records:
        leaks: Sequence[Leak | None] = record.leaks or [None]
        cell, own = _of_cell(record), raised.get((record.key, -1), ())
        for index, leak in enumerate(leaks):
            found = own if leak is None else (*own, *raised.get((record.key, index), ()))
            flagged = ",".join(dict.fromkeys(found))
            rows.append({**cell, **_of_leak(record, leak), "flags": flagged})
    return _typed(pd.DataFrame(rows, columns=list(COLUMNS)))


def export(table: pd.DataFrame, path: Path) -> None:
    """Writes a frame as .csv, .parquet or .json; a reader never sees half a file.

    Raises:
        LeakboardError: another suffix.
    """
    write = _writer(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        write(table, Path(name))
        # mkstemp makes files for their owner alone; a published table is for everybody.
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def load(path: Path) -> pd.DataFrame:
    """Reads what `export` wrote: the same frame, types included.

    Raises:
        LeakboardError: another suffix.
    """
    _writer(path)
    if path.suffix == ".parquet":
        return _typed(pd.read_parquet(path))
    if path.suffix == ".json":
        return _typed(pd.DataFrame(json.loads(path.read_text("utf-8")), columns=list(COLUMNS)))
    # Read as text first: only then is an empty text not the same as a missing number.
    table = pd.read_csv(path, dtype=TEXT, keep_default_na=False)
    for name, kind in COLUMNS.items():
        if kind == TRUTH:
            table[name] = table[name] == "True"
        elif kind != TEXT:
            table[name] = table[name].where(table[name] != "")
    return _typed(table)


def canonical(params: dict[str, Any]) -> str:
    """Parameters as JSON with sorted keys, so that equal parameters are equal text."""
    return json.dumps(params, sort_keys=True, ensure_ascii=False)


def _of_cell(record: Record) -> dict[str, Any]:
    cell, cost = record.cell, record.cost
    return {
        "task": cell.task,
        "model": cell.model,
        "cut": cell.cut,
        "defense": cell.defense.name,
        "params": canonical(cell.defense.params),
        "seed": cell.seed,
        "status": record.status,
        "reason": record.reason,
        "utility_metric": record.utility_metric,
        **_estimate("utility", record.utility),
        "utility_chance": record.utility and record.utility.chance,
        "undefended": record.undefended,
        "limit": cell.limit,
        "epochs": cell.train.epochs,
        "bytes_up": cost and cost.bytes_up,
        "bytes_down": cost and cost.bytes_down,
        "epoch_bytes_up": cost and cost.epoch_bytes_up,
        "epoch_bytes_down": cost and cost.epoch_bytes_down,
        **_of_bottom(cost.bottom if cost else None),
        "train_seconds": cost and cost.train_seconds,
        "device": record.provenance.device,
        "key": record.key,
        "commit": record.provenance.commit,
        "setup": _setup(cell),
    }


def _of_bottom(bottom: BottomCost | None) -> dict[str, float]:
    return {f"bottom_{name}": value for name, value in bottom or ()}


def _of_leak(record: Record, leak: Leak | None) -> dict[str, Any]:
    if leak is None:
        return dict.fromkeys(
            ("attack", "attack_params", "goal", "view", "attribute", "channel", "metric"), ""
        )
    found = {
        **_of_attack(leak.attack),
        "goal": leak.goal.value,
        "view": leak.view,
        "attribute": leak.attribute or "",
        "channel": leak.channel.value if leak.channel else "",
        "step": leak.step,
        "metric": leak.metric,
        **_estimate("success", leak.success),
        "chance": leak.success and leak.success.chance,
        **_estimate("ep", leak.ep),
        "ep_chance": leak.ep and leak.ep.chance,
        "advantage": leak.advantage,
        "n": leak.success and leak.success.n,
        "units": leak.units,
        "attack_seconds": leak.seconds,
    }
    if record.status == "ok":
        found |= {"status": leak.status, "reason": leak.reason}
    return found


def _of_attack(attack: MethodSpec) -> dict[str, Any]:
    return {
        "attack": attack.name,
        "attack_params": canonical(attack.params),
        "attack_version": attack.version,
    }


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float]:
    if estimate is None:
        return {}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _setup(cell: Cell) -> str:
    """Eight digits for what decides the outcome besides task, model, cut, defense and seed.

    Rows that differ in it must not be averaged: other data, training settings or versions.
    """
    rest = cell.model_dump(mode="json", exclude={"task", "model", "cut", "seed", "shadow"})
    rest["defense"] = cell.defense.version
    return digest(rest)[:8]


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(COLUMNS)


def _writer(path: Path) -> Callable[[pd.DataFrame, Path], object]:
    writers: dict[str, Callable[[pd.DataFrame, Path], object]] = {
        ".csv": lambda table, to: table.to_csv(to, index=False),
        ".parquet": lambda table, to: table.to_parquet(to, index=False),
        ".json": _write_json,
    }
    if path.suffix not in writers:
        raise LeakboardError(
            f"{path}: the suffix '{path.suffix}' is unknown; use .csv, .parquet or .json"
        )
    return writers[path.suffix]


def _write_json(table: pd.DataFrame, to: Path) -> None:
    # pandas' own writer keeps at most 15 digits of a number; json keeps them all.
    rows = [
        {name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")
    ]
    to.write_text(json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    missing = value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return None if missing else value
