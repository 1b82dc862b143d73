"""The engine: evaluates declared comparisons on a results table, and writes sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakboard.bench.contracts import Goal, grouped
from leakboard.leaderboards.findings.finding import Finding, listing, place_name
from leakboard.leaderboards.tables import (
    ALL,
    GOAL_WORDS,
    Difference,
    Interval,
    Metric,
    Reader,
    Result,
    ResultsTable,
    Rows,
    compare,
    count,
    differences,
    display_name,
    format_number,
    format_parameter,
    format_percent,
    format_points,
    holm,
    knob_of,
    parameter,
    place_but,
)

USEFUL: dict[str, Any] = {
    "more": "{a} is more useful than {b} on {task}: by {d} points at {at} ({ci}; {n} of {pairs}).",
    "less": "{a} is less useful than {b} on {task}: by {d} points at {at} ({ci}; {n} of {pairs}).",
}
LEAKS: dict[str, Any] = {
    "more": "{a} leaks more {goal} than {b} on {task}: {x} against {y} at {at} ({n} of {pairs}).",
    "less": "{a} leaks fewer {goal} than {b} on {task}: {x} against {y} at {at} ({n} of {pairs}).",
    "same": "{a} leaks as many {goal} as {b} on {task}: none of {pairs} differs by {margin}.",
}
"""Sentences of a `Contrast` of utility and of leakage."""


@dataclass(frozen=True)
class Contrast:
    """Comparison of rows `a` with otherwise equal rows `b`; the pairs of a rule are one family for Holm's correction.

    Leakages are compared only of rows that strong attacks met and that learned their task. Sentences may contain {a} and
    {b} (defenses), {at} (parameters), {x} and {y} (the metric of a and b), {span} (that of all a), {d} (their difference),
    {ci} (its interval), {goal}, {task}, {attack} and {other} (attacks), {n} (number of clear pairs), {pairs} or {settings}
    (their number), and {margin}.

    Attributes:
        more, less: sentence if `a` is clearly more, or less, than `b`; '' for none.
        same: sentence for all tasks on which every interval is within ±`margin`.
        differ: names in which the rows may also differ: parameters, `cut` or `precision`.
        reader: selection of attacks.
        versus: compares the attacks of `reader`, on rows `a`, with these on the same transcripts; `b` is then not read.
        at: parameters of {at}; empty for the knob of `a`.
    """

    name: str
    metric: Metric
    a: Rows
    b: Rows
    goal: Goal | None = None
    more: str = ""
    less: str = ""
    same: str = ""
    margin: float = 0.0
    differ: tuple[str, ...] = ()
    reader: Reader = ALL
    versus: Reader | None = None
    at: tuple[str, ...] = ()

    def differences(self, table: ResultsTable) -> list[Difference]:
        shares = self.metric == "leakage"
        rows = [
            row
            for row in table.under(self.reader)
            if not shares or (row.still_learns and not row.is_weakly_attacked)
        ]
        if self.versus is None:
            place = place_but(self.differ, self.a, self.b)
            return differences(rows, self.goal, self.metric, self.a, self.b, place)
        others = {_aim(row): row for row in table.under(self.versus)}
        own = (row for row in filter(self.a, rows) if self.goal in (None, row.goal))
        same = ((row, others.get(_aim(row))) for row in own)
        return holm([compare(a, b, self.metric) for a, b in same if b and a.metric == b.metric])

    def evaluate(self, table: ResultsTable) -> Iterator[Finding]:
        """For each task and model, a finding for each clear direction; and one for all tasks without a difference.

        Differences below the margin are ignored.
        """
        known = (gap for gap in self.differences(table) if not gap.mean.is_missing)
        tasks = grouped(known, lambda gap: (gap.a.setting.task, gap.a.setting.model))
        alike = []
        for of_task in tasks.values():
            if all(-self.margin < g.mean.low and g.mean.high < self.margin for g in of_task):
                alike += of_task
                continue
            large = [gap for gap in of_task if abs(gap.mean.value) >= self.margin]
            for verdict, words in (("more", self.more), ("less", self.less)):
                clear = [gap for gap in large if gap.verdict == verdict]
                if clear and words:
                    first = min(clear, key=_weight)
                    yield _finding(self, words, first, clear, of_task)
        if alike and self.same:
            widest = max(alike, key=lambda gap: abs(gap.mean.value))
            yield _finding(self, self.same, widest, alike, alike)


@dataclass(frozen=True)
class Level:
    """Defenses and tasks whose certified and strongly attacked settings all clearly leak more than a bound.

    Attributes:
        least: lower bound of all intervals.
        elsewhere: select defenses that are made for other goals.
        words: sentence with {defenses}, {tasks}, {cuts}, {x} (the smallest leakage), {success_percent} (the smallest),
            {attack} and {settings} (their number, and whether none learned its task). Undefended settings leak all of
            themselves: their success is bounded.
    """

    name: str
    rows: Rows
    goal: Goal
    words: str
    least: float
    elsewhere: bool = False

    def evaluate(self, table: ResultsTable) -> Iterator[Finding]:
        asked = (
            row
            for row in table
            if row.goal == self.goal and row.is_certified and self.rows(row)
            if not row.is_weakly_attacked
            if not self.elsewhere or not (row.is_made_for_goal or row.is_baseline)
        )
        groups = grouped(asked, lambda row: (row.defense, row.setting.task))
        held = (own for own in groups.values() if all(_reach(r).low >= self.least for r in own))
        rows = [row for own in held for row in own]
        if not rows:
            return
        nearest = min(rows, key=lambda row: (row.leakage.value, row.success.value))
        learned = "" if any(row.still_learns for row in rows) else ", none learned"
        words = self.words.format(
            defenses=listing(display_name(row.defense) for row in rows),
            tasks=listing(map(_task, rows)),
            cuts=listing(str(cut) for cut in sorted({row.setting.cut for row in rows})),
            x=format_percent(nearest.leakage.value),
            success_percent=format_percent(nearest.success.value),
            attack=f"`{nearest.attack}`",
            settings=count(len({id(row.setting) for row in rows}), "setting") + learned,
        )
        yield Finding.of(self.name, words, "leakage", nearest.leakage, [nearest, *rows])


def _reach(row: Result) -> Interval:
    return row.success if row.setting.undefended else row.leakage


def _aim(row: Result) -> tuple[int, Goal, str]:
    return id(row.setting), row.goal, row.attribute


def _weight(gap: Difference) -> tuple[int, int, float, float]:
    """Order of evidence: most seeds, then most trials of tuning, then the least p and the largest difference."""
    return -gap.seeds, -_trials(gap), gap.p, -abs(gap.mean.value)


def _trials(gap: Difference) -> int:
    return min(gap.a.setting.trials, gap.b.setting.trials)


def _finding(
    rule: Contrast, words: str, first: Difference, told: list[Difference], of: list[Difference]
) -> Finding:
    """The sentence, with the numbers of the first difference and the evidence of all that are told."""
    a, b = first.a, first.b
    show = _format(rule.metric, a)
    value, low, high = first.mean.ends
    ends = sorted((abs(low), abs(high))) if low * high >= 0 else [low, high]
    values = sorted(_value(gap.a, rule.metric) for gap in of)
    is_tuned = rule.metric != "utility" or any(map(_trials, of))
    is_one_attack = a.attack == b.attack and a.channel != b.channel
    on = [f" on {row.channel}" if is_one_attack else "" for row in (a, b)]
    sentence = words.format(
        a=display_name(a.defense),
        b=display_name(b.defense),
        at=_at(a, rule.at),
        x=show(_value(a, rule.metric)),
        y=show(_value(b, rule.metric)),
        span=f", {show(values[0]).removesuffix(' %')} to {show(values[-1])}" if len(of) > 1 else "",
        d=show(abs(value)),
        ci=" to ".join(show(end).removesuffix(" %") for end in ends),
        goal=GOAL_WORDS[a.goal],
        task=listing(_task(gap.a) for gap in (first, *told)),
        attack=f"`{a.attack}`{on[0]}",
        other=f"`{b.attack}`{on[1]}",
        n=len(told),
        pairs=count(len(of), "pair") + ("" if is_tuned else ", not tuned"),
        settings=count(len(of), "setting") + (", one seed" if first.seeds == 1 else ""),
        margin=f"{100 * rule.margin:g} points",
    )
    rows = [row for gap in (first, *told) for row in (gap.a, gap.b)]
    found = Finding.of(rule.name, sentence, rule.metric, first.mean, rows)
    return replace(found, seeds=first.seeds)  # rows may have more, but not of this pair


def _task(row: Result) -> str:
    return place_name(row.setting.task, row.setting.model)


def _value(row: Result, metric: Metric) -> float:
    if metric == "utility":
        return 100 * row.setting.utility.value
    return float(getattr(row, metric).value)


def _format(metric: Metric, row: Result) -> Callable[[float], str]:
    if metric == "leakage" or (metric == "success" and row.metric == "token accuracy"):
        return format_percent
    return format_points if metric in ("utility", "cost") else format_number


def _at(row: Result, names: Sequence[str]) -> str:
    """'η = 75'; '' for a defense without a knob."""
    names = names or [knob_of(row.defense, [row.setting.params]) or ""]
    return " and ".join(format_parameter(name, parameter(row, name)) for name in names if name)
