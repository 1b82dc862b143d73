"""Differences between two collections of records, setting by setting, with intervals and reasons."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, isnan, nan
from typing import Any, Literal, TypeVar

import pandas as pd

from leakboard.bench.contracts import Cell, Record
from leakboard.leaderboards.tables.defenses import format_parameter
from leakboard.leaderboards.tables.goals import GOAL_WORDS
from leakboard.leaderboards.tables.intervals import MISSING, Interval, mean_interval
from leakboard.leaderboards.tables.record_set import RecordSet
from leakboard.leaderboards.tables.results import Result, results_table
from leakboard.leaderboards.tables.settings import Setting

Name = TypeVar("Name", bound=Hashable)
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
        difference: new minus old with its 95 % interval, paired by seed if possible; None for different metrics.
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
        counts = {
            kind: sum(change.kind == kind for change in self.found) for kind in ("new", "gone")
        }
        changed = [change for change in self.found if change.kind == "changed"]
        clear = sum(change.clear for change in changed)
        return (
            f"{self.old} → {self.new}: {counts['new']} settings are new and {counts['gone']} gone; {len(changed)} "
            f"numbers changed, {clear} of them clearly; {self.same} settings are unchanged"
        )

    def __repr__(self) -> str:
        shown = ["kind", "setting", "what", "old", "new", "difference", "why"]
        table = self.frame()[shown].to_string(index=False) if self.found else ""
        return "\n".join(filter(None, [f"<Changes {self.summary}>", table]))


@dataclass(frozen=True)
class _Quantity:
    """One number of a setting, by seed, with the attacks that gave it."""

    mean: Interval
    by_seed: Mapping[int, float]
    metric: str
    attacks: str = ""


class _Side:
    """Settings of one collection, with their numbers."""

    def __init__(self, given: RecordSet) -> None:
        table = results_table(given.records)
        self.settings: dict[Where, Setting] = {}
        self.quantities: dict[Where, dict[str, _Quantity]] = {}
        for group in table.groups:
            for setting in group.settings:
                where = _where(setting)
                self.settings[where] = setting
                own = self.quantities.setdefault(where, {})
                if not setting.utility.is_missing:
                    metric = setting.first.utility_metric
                    own["utility"] = _Quantity(setting.utility, setting.utility_by_seed, metric)
        for row in table:
            own, word = self.quantities[_where(row.setting)], _word(row)
            attacks = f"{row.attack} version {row.attack_version}"
            own[word] = _Quantity(row.success, row.success_by_seed, row.metric, attacks)
            if row.is_certified and not row.setting.undefended:
                name = f"leakage of {word}"
                own[name] = _Quantity(row.leakage, row.leakage_by_seed, "share", attacks)


def changes(old: RecordSet, new: RecordSet) -> Changes:
    """Changes from one collection to another, both computed by this version.

    Settings match if everything but the seeds is equal. Others are paired by task, model, cut, defense and parameters;
    pairs with the fewest differences come first, and these differences are the reasons.
    """
    before, after = _Side(old), _Side(new)
    pairs = {where: where for where in after.settings if where in before.settings}
    rest = [where for where in before.settings if where not in pairs]
    for where, mine in after.settings.items():
        if where not in pairs:
            others = {place: before.settings[place].first.cell for place in rest}
            near = closest_cell(mine.first.cell, others)
            if near is not None:
                pairs[where] = near
                rest.remove(near)
    found: list[Change] = []
    same = 0
    for where, mine in after.settings.items():
        if where not in pairs:
            found.append(_of_setting("new", mine))
            continue
        own = list(_of_pair(before, after, pairs[where], where))
        found += own
        same += not own
    found += [_of_setting("gone", before.settings[where]) for where in rest]
    titles = [f"{given.name} ({len(given)} records)" for given in (old, new)]
    return Changes(titles[0], titles[1], tuple(found), same)


def _where(setting: Setting) -> Where:
    return (
        setting.task,
        setting.model,
        setting.cut,
        setting.defense,
        setting.params,
        setting.setup,
        setting.group,
    )


def _word(row: Result) -> str:
    word = GOAL_WORDS[row.goal]
    return f"{word}: {row.attribute}" if row.attribute else word


def _of_pair(before: _Side, after: _Side, old: Where, new: Where) -> Iterator[Change]:
    first, second = before.settings[old], after.settings[new]
    theirs, mine = before.quantities[old], after.quantities[new]
    why = reasons([*first.records.values()], [*second.records.values()])
    for what in dict.fromkeys([*theirs, *mine]):
        was, now = theirs.get(what), mine.get(what)
        gap = _difference(was, now) if was and now else None
        if gap == UNCHANGED:
            continue
        attacks = [quantity.attacks if quantity else "none" for quantity in (was, now)]
        of_attack = [f"attack: {attacks[0]} → {attacks[1]}"] if attacks[0] != attacks[1] else []
        shown = now or was
        assert shown is not None
        yield replace(
            _of_setting("changed", second),
            what=what,
            metric=shown.metric,
            old=was.mean if was else None,
            new=now.mean if now else None,
            difference=gap,
            why=tuple(dict.fromkeys([*of_attack, *why])),
            keys=tuple(dict.fromkeys([*first.keys, *second.keys])),
        )


def _difference(old: _Quantity, new: _Quantity) -> Interval | None:
    """New minus old; paired if both have the same seeds, else as for two independent means."""
    if old.metric != new.metric:
        return None
    gap = new.mean.value - old.mean.value
    half = hypot(_half(old.mean), _half(new.mean))
    unpaired = Interval(gap, gap - half, gap + half)
    if not old.by_seed or old.by_seed.keys() != new.by_seed.keys():
        return unpaired
    gaps = [new.by_seed[seed] - old.by_seed[seed] for seed in sorted(old.by_seed)]
    if all(abs(gap) < SMALLEST for gap in gaps):
        return UNCHANGED
    return mean_interval(gaps, unpaired)


def _half(of: Interval) -> float:
    return nan if isnan(of.low) else (of.high - of.low) / 2


def _of_setting(kind: Kind, setting: Setting) -> Change:
    label = (
        setting.defense
        if setting.label == setting.defense
        else f"{setting.defense}, {setting.label}"
    )
    about = (kind, setting.task, setting.model, setting.cut, label)
    return Change(*about, "setting", "", None, None, None, (), setting.keys)


def closest_cell(cell: Cell, others: Mapping[Name, Cell]) -> Name | None:
    """The cell with the same task, model, cut, defense and parameters that has the fewest differences, if any."""
    same = {name: other for name, other in others.items() if _same_place(cell, other)}
    return min(same, key=lambda name: len(list(_differences(same[name], cell))), default=None)


def _same_place(cell: Cell, other: Cell) -> bool:
    """Whether task, model, cut, defense and all common parameters are equal."""
    mine, theirs = cell.defense.params, other.defense.params
    places = [(each.task, each.model, each.cut, each.defense.name) for each in (cell, other)]
    shared = mine.keys() & theirs.keys()
    return places[0] == places[1] and all(mine[name] == theirs[name] for name in shared)


def reasons(old: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Differences between the records of two settings, in words, the most important first."""
    found = list(_differences(old[0].cell, new[0].cell))
    seeds = [sorted({record.cell.seed for record in records}) for records in (old, new)]
    if seeds[0] != seeds[1]:
        found.append(f"seeds: {_first_values(seeds[0])} → {_first_values(seeds[1])}")
    for name, read in (
        ("device", lambda made: made.device),
        ("secret", lambda made: made.secret or "none"),
        ("code", lambda made: f"{made.leakboard} at {made.commit[:7]}{'+' if made.dirty else ''}"),
    ):
        texts = [
            _first_values(dict.fromkeys(map(read, (record.provenance for record in records))))
            for records in (old, new)
        ]
        if texts[0] != texts[1]:
            found.append(f"{name}: {texts[0]} → {texts[1]}")
    return found


def _differences(old: Cell, new: Cell) -> Iterator[str]:
    if old.defense.version != new.defense.version:
        versions = f"version {old.defense.version} → {new.defense.version}"
        yield f"method: {new.defense.name} {versions}"
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
