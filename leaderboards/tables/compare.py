"""Comparisons: pairs of otherwise equal rows, and their paired differences with correction and verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isnan, nan, sqrt
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from leakboard.bench.contracts import Goal, grouped
from leakboard.leaderboards.tables.defenses import class_of
from leakboard.leaderboards.tables.intervals import MISSING, Interval, mean_interval, standard_error
from leakboard.leaderboards.tables.result import Result
from leakboard.leaderboards.tables.settings import gain_over

Metric = Literal["leakage", "success", "utility", "cost", "perplexity"]
OF_TRAINING = ("utility", "cost", "perplexity")
"""Metrics of a tuned model, which are the same for every goal."""
PERPLEXITY = "perplexity per token"
Verdict = Literal["less", "more", "undecided"]
LEVEL = 0.05
MATTERS = {"utility": 1.0, "cost": 1.0, "leakage": 0.05, "success": 0.05, "exposure": 1.0}
"""Smallest difference that matters: one point of utility, 5 % of leakage, and one of at most 19.93 bits."""
ANY_VALUE = "given"
"""Wildcard for the value of a parameter: any except for None."""
Scalar = bool | int | float | str | None
"""The value of one parameter."""
OneOrMore = Scalar | Annotated[tuple[Scalar, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Difference:
    """Difference of a metric, a minus b, paired over common seeds.

    Attributes:
        metric: leakage and success are shares (exposure in bits), utility and cost in points, perplexity per token.
        mean: mean with its 95 % interval; missing without a common seed or if one has no value.
        p: two-sided p-value of a paired t-test; NaN if there is no test.
        is_clear: True if p is below 5 %; after `holm`, for the whole family.
        reason: reason why the two cannot be compared, or an empty string.

    Examples:
        >>> import leakboard as lb
        >>> first, *_, last = lb.published("sap-sst2").table.select(defense="sap")
        >>> difference = lb.compare(first, last, "cost")
        >>> difference.verdict, difference.seeds
        ('less', 3)
    """

    a: Result
    b: Result
    metric: Metric
    mean: Interval = MISSING
    p: float = nan
    seeds: int = 0
    is_clear: bool = False
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        if not self.is_clear:
            return "undecided"
        return "more" if self.mean.value > 0 else "less"

    def excludes(self, size: float) -> bool:
        """Whether a difference of this size and sign is outside of the interval."""
        return size < self.mean.low or size > self.mean.high


def compare(a: Result, b: Result, metric: Metric) -> Difference:
    """a minus b with a paired t-test over common seeds, or with the intervals of the cells for one common seed.

    Leakage and success are read on the common seeds only, see `leakage`. Costs, utilities and perplexities are compared
    at equal tuning only.
    """
    if metric in ("leakage", "success"):
        common = _by_seed(a, metric).keys() & _by_seed(b, metric).keys()
        a, b = (
            row.on(common) if common and _by_seed(row, metric).keys() != common else row
            for row in (a, b)
        )
    reason = _reason(a, b, metric)
    if reason:
        return Difference(a, b, metric, reason=reason)
    if metric in ("utility", "cost"):
        # A cost is utility that the other has more.
        more, less = (a, b) if metric == "utility" else (b, a)
        mean, by_seed = gain_over(more.setting, less.setting)
        gaps = [*by_seed.values()]
    else:
        first, second = _by_seed(a, metric), _by_seed(b, metric)
        gaps = [first[s] - second[s] for s in sorted(first.keys() & second.keys())]
        of_cells = MISSING
        if metric != "perplexity":
            of_cells = independent_difference(getattr(a, metric), getattr(b, metric))
        mean = mean_interval(gaps, of_cells)
    if not gaps:
        return Difference(a, b, metric, reason="the two share no seed")
    p = _p(mean, len(gaps))
    return Difference(a, b, metric, mean, p, len(gaps), p < LEVEL)


def holm(family: Sequence[Difference]) -> list[Difference]:
    """The differences with `is_clear` after Holm's correction for all tests of the family."""
    tested = sorted(
        (i for i, difference in enumerate(family) if not isnan(difference.p)),
        key=lambda i: family[i].p,
    )
    clear: set[int] = set()
    for rank, i in enumerate(tested):
        if family[i].p * (len(tested) - rank) >= LEVEL:
            break
        clear.add(i)
    return [replace(difference, is_clear=i in clear) for i, difference in enumerate(family)]


