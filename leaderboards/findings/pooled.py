"""What one noisy vector per text leaves of its words and of its author, beside utility and what is claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from leakboard.bench.contracts import Claim, Goal
from leakboard.leaderboards.findings.finding import Finding, called, keys_of, listed, measured
from leakboard.leaderboards.tables import NOT_SHOWN, Comparison, Row, ranged, setting_of, standing

READS = "pooled-inversion"
"""What reads words where a text is one vector."""
PER = {"epsilon_per_dimension": "a dimension", "epsilon_per_vector": "the vector"}
"""What a claim of these defenses is about, by its parameter."""


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each defense that sends such vectors all its settings, under the strongest attack on each goal.

    That no more than guessing is read is said only where the attack works without protection.
    """
    for comparison in compared:
        claims = {record.key: record.claim for record in comparison.records}
        goals = [*comparison.means(Goal.INVERSION), *comparison.means(Goal.ATTRIBUTE)]
        goals = [row for row in goals if not row["undefended"]]
        for name in dict.fromkeys(str(row["defense"]) for row in goals if row["attack"] == READS):
            read = [row for row in goals if row["defense"] == name]
            if any(claims[key] for row in read for key in keys_of(comparison, row)):
                yield _finding(comparison, name, read, claims)


def _finding(
    comparison: Comparison, name: str, read: Sequence[Row], claims: Mapping[str, Claim | None]
) -> Finding:
    settings: dict[str, list[Row]] = {}
    for row in read:
        settings.setdefault(str(comparison.lost[setting_of(row)]["label"]), []).append(row)
    parts = []
    for label, own in settings.items():
        first = own[0]
        utility = ranged(first["utility"], first["utility_low"], first["utility_high"])
        told = [f"{utility} of {first['utility_metric']}", *map(_read, own)]
        claim = claims[keys_of(comparison, first)[0]]
        parts.append(f"at {label}{_claimed(claim)} {', '.join(told)}")
    verdicts = []
    for aim in dict.fromkeys(_called(row) for row in read):
        rows_of = {at: row for at, rows in settings.items() for row in rows if _called(row) == aim}
        beyond = [at for at, row in rows_of.items() if _beyond(row)]
        within = [at for at, row in rows_of.items() if not _beyond(row) and _works(row)]
        words = [f"are read beyond guessing at {listed(beyond)}"] if beyond else []
        words += [f"are not shown to be at {listed(within)}"] if within else []
        verdicts += [f"{aim} {' and '.join(words)}"] if words else []
    least = min(
        (row for row in read if row["goal"] == Goal.INVERSION), key=lambda row: row["success"]
    )
    return Finding(
        rule="pooled",
        claim=f"On {comparison.task} with {comparison.model} ({comparison.words}), what one vector per text "
        f"leaves under {name}: {'; '.join(parts)}. {'; '.join(verdicts) or 'Nothing is shown of either'}.",
        settings=tuple(f"{name} {label}".replace(" = ", "=") for label in settings),
        **measured(comparison, least),
        keys=tuple(dict.fromkeys(key for row in read for key in keys_of(comparison, row))),
    )


def _called(row: Row) -> str:
    return called(Goal(str(row["goal"])), str(row["attribute"])).replace("inputs", "words")


def _claimed(claim: Claim | None) -> str:
    """What is claimed, such as ' (ε = 1 a dimension and 384 the vector)'."""
    told = [
        f"{claim.parameters[name]:,g} {unit}"
        for name, unit in PER.items()
        if claim and name in claim.parameters
    ]
    return f" (claimed: ε = {listed(told)})" if told else " (nothing claimed)"


def _beyond(row: Row) -> bool:
    """Whether its whole interval lies above guessing."""
    return bool(row["success_low"] > row["chance"])


def _works(row: Row) -> bool:
    return standing(row) != NOT_SHOWN


def _read(row: Row) -> str:
    if not _beyond(row) and not _works(row):
        return f"{_called(row)} {NOT_SHOWN}"
    reach = ranged(row["success"], row["success_low"], row["success_high"])
    return f"{_called(row)} {reach} (guessing {row['chance']:.3f})"
