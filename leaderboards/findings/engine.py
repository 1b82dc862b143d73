"""The engine: evaluates declared comparisons over a results table, and puts what they decide into words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan

from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings.finding import Finding, as_sentence, listing, task_name
from leakboard.leaderboards.tables.compare import Difference, Metric, compare, holm
from leakboard.leaderboards.tables.intervals import (
    count,
    format_number,
    format_percent,
    format_points,
)
from leakboard.leaderboards.tables.pairing import (
    Rows,
    attacks_that,
    one_per_setting,
    pairs,
    parameter,
    place_but,
)
from leakboard.leaderboards.tables.parameters import format_parameter, knob_of
from leakboard.leaderboards.tables.results import Attacks, Result, ResultsTable, display_name


@dataclass(frozen=True)
class Reader:
    """Attacks that count in one side of a comparison; empty: all of them."""

    names: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    params: dict[str, object] = field(default_factory=dict)

    @property
    def attacks(self) -> Attacks:
        return attacks_that(self.names, self.channels, **self.params)


ALL = Reader()
USUAL = ("minilm", "dialogue-gpt", "stories260k")
"""Models of the published suites; a sentence names others."""


class Tables:
    """A results table, and the same under some attacks alone, each computed once."""

    def __init__(self, table: ResultsTable) -> None:
        self.whole = table
        self._under: dict[str, ResultsTable] = {}

    def under(self, reader: Reader) -> ResultsTable:
        if reader.attacks is None:
            return self.whole
        name = repr(reader)
        if name not in self._under:
            self._under[name] = self.whole.under(reader.attacks)
        return self._under[name]


@dataclass(frozen=True)
class Contrast:
    """Rows `a` against rows `b` that agree in all else; the pairs of a rule are one family for Holm's correction.

    Attributes:
        more, less: the sentence where `a` is clearly more, or less, than `b`; '' says nothing.
        same: the sentence for all tasks on which every interval lies within `margin` on either side of 0.
        differ: further names in which the two may differ: parameters, `cut` or `precision`.
        reader: attacks that count.
        at: the parameter that {at} tells; '' for the knob of `a`.

    The words may hold {a} and {b} (defenses), {at} (a parameter), {x} and {y} (the metric of a and b), {d} (their
    difference), {ci} (its interval), {task}, {attack} and {other} (attacks), {share}, {n} (pairs that are clear), {of}
    (pairs), and {pairs} or {settings} (their number with the noun).
    """

    name: str
    a: Rows
    b: Rows
    metric: Metric
    goal: Goal | None = None
    more: str = ""
    less: str = ""
    same: str = ""
    margin: float = 0.0
    differ: tuple[str, ...] = ()
    reader: Reader = ALL
    at: str = ""

    def differences(self, tables: Tables) -> list[Difference]:
        rows: Sequence[Result] = tables.under(self.reader)
        if self.goal is None:
            rows = one_per_setting(rows)
        else:
            rows = [row for row in rows if row.goal == self.goal]
        found = pairs(rows, self.a, self.b, place_but(self.differ, self.a, self.b))
        return holm([compare(a, b, self.metric) for a, b in found])

    def evaluate(self, tables: Tables) -> Iterator[Finding]:
        yield from _spoken(self, self.differences(tables))


@dataclass(frozen=True)
class AttackContrast:
    """What one attacker reads of a setting against what another one reads of the same transcripts.

    The words are those of `Contrast`; {x} and {y} are the successes of the two.
    """

    name: str
    rows: Rows
    goal: Goal
    a: Reader
    b: Reader
    more: str = ""
    less: str = ""
    same: str = ""
    margin: float = 0.0
    at: str = ""
    metric: Metric = "success"

    def differences(self, tables: Tables) -> list[Difference]:
        others = {
            (id(row.setting), row.attribute): row
            for row in tables.under(self.b)
            if row.goal == self.goal
        }
        found = []
        for row in tables.under(self.a):
            other = others.get((id(row.setting), row.attribute))
            if row.goal == self.goal and self.rows(row) and other and other.metric == row.metric:
                found.append(compare(row, other, "success"))
        return holm(found)

    def evaluate(self, tables: Tables) -> Iterator[Finding]:
        yield from _spoken(self, self.differences(tables))


@dataclass(frozen=True)
class Level:
    """Rows whose leakage is clearly above, or below, a bound at every certified setting of a defense and task.

    Attributes:
        least, most: the bound; all intervals have to lie on its side.
        words: may hold {defenses}, {tasks}, {x} (the leakage nearest to the bound), {success}, {twin}, {metric},
            {attack} and {settings} (their number).
        own_goal: whether defenses are meant that are made for the goal (True), or not (False).
        by_task: one sentence for each defense and task; else one for all that qualify.
    """

    name: str
    rows: Rows
    goal: Goal
    words: str
    least: float | None = None
    most: float | None = None
    own_goal: bool | None = None
    reader: Reader = ALL
    by_task: bool = False

    def evaluate(self, tables: Tables) -> Iterator[Finding]:
        groups: dict[tuple[str, str], list[Result]] = {}
        for row in tables.under(self.reader):
            if row.goal == self.goal and row.is_certified and self.rows(row):
                if self.own_goal in (None, row.is_made_for_goal):
                    groups.setdefault((row.defense, row.setting.task), []).append(row)
        spoken = [own for own in groups.values() if all(map(self._holds, own))]
        for rows in spoken if self.by_task else [[row for own in spoken for row in own]]:
            if rows:
                yield self._finding(rows)

    def _holds(self, row: Result) -> bool:
        low, high = row.leakage.low, row.leakage.high
        if self.least is not None and not low >= self.least:
            return False
        return self.most is None or high <= self.most

    def _finding(self, rows: Sequence[Result]) -> Finding:
        nearest = min(
            rows, key=lambda row: row.leakage.value * (1 if self.least is not None else -1)
        )
        words = self.words.format(
            defenses=listing(display_name(row.defense) for row in rows),
            tasks=listing(task_name(row.setting.task) for row in rows),
            x=format_percent(nearest.leakage.value),
            success=format_number(nearest.success.value),
            success_percent=format_percent(nearest.success.value),
            twin=format_number(nearest.twin_success.value),
            metric=nearest.metric.removesuffix(" (sign-free)"),
            attack=f"`{nearest.attack}`",
            settings=count(len({id(row.setting) for row in rows}), "setting"),
        )
        rows = [nearest, *(row for row in rows if row is not nearest)]
        return Finding.of(self.name, as_sentence(words), "leakage", nearest.leakage, rows)


def _spoken(
    rule: Contrast | AttackContrast, differences: Sequence[Difference]
) -> Iterator[Finding]:
    """For each task and model a sentence for each direction that is clear; one for all on which nothing differs.

    A difference that is clear but within the margin is none that matters.
    """
    tasks: dict[tuple[str, str], list[Difference]] = {}
    for one in differences:
        if not one.mean.is_missing:
            tasks.setdefault((one.a.setting.task, one.a.setting.model), []).append(one)
    alike = []
    for own in tasks.values():
        if rule.margin and all(_within(one, rule.margin) for one in own):
            alike += own
            continue
        for verdict, words in (("more", rule.more), ("less", rule.less)):
            clear = [one for one in own if one.verdict == verdict]
            if clear and words:
                first = min(clear, key=lambda one: (one.p, -abs(one.mean.value)))
                yield _told(rule, words, [first, *clear], len(clear), len(own))
    if alike and rule.same:
        widest = max(alike, key=lambda one: abs(one.mean.value))
        yield _told(rule, rule.same, [widest, *alike], len(alike), len(alike))


def _within(one: Difference, margin: float) -> bool:
    low, high = one.mean.low, one.mean.high
    return not isnan(low) and -margin < low and high < margin


def _told(
    rule: Contrast | AttackContrast,
    words: str,
    differences: Sequence[Difference],
    n: int,
    of: int,
) -> Finding:
    first = differences[0]
    a, b = first.a, first.b
    show = _format(rule.metric, a)
    value, low, high = first.mean.ends
    ends = sorted((abs(low), abs(high))) if low * high >= 0 else [low, high]
    sentence = words.format(
        a=display_name(a.defense),
        b=display_name(b.defense),
        at=_at(a, rule.at),
        x=show(_value(a, rule.metric)),
        y=show(_value(b, rule.metric)),
        d=show(abs(value)),
        ci=f"95 % CI {' to '.join(show(end).removesuffix(' %') for end in ends)}",
        task=listing(_task(one.a) for one in differences),
        attack=f"`{a.attack}`",
        other=f"`{b.attack}`",
        share=parameter(a, "share"),
        n=n,
        of=of,
        pairs=count(of, "pair"),
        settings=count(of, "setting"),
    )
    rows = [row for one in differences for row in (one.a, one.b)]
    return Finding.of(rule.name, as_sentence(sentence), rule.metric, first.mean, rows)


def _task(row: Result) -> str:
    """The task, with the model where that is another one than usual."""
    model = row.setting.model
    name = task_name(row.setting.task)
    return name if model in USUAL else f"{name} with {model}"


def _value(row: Result, metric: Metric) -> float:
    if metric == "utility":
        return 100 * row.setting.utility.value
    return float(getattr(row, metric).value)


def _format(metric: Metric, row: Result) -> Callable[[float], str]:
    if metric == "leakage" or (metric == "success" and row.metric == "token accuracy"):
        return format_percent
    return format_points if metric in ("utility", "cost") else format_number


def _at(row: Result, name: str) -> str:
    """'η = 75'; '' for a defense without a knob."""
    name = name or knob_of(row.defense, [row.setting.params]) or ""
    return format_parameter(name, parameter(row, name)) if name else ""
