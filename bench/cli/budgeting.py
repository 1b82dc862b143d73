"""Output of `leakboard plan --on`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.backbones import Architecture
from leakboard.bench.cli.listing import format_duration
from leakboard.bench.running import Accelerator, CellBudget

PARTS = ("train_seconds", "utility_seconds", "attack_seconds")


def budget_tables(
    budgets: Sequence[CellBudget],
    shape: Architecture,
    hardware: Accelerator,
    efficiency: float,
    price: float | None,
) -> Iterator[RenderableType]:
    """A row for each setting, with all its seeds, and the sums.

    Args:
        price: of an hour on one accelerator, in any currency.
    """
    table = Table(
        title=f"Budget for {shape.name} on one {hardware.name}",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
    )
    table.add_column("task")
    table.add_column("defense", overflow="fold")
    for name in ("cut", "cells", "PFLOP", "training", "utility", "attacks", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in _grouped(budgets):
        first, n = group[0], len(group)
        cell = first.planned.cell
        row = [cell.task, first.planned.named, str(cell.cut), str(n)]
        if first.failure:
            table.add_row(*row, f"not counted: {first.failure}")
            continue
        parts = [format_duration(sum(each.seconds[part] for each in group)) for part in range(3)]
        flops = sum(each.flops for each in group) / 1e15
        table.add_row(*row, f"{flops:.3g}", *parts, f"{first.gigabytes:.1f} GB")
    yield table
    seconds = sum(sum(each.seconds) for each in budgets)
    most = max((each.gigabytes for each in budgets), default=0.0)
    disk = sum(each.disk for each in budgets) / 1e9
    cost = (
        "" if price is None else f" They cost {price * seconds / 3600:,.2f} at {price:g} an hour."
    )
    yield Text(
        f"{len(budgets)} cells: {format_duration(seconds)} on one accelerator, at {efficiency:.0%} of its peak "
        f"({hardware.float32:g} TFLOP/s in float32, {hardware.bf16:g} in bf16).{cost}"
    )
    fits = "" if most <= hardware.gigabytes else ": MORE THAN IT HAS"
    yield Text(
        f"Memory: at most {most:.1f} GB of {hardware.gigabytes:g}{fits}. Disk: {disk:.1f} GB of transcripts with --transcripts, "
        f"and {0.2 * len(budgets):.0f} MB of records."
    )
    yield Text(
        "Not counted: attacks that run on the CPU, nearest-neighbour search among words, and loading data. "
        f"Source of the accelerator's figures: {hardware.source}",
        "dim",
    )


def budget_content(budgets: Sequence[CellBudget]) -> list[dict[str, object]]:
    """An entry for each cell."""
    return [
        {
            "key": each.planned.cell.key,
            "task": each.planned.cell.task,
            "defense": each.planned.named,
            "cut": each.planned.cell.cut,
            "seed": each.planned.cell.seed,
            "flops": each.flops,
            **dict(zip(PARTS, each.seconds, strict=True)),
            "memory_gigabytes": each.gigabytes,
            "transcript_bytes": each.disk,
            "failure": each.failure,
        }
        for each in budgets
    ]


def _grouped(budgets: Sequence[CellBudget]) -> list[list[CellBudget]]:
    """Cells that differ only in their seed, or in the coins of a shadow model."""
    groups: dict[tuple[object, ...], list[CellBudget]] = {}
    for each in budgets:
        cell = each.planned.cell
        name = each.planned.named.split(", shadow model")[0]
        where = cell.task, name, cell.cut, cell.train, cell.plant, cell.shadow is None
        groups.setdefault(tuple(map(repr, where)), []).append(each)
    return list(groups.values())
