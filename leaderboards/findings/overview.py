"""The short answer: which defenses hide what, how much of it, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leakboard.bench.contracts import Goal
from leakboard.bench.methods import registry
from leakboard.bench.scoring import NEEDED
from leakboard.leaderboards.findings.finding import Finding, called
from leakboard.leaderboards.tables import (
    PRAISE,
    Comparison,
    Evidence,
    Found,
    Line,
    Matrix,
    Verdict,
    choices,
    evidence,
    flags_of,
    matrices,
    points_lost,
)

USELESS = "not-above-untuned"
"""The flag of a setting whose utility is not clearly above the untuned model's, in one seed at least."""
Place = tuple[str, str, int, str, str, Goal, str]
"""Task, model, cut, defense, the parameters that its user chooses, goal and attribute."""


@dataclass(frozen=True)
class Stand:
    """How the line of a defense stands against one goal, by whoever read most of that setting.

    Attributes:
        leak: None where nothing is shown.
        elsewhere: where that was in another comparison than the line's, whose attackers had more to
            learn from, or looked at more.
    """

    line: Line
    verdict: Verdict
    leak: Found | None
    elsewhere: Evidence | None = None


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """For each thing that can be hidden how many defenses do, and which keeps most of it.

    Each defense stands at the setting of the matrix. Of several comparisons of a task and model the one
    with most defenses speaks; what attackers read of a setting in any other counts, too.
    """
    most = {
        (one.task, one.model, one.cut, one.defense, one.choice, goal, one.attribute): one
        for goal in Goal
        for one in evidence(compared, goal)
    }
    first: dict[tuple[str, str], Matrix] = {}
    for one in matrices(compared):
        first.setdefault((one.comparison.task, one.comparison.model), one)
    for one in first.values():
        for aim in one.aims:
            if aim not in one.idle:
                yield from _finding(one, aim, most)


def offers(one: Matrix) -> list[Line]:
    """The lines of a matrix whose defenses are made to hide something, at such a setting."""
    known = registry.defenses()
    made = []
    for line in one.lines:
        method = registry.find(line.defense, known)
        if method is None or method.protects or method.measured_by:
            made.append(line)
    return made


def _finding(
    one: Matrix, aim: tuple[str, str], most: Mapping[Place, Evidence]
) -> Iterator[Finding]:
    stands = [
        _stand(one, line, aim, most)
        for line in offers(one)
        if line.shields[aim].verdict != Verdict.NOT_APPLICABLE
    ]
    if not stands:
        return
    what, it = called(Goal(aim[0]), aim[1]), "it" if aim[0] == Goal.MODEL else "them"
    told = _counted([stand.verdict for stand in stands], it)
    alone = len(stands) == 1
    best = max(stands, key=_kept)
    leak, other, row = best.leak, best.elsewhere, best.line.shields[aim].row
    if leak is None or best.verdict == Verdict.NOT_SHOWN:  # then it is of all
        return
    about = f"{what[0].upper()}{what[1:]} on {one.comparison.task} ({one.comparison.model}): "
    if best.verdict in PRAISE:
        by = "" if other is None else f" ({leak.attack}, {other.setup})"
        points, ends = points_lost(best.line.lost)
        named = best.line.named
        held = f"{named} keeps" if alone else f"most is kept by {named},"
        whose = "its" if it == "it" else "their"
        told += (
            f"; {held} {leak.kept} of {whose} privacy{by}, for {points} {ends} points of utility"
        )
        if USELESS in flags_of(row):
            told += ", while the untuned model may be as useful"
    else:
        on = "" if other is None else f", {other.setup}"
        told += f"; {'' if alone else 'even '}of {best.line.named} {leak}{on}"
    keys = [key for stand in [best, *stands] for key in stand.line.keys]
    yield Finding(
        rule="overview",
        claim=f"{about}{told}.",
        task=one.comparison.task,
        model=one.comparison.model,
        settings=tuple(stand.line.named for stand in stands),
        metric="privacy kept",
        figure=leak.kept.value,
        interval=(leak.kept.low, leak.kept.high),
        n=leak.n,
        seeds=int(row["n_seeds"]) if other is None else other.seeds,
        attack=leak.attack,
        keys=tuple(dict.fromkeys([*(other.keys if other else ()), *keys])),
    )


def _stand(one: Matrix, line: Line, aim: tuple[str, str], most: Mapping[Place, Evidence]) -> Stand:
    shield = line.shields[aim]
    own = Stand(line, shield.verdict, shield.leak)
    if shield.leak is None or shield.verdict == Verdict.NOT_SHOWN:
        return own
    (choice,) = choices(line.defense, [str(shield.row["params"])])
    place = (
        one.comparison.task,
        one.comparison.model,
        int(shield.row["cut"]),
        line.defense,
        choice,
    )
    other = most.get((*place, Goal(aim[0]), aim[1]))
    if other is None or round(other.leak.kept.value - shield.leak.kept.value, 9) >= 0:
        return own
    word = shield.verdict
    if word in PRAISE and other.leak.beats_guessing:
        word = Verdict.PARTLY if other.leak.kept.low >= NEEDED else Verdict.LEAKS
    return Stand(line, word, other.leak, other)


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


def _kept(stand: Stand) -> tuple[bool, float]:
    """What is praised first, then by what is kept; what is not shown last."""
    if stand.leak is None or stand.verdict == Verdict.NOT_SHOWN:
        return False, -1.0
    return stand.verdict in PRAISE, stand.leak.kept.value