def _reason(a: Result, b: Result, metric: Metric) -> str:
    if metric in ("leakage", "success"):
        asked = [(row.setting.task, row.goal, row.attribute) for row in (a, b)]
        if asked[0] != asked[1]:
            return "they answer different questions: tasks, goals or attributes differ"
    if metric == "leakage":
        for row in (a, b):
            if not row.is_certified:
                return f"{row.name}: {row.reason}"
        for row, other in ((a, b), (b, a)):
            # Where everything is read, no other attack could read more.
            if not other.mine.is_exact and not other.setting.met(row.mine.leading.candidate):
                return f"{row.name} leaks most to {row.attack}, which was not run on {other.name}"
    if metric in OF_TRAINING:
        if a.setting.group != b.setting.group:
            return "they were measured on different data"
        if a.setting.trials != b.setting.trials:
            return (
                f"they were not tuned alike: {a.name} by {a.setting.trials} trials, "
                f"{b.name} by {b.setting.trials}"
            )
        if not (a.still_learns or b.still_learns):
            return "neither still learns (keeps a fifth of what tuning gains)"
    for row in (a, b):
        if metric == "cost" and not row.has_cost:
            return f"{row.name}: {row.cost_reason}"
    return ""


def _by_seed(row: Result, metric: Metric) -> Mapping[int, float]:
    if metric == "perplexity":
        records = row.setting.records.items()
        return {s: r.measures[PERPLEXITY].value for s, r in records if PERPLEXITY in r.measures}
    return row.leakage_by_seed if metric == "leakage" else row.success_by_seed


def independent_difference(x: Interval, y: Interval) -> Interval:
    """Difference of two independent numbers, x minus y, from the sides of their intervals."""
    gap = x.value - y.value
    down = sqrt((x.value - x.low) ** 2 + (y.high - y.value) ** 2)
    up = sqrt((x.high - x.value) ** 2 + (y.value - y.low) ** 2)
    return Interval(gap, gap - down, gap + up)


def _p(mean: Interval, n: int) -> float:
    """Two-sided p-value of a mean of n differences: Student's t, or the normal distribution for one."""
    error = standard_error(mean, n)
    if error < 1e-9:  # the same number in every seed
        return 1.0 if abs(mean.value) < 1e-9 else 0.0
    from scipy.special import ndtr, stdtr  # slow to import

    ratio = -abs(mean.value) / error
    return float(2 * (stdtr(n - 1, ratio) if n > 1 else ndtr(ratio)))


@dataclass(frozen=True)
class Rows:
    """A selection of rows. Tuples are alternatives; None matches every value.

    Attributes:
        params: parameters of the defense; those that a record lacks have their default.
        train: settings of the training, such as `precision`.
    """

    defense: str | tuple[str, ...] | None = None
    params: Mapping[str, OneOrMore] = field(default_factory=dict)
    cut: int | tuple[int, ...] | None = None
    undefended: bool | None = None
    task: str | tuple[str, ...] | None = None
    model: str | tuple[str, ...] | None = None
    train: Mapping[str, OneOrMore] = field(default_factory=dict)
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __call__(self, row: Result) -> bool:
        setting = row.setting
        train = setting.first.cell.train
        params = _parameters(setting.defense, setting.params)
        return (
            self.matches(setting.defense, params, setting.cut, setting.undefended)
            and (self.task is None or _admits(self.task, setting.task))
            and (self.model is None or _admits(self.model, setting.model))
            and all(_admits(wanted, getattr(train, n)) for n, wanted in self.train.items())
        )

    def matches(self, defense: str, params: Mapping[str, Any], cut: int, undefended: bool) -> bool:
        """True for a selected setting. A parameter that it lacks matches no value."""
        return (
            (self.defense is None or _admits(self.defense, defense))
            and (self.cut is None or _admits(self.cut, cut))
            and self.undefended in (None, undefended)
            and all(n in params and _admits(wanted, params[n]) for n, wanted in self.params.items())
        )


def _admits(wanted: object, value: object) -> bool:
    if isinstance(wanted, tuple):
        return any(_admits(alternative, value) for alternative in wanted)
    if wanted == ANY_VALUE:
        return value is not None
    # In Python, True equals 1 as well.
    return wanted == value and isinstance(wanted, bool) == isinstance(value, bool)


