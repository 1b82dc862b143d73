"""The short answer: which defenses hide what, how much of it, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.contracts import Goal
from bench.methods import registry
from leaderboards.findings.finding import Finding, called
from leaderboards.tables import (
    PRAISE,
    Comparison,
    Line,
    Matrix,
    Verdict,
    counted,
    flags_of,
    matrices,
    points_lost,
)

USELESS = "not-above-untuned"
"""The flag of a setting whose utility is not clearly above the untuned model's, in one seed at least."""


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each thing that can be hidden how many defenses do, and which keeps most of it.

    Each defense stands at the setting of the matrix. Of several comparisons of a task and model the one
    with most defenses speaks.
    """
    first: dict[tuple[str, str], Matrix] = {}
    for one in matrices(compared):
        first.setdefault((one.comparison.task, one.comparison.model), one)
    for one in first.values():
        for aim in one.aims:
            if aim not in one.idle:
                yield from _finding(one, aim)


def offers(one: Matrix) -> list[Line]:
    """The lines of a matrix whose defenses are made to hide something, at such a setting."""
    known = registry.defenses()
    made = []
    for line in one.lines:
        method = registry.now(line.defense, known)
        if method is None or method.protects or method.measured_by:
            made.append(line)
    return made


def _finding(one: Matrix, aim: tuple[str, str]) -> Iterator[Finding]:
    lines = [line for line in offers(one) if line.shields[aim].verdict != Verdict.NOT_APPLICABLE]
    if not lines:
        return
    words = [line.shields[aim].verdict for line in lines]
    counts = {word: words.count(word) for word in Verdict}
    what = called(Goal(aim[0]), aim[1])
    told = [
        f"{counts[Verdict.PROTECTS] or 'none'} of {counted(len(lines), 'defense')} protects them"
    ]
    told += [
        f"{counts[word]} {verb}"
        for word, verb in (
            (Verdict.PARTLY, "partly"),
            (Verdict.LEAKS, "leak them"),
            (Verdict.NOT_SHOWN, "not shown"),
        )
        if counts[word]
    ]
    best = max(lines, key=lambda line: _kept(line, aim))
    shield = best.shields[aim]
    if shield.leak is None or shield.verdict == Verdict.NOT_SHOWN:  # then it is of all
        return
    about = f"{what[0].upper()}{what[1:]} on {one.comparison.task} ({one.comparison.model}): "
    if shield.verdict in PRAISE:
        points, ends = points_lost(best.lost)
        told[-1] += (
            f"; most is kept by {best.named}, {shield.leak.kept} of their privacy, for {points} {ends} "
            f"points of utility"
        )
        if USELESS in flags_of(shield.row):
            told[-1] += ", while the untuned model may be as useful"
    else:
        told[-1] += f"; even of {best.named} {shield.leak}"
    yield Finding(
        rule="overview",
        claim=f"{about}{', '.join(told)}.",
        task=one.comparison.task,
        model=one.comparison.model,
        settings=tuple(line.named for line in lines),
        metric="privacy kept",
        figure=shield.leak.kept.value,
        interval=(shield.leak.kept.low, shield.leak.kept.high),
        n=shield.leak.n,
        seeds=int(shield.row["n_seeds"]),
        attack=shield.leak.attack,
        keys=tuple(dict.fromkeys(key for line in [best, *lines] for key in line.keys)),
    )


def _kept(line: Line, aim: tuple[str, str]) -> tuple[bool, float]:
    """What is praised first, then by what is kept; what is not shown last."""
    shield = line.shields[aim]
    if shield.leak is None or shield.verdict == Verdict.NOT_SHOWN:
        return False, -1.0
    return shield.verdict in PRAISE, shield.leak.kept.value
