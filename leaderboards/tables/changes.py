"""Differences between two collections of records, setting by setting, with intervals and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from leakboard.bench.contracts import Cell, Provenance
from leakboard.leaderboards.tables.compare import independent_difference
from leakboard.leaderboards.tables.defenses import format_parameter
from leakboard.leaderboards.tables.goals import GOAL_WORDS
from leakboard.leaderboards.tables.intervals import MISSING, Interval, mean_interval
from leakboard.leaderboards.tables.record_set import RecordSet
from leakboard.leaderboards.tables.result import Result
from leakboard.leaderboards.tables.results import ResultsTable, results_table
from leakboard.leaderboards.tables.settings import Setting

Kind = Literal["new", "gone", "changed"]
SMALLEST = 1e-9
"""Smaller differences are rounding errors."""
UNCHANGED = Interval(0.0, 0.0, 0.0)
Where = tuple[str, str, int, str, str, str, str]
"""Identity of a setting: task, model, cut, defense, parameters, setup, group."""


@dataclass(frozen=True)
class Change:
    """A difference in one number of a setting, or a new or removed setting.

    Attributes:
        kind: `new` and `gone` are about a setting; then `what` is 'setting'.
        what: utility; the success of the strongest attack, as 'inputs'; or leakage, as 'leakage of inputs'.
        metric: metric of `old` and `new`, which are means over seeds with 95 % intervals.
        difference: new minus old with its 95 % interval, paired over common seeds; without one, that of two independent
            means. None for different metrics.
        why: reasons: method, data, model, training, seeds, attack, code.
        keys: keys of the records of both.
    """

    kind: Kind
    task: str
    model: str
    cut: int
    setting: str
    what: str
    metric: str
    old: Interval | None
    new: Interval | None
    difference: Interval | None
    why: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def clear(self) -> bool:
        """True if the interval of the difference excludes 0."""
        gap = self.difference
        return gap is not None and (gap.low > 0 or gap.high < 0)


@dataclass(frozen=True, repr=False)
class Changes:
    """A sequence of the changes between two collections of records.

    Attributes:
        old, new: names of the two collections.
        same: number of settings without a change.
        note: a warning to readers, or an empty string.

    Examples:
        >>> import leakboard as lb
        >>> changes = lb.diff("runs/mine", "runs/mine")
        >>> len(changes.clearly())
        0
    """

    old: str
    new: str
    found: tuple[Change, ...]
    same: int
    note: str = ""

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.found)

    def clearly(self) -> Changes:
        """The changes without numbers whose difference is not clear."""
        kept = tuple(change for change in self.found if change.kind != "changed" or change.clear)
        return replace(self, found=kept)

    def frame(self) -> pd.DataFrame:
        """One row per change; an interval has three columns, such as `old`, `old_low`, `old_high`."""
        rows = []
        for change in self.found:
            row: dict[str, Any] = {
                name: getattr(change, name)
                for name in ("kind", "task", "model", "cut", "setting", "what", "metric")
            }
            for name in ("old", "new", "difference"):
                row |= (getattr(change, name) or MISSING).columns(name)
            row |= {
                "clear": change.clear,
                "why": "; ".join(change.why),
                "keys": ",".join(change.keys),
            }
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def summary(self) -> str:
        """Summary in one sentence."""
        kinds = Counter(change.kind for change in self.found)
        clear = sum(change.clear for change in self.found)
        return (
            f"{self.old} → {self.new}: {kinds['new']} settings are new and {kinds['gone']} gone; {kinds['changed']} "
            f"numbers changed, {clear} of them clearly; {self.same} settings are unchanged"
        )

    def __repr__(self) -> str:
        shown = ["kind", "setting", "what", "old", "new", "difference", "why"]
        table = self.frame()[shown].to_string(index=False) if self.found else ""
        return "\n".join(filter(None, [f"<Changes {self.summary}>", table]))


@dataclass(frozen=True)
class _Quantity:
    """One number of a setting: its utility, or the success or leakage of one of its results."""

    owner: Setting | Result
    name: Literal["utility", "success", "leakage"]
    metric: str
    attack: str = ""

    @property
    def mean(self) -> Interval:
        return getattr(self.owner, self.name)  # type: ignore[no-any-return]

    @property
    def by_seed(self) -> Mapping[int, float]:
        return getattr(self.owner, f"{self.name}_by_seed")  # type: ignore[no-any-return]

    def minus(self, other: _Quantity) -> tuple[Interval | None, list[str]]:
        """The difference on common seeds, without the others even in the choice of attacks; and what it is limited to.

        Without a common seed, that of two independent means; None for different metrics.
        """
        if self.metric != other.metric:
            return None, []
        seeds = sorted(self.by_seed.keys() & other.by_seed.keys())
        if not seeds:
            return independent_difference(self.mean, other.mean), ["no seed in common"]
        a, b = (replace(one, owner=one.owner.on(seeds)) for one in (self, other))
        limits = [f"difference on common seeds only: {_first_values(seeds)}"]
        limits = limits if self.by_seed.keys() != other.by_seed.keys() else []
        gaps = [a.by_seed[seed] - b.by_seed[seed] for seed in seeds]
        if all(abs(gap) < SMALLEST for gap in gaps):
            return UNCHANGED, limits
        return mean_interval(gaps, independent_difference(a.mean, b.mean)), limits


def _quantities(table: ResultsTable) -> dict[Where, tuple[Setting, dict[str, _Quantity]]]:
    """The settings of a table with their numbers by name, such as 'inputs' and 'leakage of inputs'."""
    found: dict[Where, tuple[Setting, dict[str, _Quantity]]] = {}
    for setting in table.settings:
        utility = _Quantity(setting, "utility", setting.first.utility_metric)
        known = {} if setting.utility.is_missing else {"utility": utility}
        found[_where(setting)] = setting, known
    for row in table:
        attack = f"{row.attack} version {row.attack_version}"
        _, own = found[_where(row.setting)]
        word = GOAL_WORDS[row.goal] + (f": {row.attribute}" if row.attribute else "")
        own[word] = _Quantity(row, "success", row.metric, attack)
        if row.is_certified and not row.setting.undefended:
            own[f"leakage of {word}"] = _Quantity(row, "leakage", "share", attack)
    return found


def _where(of: Setting) -> Where:
    return of.task, of.model, of.cut, of.defense, of.params, of.setup, of.group


def changes(old: RecordSet, new: RecordSet) -> Changes:
    """Changes from one collection to another, both computed by this version.

    Settings match if everything but the seeds is equal. Others are paired by task, model, cut, defense and parameters;
    pairs with the fewest differences come first, and these differences are the reasons.
    """
    before, after = _quantities(results_table(old.records)), _quantities(results_table(new.records))
    pairs = {where: where for where in after if where in before}
    rest = {where: setting for where, (setting, _) in before.items() if where not in pairs}
    for where, (mine, _) in after.items():
        if where in pairs:
            continue
        near = {
            at: [*_differences(one.first.cell, mine.first.cell)]
            for at, one in rest.items()
            if _is_near(one, mine)
        }
        if near:
            pairs[where] = min(near, key=lambda at: len(near[at]))
            del rest[pairs[where]]
    found: list[Change] = []
    same = 0
    for where, (mine, numbers) in after.items():
        if where not in pairs:
            found.append(_of_setting("new", mine))
            continue
        own = list(_of_pair(*before[pairs[where]], mine, numbers))
        found += own
        same += not own
    found += [_of_setting("gone", setting) for setting in rest.values()]
    titles = [f"{given.name} ({len(given)} records)" for given in (old, new)]
    return Changes(titles[0], titles[1], tuple(found), same)


def _of_pair(
    old: Setting, theirs: Mapping[str, _Quantity], new: Setting, mine: Mapping[str, _Quantity]
) -> Iterator[Change]:
    why = reasons(old, new)
    for what in dict.fromkeys([*theirs, *mine]):
        was, now = theirs.get(what), mine.get(what)
        gap, limits = now.minus(was) if was and now else (None, [])
        is_moved = not (was and now) or abs(now.mean.value - was.mean.value) >= SMALLEST
        if gap == UNCHANGED and not (limits and is_moved):
            continue
        attacks = [quantity.attack if quantity else "none" for quantity in (was, now)]
        of_attack = [f"attack: {attacks[0]} → {attacks[1]}"] if attacks[0] != attacks[1] else []
        yield replace(
            _of_setting("changed", new),
            what=what,
            metric=next(quantity.metric for quantity in (now, was) if quantity),
            old=was.mean if was else None,
            new=now.mean if now else None,
            difference=gap,
            why=tuple(dict.fromkeys([*of_attack, *why, *limits])),
            keys=tuple(dict.fromkeys([*old.keys, *new.keys])),
        )


def _of_setting(kind: Kind, of: Setting) -> Change:
    about = (kind, of.task, of.model, of.cut, of.name)
    return Change(*about, "setting", "", None, None, None, (), of.keys)


def _is_near(one: Setting, other: Setting) -> bool:
    """Whether two settings agree in task, model, cut, defense and common parameters."""
    mine, theirs = (setting.first.cell.defense.params for setting in (one, other))
    return _where(one)[:4] == _where(other)[:4] and all(
        mine[name] == theirs[name] for name in mine.keys() & theirs.keys()
    )


def reasons(old: Setting, new: Setting) -> list[str]:
    """Differences between the records of two settings, in words, the most important first."""
    found = [*_differences(old.first.cell, new.first.cell)]
    for name, read in (
        ("seeds", lambda record: record.cell.seed),
        ("device", lambda record: record.provenance.device),
        ("secret", lambda record: record.provenance.secret or "none"),
        ("code", lambda record: _code(record.provenance)),
    ):
        was, now = ([*dict.fromkeys(map(read, one.records.values()))] for one in (old, new))
        if was != now:
            found.append(f"{name}: {_first_values(was)} → {_first_values(now)}")
    return found


def _code(made: Provenance) -> str:
    return f"{made.leakboard} at {made.commit[:7]}{'+' if made.dirty else ''}"


def _differences(old: Cell, new: Cell) -> Iterator[str]:
    if old.defense.version != new.defense.version:
        yield f"method: {new.defense.name} version {old.defense.version} → {new.defense.version}"
    yield from _of_parts("method", old.defense.params, new.defense.params)
    if old.data_hash != new.data_hash:
        yield f"data: other texts of {new.task}"
    for name in ("limit", "evaluate", "plant"):
        yield from _of_parts("data", {name: getattr(old, name)}, {name: getattr(new, name)})
    if old.model_hash != new.model_hash:
        yield f"model: other weights of {new.model}"
    yield from _of_parts("training", old.train.model_dump(), new.train.model_dump())
    yield from _of_parts("recorded", old.record.model_dump(), new.record.model_dump())


def _of_parts(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        if name not in old:
            yield f"{kind}: {format_parameter(name, new[name])} is new"
        elif name not in new:
            yield f"{kind}: {format_parameter(name, old[name])} is gone"
        elif old[name] != new[name]:
            yield f"{kind}: {format_parameter(name, old[name])} → {format_parameter('', new[name]).removeprefix(' = ')}"


def _first_values(values: Any) -> str:
    texts = [str(value) for value in values]
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")
