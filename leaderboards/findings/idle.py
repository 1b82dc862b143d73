"""Goals on which nothing can be said, since no attack works even where nothing is protected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, called, keys_of, measured
from leakboard.leaderboards.tables import IDLE, NOTHING_WORKS, Comparison, ranged


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """Where the strongest attack leaves the model without protection more than `IDLE` of its privacy.

    Secrets that were never planted are left out: there is nothing to find.
    """
    for comparison in compared:
        plant = comparison.records[0].cell.plant
        unseen = plant is not None and not max(plant.copies, default=1)
        means = comparison.deciding()
        open_ = means[means["undefended"]]
        open_ = open_.assign(kept=open_["ep"] / open_["ep_chance"])
        for (goal, attribute), rows in open_.groupby(["goal", "attribute"], sort=False):
            row = rows.sort_values("kept").iloc[0].to_dict()
            if row["kept"] <= IDLE or (unseen and goal == Goal.MEMORISATION):
                continue
            told = ranged(row["success"], row["success_low"], row["success_high"])
            what = called(Goal(str(goal)), str(attribute))
            little = row["success_low"] > row["chance"]
            says = (
                f"what attacks here find of {what} is too little to judge a defense by"
                if little
                else f"{NOTHING_WORKS} on {what}"
            )
            yield Finding(
                rule="idle",
                claim=f"On {comparison.task} with {comparison.model} ({comparison.words}): {says}. "
                f"Even without protection {row['attack']} reaches {told} "
                f"({row['metric']}; guessing {row['chance']:.3f}), so that nothing is claimed of any defense.",
                settings=(str(row["defense"]),),
                **measured(comparison, row),
                keys=keys_of(comparison, row),
            )
