"""Rankings: the defenses made against one goal on one task and model, by their leakage within a budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from leakboard.bench.contracts import Goal, LeakboardError, did_you_mean, grouped
from leakboard.bench.scoring import UNTUNED
from leakboard.leaderboards.tables.choices import check_budget
from leakboard.leaderboards.tables.compare import compare, holm
from leakboard.leaderboards.tables.curves import (
    BOTH,
    Curve,
    Summary,
    curves,
    joint_results,
    smallest,
)
from leakboard.leaderboards.tables.defenses import attacks_of_authors
from leakboard.leaderboards.tables.goals import GOAL_WORDS
from leakboard.leaderboards.tables.intervals import Interval, format_percent
from leakboard.leaderboards.tables.leakage import Reader
from leakboard.leaderboards.tables.result import BUDGET, Result
from leakboard.leaderboards.tables.results import ResultsTable

STRONGEST, PAPER = "strongest", "paper"
"""Selection of attacks: the strongest of all, or of those of the defense's authors."""


@dataclass(frozen=True)
class Entry:
    """A defense in a ranking.

    Attributes:
        rank: 1 plus the number of defenses that leak clearly less; 0 without a rank.
        setting: the setting with the least leakage within the budget, or the cheapest if none is within it.
        leakage: leakage of that setting, cross-fitted over seeds.
        halving: smallest cost of a setting that leaks at most half.
        gives_away: leakage of the setting for other goals that are certified, the maximum over attributes.
        note: a warning where the setting was chosen on the reported numbers, or an empty string.
    """

    curve: Curve
    rank: int
    setting: Result
    leakage: Interval
    halving: Summary
    gives_away: Mapping[Goal, float]
    note: str = ""

    @property
    def gives_away_words(self) -> str:
        """'labels 98 %, members 12 %'."""
        return ", ".join(
            f"{GOAL_WORDS[goal]} {format_percent(x)}" for goal, x in self.gives_away.items()
        )


