"""What the depth of the cut hides by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, keys_of, listed, measured
from leakboard.leaderboards.tables import Comparison, ranged


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """What is read of the inputs without noise at each of several cuts; the one that keeps most speaks."""
    for comparison in compared:
        means = comparison.deciding()
        deep = (means["goal"] == Goal.INVERSION) & means["undefended"] & (means["cut"] > 0)
        for defense, own in means[deep].groupby("defense", sort=False):
            if own["cut"].nunique() < 2:
                continue
            row = own.sort_values("ep", ascending=False).iloc[0].to_dict()
            told = ranged(row["success"], row["success_low"], row["success_high"])
            cuts = listed([str(cut) for cut in sorted(own["cut"])])
            yield Finding(
                rule="depth",
                claim=f"On {comparison.task} with {comparison.model}, {defense} without noise, cut after block "
                f"{cuts}: where the depth hides most, after block {row['cut']}, {row['attack']} still reaches "
                f"{told} ({row['metric']}; guessing {row['chance']:.3f}).",
                settings=tuple(f"{defense} cut = {cut}" for cut in sorted(own["cut"])),
                **measured(comparison, row),
                keys=tuple(
                    key for one in own.to_dict("records") for key in keys_of(comparison, one)
                ),
            )
