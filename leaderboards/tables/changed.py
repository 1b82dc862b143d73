"""What changed between two collections of records, and why: setting by setting, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, isnan, nan
from typing import Any, Literal

import pandas as pd

from leakboard.bench.contracts import Record
from leakboard.leaderboards.tables.changed_cells import reasons, reasons_of_attack, resembling
from leakboard.leaderboards.tables.deciding import deciding
from leakboard.leaderboards.tables.evidence import Range
from leakboard.leaderboards.tables.frame import Row
from leakboard.leaderboards.tables.means import SETTING, average, interval, setting_of
from leakboard.leaderboards.tables.parameters import settings, varying
from leakboard.leaderboards.tables.record_set import RecordSet
from leakboard.leaderboards.tables.strongest import setting_named

Kind = Literal["new", "gone", "changed"]
SMALLEST = 1e-9
"""What differs by less is the same: sums in another order."""
UNCHANGED = Range(0.0, 0.0, 0.0)
Where = tuple[Any, ...]
"""What tells a setting from others, see `setting_of`."""


@dataclass(frozen=True)
class Change:
    """What is no longer as it was, of one setting.

    Attributes:
        kind: `new` and `gone` are about the whole setting, whose `what` is then 'setting'.
        what: utility, or what the strongest attack guesses.
        metric: of `old` and `new`, means over seeds with their 95 % interval.
        difference: new less old, with its 95 % interval: seed by seed where both have them. None where they
            are not measured alike.
        why: in words: method, data, model, training, seeds, attacker, code.
        keys: of the records of both.
    """

    kind: Kind
    task: str
    model: str
    cut: int
    setting: str
    what: str
    metric: str
    old: Range | None
    new: Range | None
    difference: Range | None
    why: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def clear(self) -> bool:
        """Whether the whole interval of the difference lies on one side of 0."""
        gap = self.difference
        return gap is not None and (gap.low > 0 or gap.high < 0)


@dataclass(frozen=True, repr=False)
class Changes:
    """What changed between two collections of records: a sequence of changes.

    Attributes:
        old, new: what was compared, in words.
        same: settings in which no number changed.
    """

    old: str
    new: str
    found: tuple[Change, ...]
    same: int

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.found)

    def clearly(self) -> Changes:
        """Without numbers whose difference may be none."""
        kept = tuple(one for one in self.found if one.kind != "changed" or one.clear)
        return replace(self, found=kept)

    def frame(self) -> pd.DataFrame:
        """A row for each change; a range is three columns, as `old`, `old_low`, `old_high`."""
        rows = []
        for one in self.found:
            row: dict[str, Any] = {
                name: getattr(one, name)
                for name in ("kind", "task", "model", "cut", "setting", "what", "metric")
            }
            for name in ("old", "new", "difference"):
                own: Range | None = getattr(one, name)
                for end, part in (("", "value"), ("_low", "low"), ("_high", "high")):
                    row[f"{name}{end}"] = nan if own is None else getattr(own, part)
            row |= {"clear": one.clear, "why": "; ".join(one.why), "keys": ",".join(one.keys)}
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def summary(self) -> str:
        """In a sentence."""
        counts = {kind: sum(one.kind == kind for one in self.found) for kind in ("new", "gone")}
        changed = [one for one in self.found if one.kind == "changed"]
        clear = sum(one.clear for one in changed)
        return (
            f"{self.old} → {self.new}: {counts['new']} settings are new and {counts['gone']} gone; {len(changed)} "
            f"numbers changed, {clear} of them clearly; {self.same} settings are as they were"
        )

    def __repr__(self) -> str:
        shown = ["kind", "setting", "what", "old", "new", "difference", "why"]
        table = self.frame()[shown].to_string(index=False) if self.found else ""
        return "\n".join(filter(None, [f"<Changes {self.summary}>", table]))


@dataclass(frozen=True)
class _Side:
    """One collection, its settings, and for each what was measured there by seed."""

    records: Mapping[Where, Sequence[Record]]
    rows: Mapping[Where, Row]
    measured: Mapping[Where, Mapping[str, Mapping[int, Row]]]
    means: Mapping[tuple[Where, str], Row]

    @classmethod
    def of(cls, given: RecordSet) -> _Side:
        table, by_key = given.frame(), {record.key: record for record in given.records}
        records: dict[Where, list[Record]] = {}
        rows: dict[Where, Row] = {}
        measured: dict[Where, dict[str, dict[int, Row]]] = {}
        first = table.drop_duplicates("key")
        for row in first.to_dict("records"):
            where = setting_of(row)
            rows.setdefault(where, row)
            records.setdefault(where, []).append(by_key[row["key"]])
            if not isnan(row["utility"]):
                measured.setdefault(where, {}).setdefault("utility", {})[row["seed"]] = row
        best = deciding(table)
        for row in best.to_dict("records"):
            own = measured.setdefault(setting_of(row), {}).setdefault(_what(row), {})
            own[row["seed"]] = row
        means = {}
        for row in average(best, [*SETTING, "goal", "attribute"]).to_dict("records"):
            means[setting_of(row), _what(row)] = row
        for row in average(first, SETTING).to_dict("records"):
            means[setting_of(row), "utility"] = row
        return cls(records, rows, measured, means)

    def range(self, where: Where, what: str) -> Range:
        """The mean over seeds."""
        row, name = self.means[where, what], _measure(what)
        return Range(*(float(row[f"{name}{end}"]) for end in ("", "_low", "_high")))


def changes(old: RecordSet, new: RecordSet) -> Changes:
    """What changed from one collection to another.

    Settings are the same where all but the seeds is; else those of equal task, model, cut, defense and parameters
    are laid side by side, those first that differ least, and what differs is the reason.
    """
    before, after = _Side.of(old), _Side.of(new)
    pairs = {where: where for where in after.records if where in before.records}
    rest = [where for where in before.records if where not in pairs]
    for where in after.records:
        if where not in pairs:
            mine = after.records[where][0].cell
            near = resembling(mine, {one: before.records[one][0].cell for one in rest})
            if near is not None:
                pairs[where] = near
                rest.remove(near)
    named = _names([*before.rows.values(), *after.rows.values()])
    found: list[Change] = []
    same = 0
    for where, records in after.records.items():
        if where not in pairs:
            found.append(_whole("new", after.rows[where], records, named))
            continue
        own = list(_of_pair(before, after, pairs[where], where, named))
        found += own
        same += not own
    found += [_whole("gone", before.rows[where], before.records[where], named) for where in rest]
    return Changes(_told(old), _told(new), tuple(found), same)


def _of_pair(
    before: _Side, after: _Side, old: Where, new: Where, named: Mapping[str, Sequence[str]]
) -> Iterator[Change]:
    why = reasons(before.records[old], after.records[new])
    mine, theirs = after.measured.get(new, {}), before.measured.get(old, {})
    keys = tuple(dict.fromkeys(one.key for one in [*before.records[old], *after.records[new]]))
    for what in dict.fromkeys([*theirs, *mine]):
        was = before.range(old, what) if what in theirs else None
        now = after.range(new, what) if what in mine else None
        gap = _difference(theirs[what], mine[what], was, now, what) if was and now else None
        if gap == UNCHANGED:
            continue
        told = [*why]
        if what != "utility":
            told = [*reasons_of_attack(theirs.get(what, {}), mine.get(what, {})), *why]
        yield Change(
            **_of_row("changed", after.rows[new], named),
            what=what,
            metric=_metric_of(mine.get(what) or theirs[what], what),
            old=was,
            new=now,
            difference=gap,
            why=tuple(dict.fromkeys(told)),
            keys=keys,
        )


def _difference(
    old: Mapping[int, Row], new: Mapping[int, Row], was: Range, now: Range, what: str
) -> Range | None:
    """New less old: seed by seed where they share seeds, else as between strangers."""
    if _metric_of(old, what) != _metric_of(new, what):
        return None
    name, common = _measure(what), sorted(old.keys() & new.keys())
    apart = hypot(_half(was), _half(now))
    if not common or old.keys() != new.keys():
        gap = now.value - was.value
        return Range(gap, gap - apart, gap + apart)
    gaps = [float(new[seed][name]) - float(old[seed][name]) for seed in common]
    if all(abs(gap) < SMALLEST for gap in gaps):
        return UNCHANGED
    mean = sum(gaps) / len(gaps)
    return Range(mean, *interval(gaps, mean - apart, mean + apart))


def _half(of: Range) -> float:
    return nan if isnan(of.low) else (of.high - of.low) / 2


def _whole(
    kind: Kind, row: Row, records: Sequence[Record], named: Mapping[str, Sequence[str]]
) -> Change:
    return Change(
        **_of_row(kind, row, named),
        what="setting",
        metric="",
        old=None,
        new=None,
        difference=None,
        why=(),
        keys=tuple(record.key for record in records),
    )


def _of_row(kind: Kind, row: Row, named: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    defense = str(row["defense"])
    label = settings(str(row["params"]), named[defense]) or defense
    place = {name: str(row[name]) for name in ("task", "model")}
    return {"kind": kind, **place, "cut": int(row["cut"]), "setting": setting_named(defense, label)}


def _names(rows: Sequence[Row]) -> dict[str, list[str]]:
    """For each defense the parameters that tell its settings apart."""
    params: dict[str, list[str]] = {}
    for row in rows:
        params.setdefault(str(row["defense"]), []).append(str(row["params"]))
    return {defense: varying(own) for defense, own in params.items()}


def _what(row: Row) -> str:
    return f"{row['goal']}: {row['attribute']}" if row["attribute"] else str(row["goal"])


def _measure(what: str) -> str:
    return "utility" if what == "utility" else "success"


def _metric(what: str) -> str:
    return "utility_metric" if what == "utility" else "metric"


def _metric_of(rows: Mapping[int, Row], what: str) -> str:
    return ", ".join(dict.fromkeys(str(row[_metric(what)]) for row in rows.values()))


def _told(given: RecordSet) -> str:
    return f"{given.name} ({len(given)} records)"