@dataclass(frozen=True)
class Ranking:
    """The defenses made against a goal on one task and model.

    Attributes:
        within: defenses with a setting within the budget that clearly reduces leakage, by rank.
        ineffective: defenses with settings within the budget, none of which clearly reduces leakage.
        over: defenses without a setting within the budget, by their smallest cost.
        unpriced: certified defenses without a comparable cost.
        uncertified: defenses without a certified attack.
        baselines: no protection and the untuned model, each certified if possible, with most seeds.
        also: further goals that are hidden at the same time; the largest leakage of all goals is used.
    """

    goal: Goal
    attribute: str
    task: str
    model: str
    budget: float
    within: tuple[Entry, ...]
    ineffective: tuple[Entry, ...]
    over: tuple[Entry, ...]
    unpriced: tuple[Curve, ...]
    uncertified: tuple[Curve, ...]
    baselines: tuple[Result, ...]
    also: tuple[Goal, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All defenses with a comparable cost."""
        return *self.within, *self.ineffective, *self.over

    @property
    def halving(self) -> Summary:
        """The setting that halves the leakage at the least cost, and that cost."""
        return smallest(entry.halving for entry in self.entries)

    @property
    def unit(self) -> str:
        """Unit of costs on this task."""
        settings = [*(entry.setting for entry in self.entries), *self.baselines]
        return settings[0].setting.unit if settings else "points"

    @property
    def words(self) -> str:
        """The goals in words, such as 'inputs', 'attributes (gender)' or 'inputs and labels'."""
        words = " and ".join(GOAL_WORDS[goal] for goal in (self.goal, *self.also))
        return words + (f" ({self.attribute})" if self.attribute else "")


def rankings(table: Iterable[Result], budget: float = BUDGET) -> list[Ranking]:
    """Rankings for each goal, task and model with a measured defense that is made for the goal.

    Where a defense hides both, rankings for inputs and labels at the same time follow.

    Args:
        budget: largest cost of a setting in points of utility.

    Raises:
        LeakboardError: invalid budget.
    """
    check_budget(budget)
    rows = list(table)
    every = (row for curve in curves(rows) for row in curve.results)
    same = grouped(every, lambda row: row.setting.offer)
    asked_of = grouped(rows, lambda row: row.question)
    order = list(GOAL_WORDS)
    found = []
    for asked, also in ((rows, ()), (joint_results(rows, BOTH), BOTH[1:])):
        made = [curve for curve in curves(asked) if curve.is_made_for_goal]
        places = grouped(made, lambda one: (one.goal, one.attribute, one.task, one.model))
        for place in sorted(places, key=lambda place: order.index(place[0])):
            own = places[place]
            found.append(
                Ranking(
                    *place,
                    budget,
                    *_entries(own, budget, same, {place[0], *also}),
                    unpriced=tuple(curve for curve in own if curve.certified and not curve.priced),
                    uncertified=tuple(curve for curve in own if not curve.certified),
                    baselines=_baselines(asked_of[*place[2:], *place[:2]]),
                    also=also,
                )
            )
    return found


def results_under(table: ResultsTable, attack: str) -> ResultsTable:
    """The results restricted to some attacks.

    Args:
        attack: `strongest` for all; `paper` for those of each defense's authors; or a name.

    Raises:
        LeakboardError: the attack did not run.
    """
    if attack == STRONGEST:
        return table
    if attack == PAPER:
        rows: list[Result] = []
        for defense in dict.fromkeys(row.defense for row in table):
            if own := attacks_of_authors(defense):
                rows += table.under(own).select(defense=defense)
        return ResultsTable(rows, table.groups)
    found = table.under(Reader((attack,)))
    if not found:
        ran = {leak.attack.name for setting in table.settings for leak in setting.leaks}
        raise LeakboardError(
            f"attack: '{attack}' has no result in these records. "
            f"{did_you_mean(attack, [STRONGEST, PAPER, *sorted(ran)])}"
        )
    return found


def _entries(
    own: Sequence[Curve],
    budget: float,
    same: Mapping[tuple[object, ...], Sequence[Result]],
    hidden: Collection[Goal],
) -> tuple[tuple[Entry, ...], tuple[Entry, ...], tuple[Entry, ...]]:
    """Entries of priced curves: those that help within the budget by rank, those that do not, and those above it."""
    within: list[Entry] = []
    ineffective: list[Entry] = []
    over: list[Entry] = []
    for curve in own:
        if not curve.priced:
            continue
        summary = curve.leakage_within(budget)
        setting, leakage = summary.setting, summary.value
        kind = over
        if setting is None:
            setting = min(curve.priced, key=lambda row: row.cost.value)
            leakage = setting.leakage
        else:
            kind = within if setting.clearly_reduces_leakage else ineffective
        away = _gives_away(same[setting.setting.offer], hidden)
        kind.append(Entry(curve, 0, setting, leakage, curve.cost_of_halving(), away, summary.note))
    ranks = _ranks([entry.setting for entry in within])
    within = [replace(entry, rank=rank) for entry, rank in zip(within, ranks, strict=True)]
    within.sort(key=lambda entry: (entry.rank, entry.leakage.value))
    over.sort(key=lambda entry: entry.setting.cost.value)
    return tuple(within), tuple(ineffective), tuple(over)


def _ranks(settings: Sequence[Result]) -> list[int]:
    """For each setting, 1 plus the number of those that leak clearly less, with Holm's correction over all pairs."""
    pairs = list(combinations(range(len(settings)), 2))
    tested = holm([compare(settings[i], settings[j], "leakage") for i, j in pairs])
    ranks = [1] * len(settings)
    for (i, j), difference in zip(pairs, tested, strict=True):
        if difference.verdict != "undecided":
            ranks[i if difference.verdict == "more" else j] += 1
    return ranks


def _gives_away(rows: Iterable[Result], hidden: Collection[Goal]) -> dict[Goal, float]:
    """Leakage of a setting for the goals that are not hidden, the maximum over attributes; without those not certified."""
    away = grouped((row for row in rows if row.is_certified), lambda row: row.goal)
    return {
        goal: max(0.0, *(row.leakage.value for row in away[goal]))
        for goal in GOAL_WORDS
        if goal in away and goal not in hidden
    }


def undefended_row(rows: Iterable[Result]) -> Result | None:
    """The row that stands for no protection: that of `none` first, then one that strong attacks met.

    Then a certified one, and one with most seeds. Of equal ones, the one that leaks most.
    """
    return max(
        (row for row in rows if row.setting.undefended),
        key=lambda row: (row.defense == "none", *_evidence(row)),
        default=None,
    )


def _evidence(row: Result) -> tuple[object, ...]:
    seeds = len(row.success_by_seed)
    return (
        not row.is_weakly_attacked,
        row.is_certified,
        seeds,
        row.advantage.value,
        row.setting.keys,
    )


def _baselines(rows: Collection[Result]) -> tuple[Result, ...]:
    open_ = undefended_row(row for row in rows if row.defense == "none")
    untuned = max((row for row in rows if row.defense == UNTUNED), key=_evidence, default=None)
    return tuple(filter(None, (open_, untuned)))
