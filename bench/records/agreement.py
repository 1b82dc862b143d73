"""Comparison of two records of one cell: exact on one machine, within intervals across machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, Literal

from leakboard.bench.contracts import (
    Claim,
    Cost,
    Estimate,
    Leak,
    Provenance,
    Record,
    attack_id,
    name_of,
    plain,
)
from leakboard.bench.scoring import truth_of

FACTOR = 1000.0
"""Largest ratio of the seconds or the memory of a cell on two machines."""
COUNTS = 0.1
"""Largest relative difference of counts of two runs with different secrets, whose batches or words differ."""
LOSS = 0.25
"""Largest relative difference of a training loss, of which 0.05 is always allowed."""
YOUNGER = frozenset({"accuracy", "macro-F1", "MCC"})
"""Measures that older records of classifiers do not have."""
REPORTED = ("seconds", "peak_megabytes")
"""Ends of the names of costs that depend on the machine."""


def compare_runs(stated: Record, again: Record) -> tuple[Outcome, str]:
    """Compare a record with another run of its cell: equal, or in agreement within the intervals."""
    where = f"{stated.key} ({stated.cell.defense.name}, seed {stated.cell.seed})"
    if again.status != "ok":
        return "refused", f"{where}: ended {again.status} here: {again.reason}"
    differences = [*_implausible(stated, again)]
    if stated.outcome() == _with_measures_of(stated, again).outcome():
        if differences:
            return "refused", f"{where}: {'; '.join(one.text for one in differences)}"
        return "held", f"{where}: every number came out the same"
    differences += _differences(stated, again)
    deviations = [one.text for one in differences if not one.is_allowed]
    if deviations:
        return (
            "refused",
            f"{where}: {'; '.join(deviations[:5])}{' …' if len(deviations) > 5 else ''}",
        )
    fields = ", ".join(dict.fromkeys(one.field for one in differences))
    return (
        "held",
        f"{where}: not the same to the last digit, as with {_cause(stated.provenance, again.provenance)}; utility "
        f"and every success lie within each other's 95 % interval. These differ as far as they may: {fields}",
    )


def _cause(stated: Provenance, again: Provenance) -> str:
    """Why two runs of a cell may differ, from what their records tell of the runs."""
    software = ("device", "threads", "platform", "python", "packages")
    causes = []
    if stated.secret != again.secret:
        causes.append("another secret, from which coins, canaries and noise are drawn")
    if any(getattr(stated, name) != getattr(again, name) for name in software):
        causes.append("another device, number of threads or version of a package")
    return ", and ".join(causes) or "another processor"


def _with_measures_of(stated: Record, again: Record) -> Record:
    """The second run without the measures of classifiers that the first is too old to have."""
    kept = {n: m for n, m in again.measures.items() if n in stated.measures or n not in YOUNGER}
    return again.model_copy(update={"measures": kept})


@dataclass(frozen=True)
class Difference:
    """A field in which two runs of a cell differ.

    Attributes:
        is_allowed: whether two machines may differ so far.
    """

    field: str
    text: str
    is_allowed: bool


def _difference(field: str, stated: object, again: object, is_allowed: bool = False) -> Difference:
    return Difference(field, f"{field} {_format(stated)}, here {_format(again)}", is_allowed)


def _implausible(stated: Record, again: Record) -> Iterator[Difference]:
    """Seconds and memory that no other machine explains; those below 0.1 tell nothing."""
    if stated.cost is None or again.cost is None:
        return
    theirs, ours = stated.cost.model_dump(), again.cost.model_dump()
    for name in theirs:
        if not name.endswith(REPORTED):
            continue
        if ours[name] is None and theirs[name] is not None:
            yield _difference(f"cost.{name}", theirs[name], ours[name])
        elif theirs[name] is not None:  # older records have not all of them
            one, two = (max(0.1, value) for value in (theirs[name], ours[name]))
            if max(one, two) > FACTOR * min(one, two):
                yield _difference(f"cost.{name}", theirs[name], ours[name])


def _differences(stated: Record, again: Record) -> Iterator[Difference]:
    """Every field in which the outcomes of two runs differ."""
    counts = 0.0 if stated.provenance.secret == again.provenance.secret else COUNTS
    for name in ("status", "reason", "undefended", "utility_metric"):
        yield from _equal(name, getattr(stated, name), getattr(again, name))
    yield from _estimates("utility", stated.utility, again.utility, counts)
    shared = _with_measures_of(stated, again).measures
    yield from _equal("measures", sorted(stated.measures), sorted(shared))
    for name in stated.measures.keys() & again.measures.keys():
        yield from _estimates(
            f"measures.{name}", stated.measures[name], again.measures[name], counts
        )
    yield from _close("dropped_bytes", stated.dropped_bytes, again.dropped_bytes, counts)
    yield from _predictions(stated, again)
    yield from _losses(stated.loss, again.loss)
    yield from _projections(stated, again, counts)
    yield from _claims(stated.claim, again.claim)
    yield from _costs(stated.cost, again.cost, counts)
    theirs, ours = ({leak.identity: leak for leak in one.leaks} for one in (stated, again))
    for what in dict.fromkeys([*theirs, *ours]):
        one, two = theirs.get(what), ours.get(what)
        if one is None or two is None:
            found = one or two
            assert found is not None
            text = f"{name_of(found)} {'is new' if one is None else 'did not come out'} here"
            yield Difference(f"leak {name_of(found)}", text, False)
        else:
            yield from _leaks_of(one, two, counts)
    if [*theirs] != [*ours]:
        yield _difference("order of leaks", "another", "ours", True)


def _leaks_of(stated: Leak, again: Leak, counts: float) -> Iterator[Difference]:
    name = name_of(stated)
    if stated.status != again.status:
        text = (
            f"{name} {stated.status} {_format(stated.success)}, "
            f"here {again.status} {_format(again.success)}"
        )
        yield Difference(f"{name} status", text, False)
        return
    yield from _equal(f"{name} reason", stated.reason, again.reason, True)
    yield from _estimates(f"{name} {stated.status}", stated.success, again.success, counts)
    yield from _estimates(f"{name} floor", stated.floor, again.floor, counts)
    yield from _equal(f"{name} step", stated.step, again.step, True)
    yield from _equal(f"{name} ceiling", stated.ceiling, again.ceiling)
    yield from _close(f"{name} bound", stated.bound, again.bound, max(counts, 1e-3))
    yield from _epsilons(name, stated, again)
    at_one_moment = stated.step == again.step
    for field in ("undefined", "units"):
        allowed = counts if at_one_moment else 1.0
        yield from _close(f"{name} {field}", getattr(stated, field), getattr(again, field), allowed)
    yield from _equal(f"{name} told", stated.told, again.told, counts > 0)
    yield from _equal(f"{name} raw", sorted(stated.raw), sorted(again.raw))
    yield from _equal(f"{name} raw", stated.raw, again.raw, True)
    yield from _curves(name, stated, again)


def _epsilons(name: str, stated: Leak, again: Leak) -> Iterator[Difference]:
    """Bounds on ε of audits, which follow from the guesses; others may not state one."""
    one, two = stated.epsilon, again.epsilon
    if one != two:
        near = one is not None and two is not None and abs(one - two) <= max(1.0, two)
        yield _difference(f"{name} epsilon", one, two, near)
    one, two = stated.epsilon_ceiling, again.epsilon_ceiling
    if one != two:
        near = two is not None and (one is None or abs(one - two) <= COUNTS * two)
        yield _difference(f"{name} epsilon_ceiling", one, two, near)


def _curves(name: str, stated: Leak, again: Leak) -> Iterator[Difference]:
    if stated.curve == again.curve:
        return
    field = f"{name} curve"
    steps = [[point.step for point in leak.curve] for leak in (stated, again)]
    if steps[0] != steps[1]:
        yield _difference(f"{field} steps", steps[0], steps[1])
        return
    for one, two in zip(stated.curve, again.curve, strict=True):
        width = max(two.success.high - two.success.low, 1e-6)
        # There are many moments, of which some differ more by chance.
        near = abs(one.success.value - two.success.value) <= 2 * width
        if not (near and _same_shape(one.success, two.success, 2 * width)):
            yield _difference(f"{field} at step {one.step}", one.success, two.success)
    yield _difference(field, "differs", "otherwise", True)


def _predictions(stated: Record, again: Record) -> Iterator[Difference]:
    theirs, ours = stated.predictions, again.predictions
    shapes = [{name: len(values) for name, values in each.items()} for each in (theirs, ours)]
    yield from _equal("predictions", shapes[0], shapes[1])
    if truth_of(theirs) != truth_of(ours):
        yield Difference("predictions.truth", "predictions.truth differs from the data here", False)
    yield from _equal("predictions", theirs, ours, True)


def _losses(stated: Sequence[float], again: Sequence[float]) -> Iterator[Difference]:
    yield from _equal("length of loss", len(stated), len(again))
    for one, two in zip(stated, again, strict=False):
        if one != two:
            yield _difference("loss", one, two, abs(one - two) <= 0.05 + LOSS * abs(two))


def _projections(stated: Record, again: Record, counts: float) -> Iterator[Difference]:
    """Projections: points depend on the machine, but examples and moments must agree."""
    shown = [
        [(p.channel, p.step, p.part, p.recipient, p.truth, len(p.points)) for p in one.projections]
        for one in (stated, again)
    ]
    if shown[0] != shown[1]:
        text = "projections show other examples or moments than here"
        yield Difference("projections", text, counts > 0)
    for one, two in zip(stated.projections, again.projections, strict=False):
        for a, b in zip(one.points, two.points, strict=False):
            if a != b:
                fits = len(a) == len(b) and all(abs(x) <= 1000 for x in a)
                yield _difference("projections.points", a, b, fits)


def _claims(stated: Claim | None, again: Claim | None) -> Iterator[Difference]:
    if stated is None or again is None:
        yield from _equal("claim", stated, again)
        return
    for name in ("guarantee", "covers"):
        yield from _equal(f"claim.{name}", getattr(stated, name), getattr(again, name))
    yield from _equal("claim.unit", stated.unit, again.unit, stated.unit is None)
    yield from _equal("claim.parameters", sorted(stated.parameters), sorted(again.parameters))
    for name in stated.parameters.keys() & again.parameters.keys():
        one, two = stated.parameters[name], again.parameters[name]
        yield from _close(f"claim.parameters.{name}", one, two, 1e-6)
    if stated.profile != again.profile:
        pairs = zip(stated.profile, again.profile, strict=False)
        near = len(stated.profile) == len(again.profile) and all(
            isclose(x, y, rel_tol=1e-3) for one, two in pairs for x, y in zip(one, two, strict=True)
        )
        older = not stated.profile
        yield _difference("claim.profile", stated.profile[:1], again.profile[:1], near or older)


def _costs(stated: Cost | None, again: Cost | None, counts: float) -> Iterator[Difference]:
    if stated is None or again is None:
        yield from _equal("cost", stated, again)
        return
    theirs, ours = stated.model_dump(exclude={"bottom"}), again.model_dump(exclude={"bottom"})
    yield from _equal(
        "cost.trained_parameters", stated.trained_parameters, again.trained_parameters
    )
    for name in theirs:
        if name != "trained_parameters" and not name.endswith(REPORTED):
            yield from _close(f"cost.{name}", theirs[name], ours[name], counts)
    one, two = stated.bottom, again.bottom
    if one is None or two is None:
        yield from _equal("cost.bottom", one, two, one is None)
        return
    yield from _equal("cost.bottom.parameters", one.parameters, two.parameters)
    for name in ("tokens", "flops", "megabytes"):
        yield from _close(f"cost.bottom.{name}", getattr(one, name), getattr(two, name), counts)


def _equal(
    field: str, stated: object, again: object, is_allowed: bool = False
) -> Iterator[Difference]:
    if stated != again:
        yield _difference(field, stated, again, is_allowed)


def _close(
    field: str, stated: float | None, again: float | None, tolerance: float
) -> Iterator[Difference]:
    """Numbers that are equal up to rounding; a relative difference up to `tolerance` is allowed."""
    if stated != again:
        near = (
            stated is not None
            and again is not None
            and isclose(stated, again, rel_tol=max(tolerance, 1e-9))
        )
        yield _difference(field, stated, again, near)


def _estimates(
    field: str, stated: Estimate | None, again: Estimate | None, counts: float
) -> Iterator[Difference]:
    if stated == again:
        return
    near = stated is not None and again is not None
    if stated is not None and again is not None:
        width = max(again.high - again.low, 1e-6)
        near = (
            stated.low <= again.value <= stated.high
            and again.low <= stated.value <= again.high
            and _same_shape(stated, again, width)
            and isclose(stated.n, again.n, rel_tol=max(counts, 0.5 * (" worst " in field)))
        )
    yield _difference(field, stated, again, near)


def _same_shape(stated: Estimate, again: Estimate, width: float) -> bool:
    """Whether the ends of two intervals, and their chance levels, differ by no more than an interval."""
    ends = ("low", "high", "chance")
    return all(abs(getattr(stated, end) - getattr(again, end)) <= width for end in ends)


def _format(value: object) -> str:
    if isinstance(value, Estimate):
        return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}], chance {value.chance:.3f}"
    return "none" if value is None else plain(value, 80)


Outcome = Literal["held", "note", "refused"]


def differing(first: Record, second: Record) -> list[str]:
    """Names of the measurements in which two records of one cell differ; empty if they agree."""
    a, b = _with_measures_of(second, first).outcome(), _with_measures_of(first, second).outcome()
    ours, theirs = _by_attack(first, a.pop("leaks")), _by_attack(second, b.pop("leaks"))
    return [name for name in a if a[name] != b[name]] + [
        f"attack {leaks[0]['attack']['name']}"
        for attack, leaks in ours.items()
        if theirs.get(attack, leaks) != leaks
    ]


def _by_attack(record: Record, stated: Any) -> dict[str, list[dict[str, Any]]]:
    """The leaks of the record's outcome, by attack."""
    found: dict[str, list[dict[str, Any]]] = {}
    for leak, stated_fields in zip(record.leaks, stated, strict=True):
        found.setdefault(attack_id(leak.attack), []).append(stated_fields)
    return found
