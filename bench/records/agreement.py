"""Comparison of two records of one cell: exact on one machine, within intervals across machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from leakboard.bench.contracts import Estimate, Leak, Record, attack_id, name_of


def compare_runs(stated: Record, again: Record) -> tuple[Outcome, str]:
    """Compare a record with another run of its cell: equal, or in agreement within the intervals."""
    where = f"{stated.key} ({stated.cell.defense.name}, seed {stated.cell.seed})"
    if _shared_outcome(stated, again) == _shared_outcome(again, stated):
        return "held", f"{where}: every number came out the same"
    if again.status != "ok":
        return "refused", f"{where}: ended {again.status} here: {again.reason}"
    apart = list(_disagreements(stated, again))
    if apart:
        return "refused", f"{where}: {'; '.join(apart[:5])}{' …' if len(apart) > 5 else ''}"
    return (
        "held",
        f"{where}: not the same to the last digit, as on another machine; utility and every success "
        "lie within each other's 95 % interval",
    )


def _shared_outcome(record: Record, other: Record) -> dict[str, Any]:
    """The outcome with the measures that both records have, since later versions add measures."""
    measures = {name: each for name, each in record.measures.items() if name in other.measures}
    return record.model_copy(update={"measures": measures}).outcome()


def _disagreements(stated: Record, again: Record) -> Iterator[str]:
    """Values of two records outside of the other's interval, and results that only one has."""
    if not _agree(stated.utility, again.utility):
        yield f"utility {_format_estimate(stated.utility)}, here {_format_estimate(again.utility)}"
    theirs, ours = _leaks_by_id(stated), _leaks_by_id(again)
    for what in dict.fromkeys([*theirs, *ours]):
        one, two = theirs.get(what), ours.get(what)
        if one is None or two is None:
            found = one or two
            assert found is not None
            yield f"{name_of(found)} {'is new' if one is None else 'did not come out'} here"
        elif one.status != two.status or not _agree(one.success, two.success):
            yield (
                f"{name_of(one)} {one.status} {_format_estimate(one.success)}, "
                f"here {two.status} {_format_estimate(two.success)}"
            )


def _leaks_by_id(record: Record) -> dict[tuple[Any, ...], Leak]:
    return {
        (attack_id(k.attack), k.goal, k.view, k.attribute, k.channel, k.metric): k
        for k in record.leaks
    }


def _agree(one: Estimate | None, two: Estimate | None) -> bool:
    """Whether each value lies in the other's interval, and chance levels differ by no more than an interval."""
    if one is None or two is None:
        return one is two
    values = one.low <= two.value <= one.high and two.low <= one.value <= two.high
    return values and abs(one.chance - two.chance) <= max(one.high - one.low, two.high - two.low)


def _format_estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "none"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}], chance {estimate.chance:.3f}"


Outcome = Literal["held", "note", "refused"]


def differing(first: Record, second: Record) -> list[str]:
    """Names of the measurements in which two records of one cell differ; empty if they agree."""
    a, b = _without_leaks(first, second), _without_leaks(second, first)
    found = [name for name in a if a[name] != b[name]]
    ours, theirs = _leaks(first), _leaks(second)
    return found + [
        f"attack {leaks[0]['attack']['name']}"
        for attack, leaks in ours.items()
        if theirs.get(attack, leaks) != leaks
    ]


def _without_leaks(record: Record, other: Record) -> dict[str, Any]:
    shared = _shared_outcome(record, other)
    return {name: value for name, value in shared.items() if name != "leaks"}


def _leaks(record: Record) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for leak, told in zip(record.leaks, record.outcome()["leaks"], strict=True):
        found.setdefault(attack_id(leak.attack), []).append(told)
    return found