def parameter(row: Result, name: str) -> Any:
    """A parameter of the row's defense; the current default if the record lacks it."""
    return _parameters(row.defense, row.setting.params).get(name)


@lru_cache(maxsize=4096)
def _parameters(defense: str, params: str) -> dict[str, Any]:
    """All parameters of a defense; those that the record lacks have their current default."""
    given: dict[str, Any] = json.loads(params)
    return {name: known.default for name, known in class_of(defense).model_fields.items()} | given


def pairs(
    rows: Iterable[Result],
    is_a: Callable[[Result], bool],
    is_b: Callable[[Result], bool],
    place: Callable[[Result], Hashable],
) -> list[tuple[Result, Result]]:
    """Pairs of each `a` with the `b` of the same place and training, or with all of the place if there is none."""
    rows = list(rows)
    others = grouped(filter(is_b, rows), place)
    made = []
    for a in filter(is_a, rows):
        near = [b for b in others.get(place(a), ()) if b.setting is not a.setting]
        alike = [b for b in near if b.setting.first.cell.train == a.setting.first.cell.train]
        made += [(a, b) for b in alike or near]
    return made


def place_but(names: Collection[str], a: Rows, b: Rows) -> Callable[[Result], Hashable]:
    """Function from rows to places of equal group, goal, cut and parameters, except for the given names.

    Parameters that a selection fixes, or that only one of the defenses has, are left out. With `precision` among the
    names, rows of groups that differ only in precision have the same place.
    """
    fixed = [
        name
        for rows in (a, b)
        for name, wanted in rows.params.items()
        if wanted != ANY_VALUE and not isinstance(wanted, tuple)
    ]
    owners = {*_tuple(a.defense), *_tuple(b.defense)}
    fields = [{*class_of(name).model_fields} for name in owners]
    common = set.intersection(*fields) - {*names, *fixed}
    cut_is_free = "cut" in names or isinstance(a.cut, int) or isinstance(b.cut, int)
    agreeing = place_by(sorted(common), not cut_is_free, "precision" in names)
    return lambda row: (row.defense if a.defense == b.defense else None, agreeing(row))


def place_by(
    names: Sequence[str], cut: bool, any_precision: bool = False
) -> Callable[[Result], Hashable]:
    """Function from rows to places of equal group, goal and named parameters, and optionally equal cut."""

    def place(row: Result) -> Hashable:
        setting, cell = row.setting, row.setting.first.cell
        group = setting.group
        if any_precision:
            train = cell.train.model_copy(update={"precision": "float32"})
            group = cell.model_copy(update={"seed": 0, "train": train}).key
        params = [repr(parameter(row, name)) for name in names if name != "cut"]
        where = group, row.goal, row.attribute
        return (*where, setting.cut if cut or "cut" in names else None, *params)

    return place


def one_per_setting(rows: Iterable[Result]) -> list[Result]:
    """The first row of each setting, for comparisons of utility, which is the same for every goal."""
    return [own[0] for own in grouped(rows, lambda row: id(row.setting)).values()]


def differences(
    rows: Iterable[Result],
    goal: Goal | None,
    metric: Metric,
    is_a: Callable[[Result], bool],
    is_b: Callable[[Result], bool],
    place: Callable[[Result], Hashable],
) -> list[Difference]:
    """Differences of all pairs of equal place, after Holm's correction; None compares rows of all goals."""
    asked = [row for row in rows if goal in (None, row.goal)]
    if metric in OF_TRAINING:
        asked = one_per_setting(asked)
    found = [compare(a, b, metric) for a, b in pairs(asked, is_a, is_b, place)]
    if metric in OF_TRAINING:
        same = grouped(found, _trainings).values()
        found = [max(own, key=lambda gap: gap.seeds) for own in same]
    return holm(found)


def _trainings(gap: Difference) -> Hashable:
    """Identity of the trainings of a pair. Without canaries, those with 'masked' and with 'missed' ones are the same."""
    return tuple(
        (one.group, one.offer, tuple(sorted(one.utility_by_seed.items())) or id(one))
        for one in (gap.a.setting, gap.b.setting)
    )


def _tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value or "",)
