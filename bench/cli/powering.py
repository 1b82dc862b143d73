"""Output of `leakboard plan --power`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.contracts import LeakboardError, Record
from leakboard.bench.running import Plan
from leakboard.leaderboards.findings import Comparison, comparisons, describe_power
from leakboard.leaderboards.tables import (
    count,
    format_interval,
    format_number,
    printed_claims,
    results_table,
)

SEEDS = (3, 5, 10)
NOTES = (
    "difference: mean over the pilot's seeds, with its 95 % interval; sd: standard deviation of the paired differences "
    "over these seeds. The true sd is 0.5 to 6 times the one of 3 seeds, and 0.6 to 3 times the one of 5 (95 %).",
    "excluded by n: smallest difference outside the 95 % interval of n seeds, if their mean difference is 0. "
    "power: probability that the suite's seeds show the difference that matters (for a claim of equality: "
    "exclude it), by a paired t-test at 5 %, which all pairs of a claim share.",
    "needed: seeds for a power of 0.8; hours: time for the missing seeds on two cores, from recorded durations.",
)


def power_content(plan: Plan, pilot: Sequence[Record]) -> dict[str, Any]:
    """The comparisons between cells of a plan that two or more seeds of the pilot measure, and what seeds decide.

    Args:
        pilot: records; those count that differ from a cell of the plan in nothing but the seed.

    Raises:
        LeakboardError: there is no such comparison.
    """
    cells = [planned.cell for planned in plan.cells]
    found = comparisons(results_table(pilot), printed_claims(), cells)
    if not found:
        raise LeakboardError(
            "--power: no earlier records have two settings of this plan with two or more seeds. Run the suite with "
            "--seeds 0,1,2 first, or name a folder of such records with --pilot"
        )
    seeds = len(plan.suite.seeds)
    return {
        "suite": plan.suite.name,
        "seeds": seeds,
        "comparisons": [_row(one, seeds) for one in found],
        "notes": describe_power(found, seeds),
    }


def power_tables(content: dict[str, Any]) -> Iterator[RenderableType]:
    """`power_content` for a terminal."""
    table = Table(
        title=f"Power of {content['suite']} with {count(content['seeds'], 'seed')}",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
    )
    for name in ("comparison", "seeds", "difference", "sd", "matters"):
        table.add_column(name, overflow="fold")
    for name in (*(f"excluded by {n}" for n in SEEDS), "power", "needed", "hours"):
        table.add_column(name, justify="right")
    for row in content["comparisons"]:
        excluded = [format_number(row["excluded"][str(n)]) for n in SEEDS]
        needed = "> 1000" if row["needed"] is None else str(row["needed"])
        hours = "–" if row["hours"] is None else f"{row['hours']:.1f}"
        cells = [row["comparison"], str(row["pilot_seeds"]), row["difference"]]
        cells += [format_number(row["sd"]), row["matters_in_words"], *excluded]
        table.add_row(*map(Text, (*cells, format_number(row["power"]), needed, hours)))
    yield table
    yield from map(Text, content["notes"])
    yield from (Text(note, "dim") for note in NOTES)


def _row(one: Comparison, seeds: int) -> dict[str, Any]:
    needed = one.seeds_needed()
    hours = None if needed is None else one.hours(needed, one.seeds)
    return {
        "comparison": f"{one.kind}: {one.name}",
        "pilot_seeds": one.seeds,
        "difference": format_interval(one.gap),
        "sd": one.spread,
        "matters": one.matters,
        "unit": one.unit.strip(),
        "matters_in_words": one.least,
        "excluded": {str(n): one.excluded(n) for n in SEEDS},
        "power": one.power(seeds),
        "needed": needed,
        "hours": None if hours is None or isnan(hours) else hours,
        "share_of_variance_from_evaluated_examples": None
        if isnan(one.example_share)
        else one.example_share,
    }
