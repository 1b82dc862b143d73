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
    what, it = called(Goal(aim[0]), aim[1]), "it" if aim[0] == Goal.MODEL else "them"
    told = _counted([line.shields[aim].verdict for line in lines], it)
    alone = len(lines) == 1
    best = max(lines, key=lambda line: _kept(line, aim))
    shield = best.shields[aim]
    if shield.leak is None or shield.verdict == Verdict.NOT_SHOWN:  # then it is of all
        return
    about = f"{what[0].upper()}{what[1:]} on {one.comparison.task} ({one.comparison.model}): "
    if shield.verdict in PRAISE:
        points, ends = points_lost(best.lost)
        most = f"{best.named} keeps" if alone else f"most is kept by {best.named},"
        whose = "its" if it == "it" else "their"
        told += (
            f"; {most} {shield.leak.kept} of {whose} privacy, for {points} {ends} points of utility"
        )
        if USELESS in flags_of(shield.row):
            told += ", while the untuned model may be as useful"
    else:
        told += f"; {'' if alone else 'even '}of {best.named} {shield.leak}"
    yield Finding(
        rule="overview",
        claim=f"{about}{told}.",
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


def _counted(words: Sequence[Verdict], it: str) -> str:
    """How many of the defenses do what; of one alone what it does."""
    if len(words) == 1:
        praise = {Verdict.PROTECTS: f"protects {it}", Verdict.PARTLY: f"protects {it} partly"}
        return f"the one defense there {praise.get(words[0], f'leaks {it}')}"
    protect, partly, leak, silent = (
        words.count(word)
        for word in (Verdict.PROTECTS, Verdict.PARTLY, Verdict.LEAKS, Verdict.NOT_SHOWN)
    )
    told = [f"{protect or 'none'} of {len(words)} defenses protect{'s' * (protect < 2)} {it}"]
    told += [f"{partly} partly"] if partly else []
    told += [f"{leak} leak{'s' * (leak == 1)} {it}"] if leak else []
    told += [f"{silent} not shown"] if silent else []
    return ", ".join(told)


def _kept(line: Line, aim: tuple[str, str]) -> tuple[bool, float]:
    """What is praised first, then by what is kept; what is not shown last."""
    shield = line.shields[aim]
    if shield.leak is None or shield.verdict == Verdict.NOT_SHOWN:
        return False, -1.0
    return shield.verdict in PRAISE, shield.leak.kept.value
