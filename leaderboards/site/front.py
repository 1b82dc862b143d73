"""The first answer: the matrix in words, and what each defense leaks and costs as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings import listed, offers, protects
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.site.scatter import Dot
from leakboard.leaderboards.tables import (
    NOT_SHOWN,
    PROVEN,
    Line,
    Look,
    Matrix,
    Shield,
    Verdict,
    look,
    points_lost,
    told,
)

TASK = "sst2"
"""The task of the front page, where it is there."""
HIDDEN = {
    "inputs": (Goal.INVERSION, Goal.ATTRIBUTE),
    "labels": (Goal.LABEL,),
    "the training set": (Goal.MEMORISATION, Goal.MEMBERSHIP),
    "the vendor's model": (Goal.MODEL,),
}
"""What can be hidden, and the goals of who looks for it."""
NOTHING = "nothing, to compare with"
SYMBOLS = {
    Verdict.PROTECTS: "●",
    Verdict.PARTLY: "◐",
    Verdict.LEAKS: "○",
    Verdict.NOT_SHOWN: "?",
    Verdict.NOT_APPLICABLE: "–",
}
AIMS = {
    Goal.INVERSION: "inputs",
    Goal.ATTRIBUTE: "attribute",
    Goal.LABEL: "labels",
    Goal.MEMORISATION: "secrets",
    Goal.MEMBERSHIP: "members",
    Goal.MODEL: "model",
}
"""What an attacker with such a goal is after."""
SOUGHT = AIMS | {Goal.ATTRIBUTE: "attributes", Goal.MODEL: "the model"}
"""The same of whoever looks for any of them."""


@dataclass(frozen=True)
class Word:
    """A field of the matrix.

    Attributes:
        number: how much of the privacy is kept; '' where that is not known.
        why: what stands behind it, in a sentence.
        href: to a record.
        attack: the strongest one.
    """

    verdict: Verdict
    number: str
    why: str
    href: str
    attack: str = ""

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.verdict]

    @property
    def slug(self) -> str:
        """Of its class in the style sheet."""
        return self.verdict.replace(" ", "-")


@dataclass(frozen=True)
class Told:
    """A defense in the matrix: its setting, a word for each goal, and what it costs."""

    name: str
    setting: str
    look: Look
    href: str
    words: Sequence[Word]
    cost: str
    between: str
    within: bool


@dataclass(frozen=True)
class Answer:
    """The matrix in words: its lines by what the customer hides with them.

    Attributes:
        aims: its columns, what attackers are after.
    """

    title: str
    aims: Sequence[str]
    groups: dict[str, list[Told]]
    dots: Sequence[Dot]
    missing: Sequence[str]
    """Defenses that have no dot, since what they leak is not shown."""

    @property
    def bounded(self) -> bool:
        """Whether of some defense it is only known that it leaks at least so much."""
        return any(dot.bound for dot in self.dots)


def first_of(found: Sequence[Matrix], task: str = TASK) -> Matrix | None:
    """The matrix of the front page: of the task the one with most defenses, else that of all."""
    own = (one for one in found if one.comparison.task == task)
    return next(own, found[0] if found else None)


def answer(matrix: Matrix, links: Links) -> Answer:
    """What a matrix says in words, for a page of these links."""
    one, made = matrix.comparison, {line.defense for line in offers(matrix)}
    groups: dict[str, list[Told]] = {name: [] for name in (*HIDDEN, NOTHING)}
    for line in matrix.lines:
        groups.setdefault(hides(line.defense, line.defense in made), []).append(
            _line(matrix, line, links)
        )
    dots = list(_dots(matrix, made, links))
    shown = {dot.name for dot in dots}
    return Answer(
        title=f"{one.task} · {one.model} · {one.words}",
        aims=[" ".join(filter(None, (AIMS[Goal(goal)], about))) for goal, about in matrix.aims],
        groups={name: lines for name, lines in groups.items() if lines},
        dots=dots,
        missing=[line.defense for line in matrix.lines if line.defense not in shown],
    )


def hides(defense: str, made: bool = True) -> str:
    """What a customer hides with a defense, in words; `made`: it is made to hide something."""
    goals = protects(defense)
    names = [name for name, every in HIDDEN.items() if goals & {*every}]
    if not made:
        return NOTHING
    return names[0] if len(names) == 1 else "several things"


def about(kind: str, name: str, cls: type[Any] | None) -> str:
    """Under which head a method stands among others."""
    if cls is None:
        return "known from records alone"
    if kind == "defense":
        goals = cls.protects | cls.measured_by.keys()
        return f"hides {hides(name, bool(goals))}"
    return f"looks for {listed([SOUGHT[goal] for goal in Goal if goal in cls.threat.goals])}"


def _line(matrix: Matrix, line: Line, links: Links) -> Told:
    points, between = points_lost(line.lost)
    record = links.record(line.keys[0]) if line.keys else ""
    return Told(
        name=line.defense,
        setting="" if line.label == line.defense else line.label,
        look=look(line.defense),
        href=links.method("defense", line.defense),
        words=[_word(line.shields[aim], record) for aim in matrix.aims],
        cost=points,
        between=between,
        within=line.within,
    )


def _word(shield: Shield, href: str) -> Word:
    if shield.leak is None:
        return Word(shield.verdict, "", shield.why, href)
    bound = PROVEN if shield.standing == PROVEN else ""
    kept = told(f"{shield.leak.kept.value:.2f}", bound)
    return Word(
        shield.verdict,
        "" if shield.verdict == NOT_SHOWN else kept,
        f"{told(str(shield.leak.kept), bound)} of the privacy is kept: {shield.leak}",
        href,
        shield.leak.attack,
    )


def _dots(matrix: Matrix, made: set[str], links: Links) -> Iterator[Dot]:
    """Each defense by what it leaks of what it is made to hide, most of it where that is several things."""
    for line in matrix.lines:
        own = protects(line.defense)
        seen = [
            shield
            for aim, shield in line.shields.items()
            if shield.leak is not None
            and (line.defense not in made or Goal(aim[0]) in own)
            and shield.verdict != Verdict.NOT_SHOWN
        ]
        if not seen or line.lost["points"] != line.lost["points"]:
            continue
        worst = min(seen, key=lambda shield: shield.kept or 0.0)
        assert worst.leak is not None
        points, between = points_lost(line.lost)
        yield Dot(
            name=line.defense,
            leak=1 - worst.leak.kept.value,
            cost=float(line.lost["points"]),
            look=look(line.defense),
            href=links.method("defense", line.defense),
            told=f"{line.named}: {points} {between} points of utility lost; {worst.leak}",
            bound=worst.standing == PROVEN,
        )
