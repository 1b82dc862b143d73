"""Why numbers of two settings differ: what decides their outcome, part by part."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from leakboard.bench.contracts import Cell, Record
from leakboard.leaderboards.tables.frame import Row
from leakboard.leaderboards.tables.parameters import setting

Name = TypeVar("Name", bound=Hashable)


def resembling(cell: Cell, others: Mapping[Name, Cell]) -> Name | None:
    """Of some cells the one of the same place that differs least; None where none is of that place."""
    same = {name: other for name, other in others.items() if _same_place(cell, other)}
    return min(same, key=lambda name: len(list(_differences(same[name], cell))), default=None)


def _same_place(cell: Cell, other: Cell) -> bool:
    """Whether task, model, cut, defense and all parameters are the same that both versions of it have."""
    mine, theirs = cell.defense.params, other.defense.params
    return (cell.task, cell.model, cell.cut, cell.defense.name) == (
        other.task,
        other.model,
        other.cut,
        other.defense.name,
    ) and all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


def reasons(old: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """What differs between the records of two settings, in words; what decides most comes first."""
    found = list(_differences(old[0].cell, new[0].cell))
    seeds = [sorted({record.cell.seed for record in records}) for records in (old, new)]
    if seeds[0] != seeds[1]:
        found.append(f"seeds: {_listed(seeds[0])} → {_listed(seeds[1])}")
    for name, read in (
        ("device", lambda record: record.provenance.device),
        ("secret", lambda record: record.provenance.secret or "none"),
        ("code", _code),
    ):
        told = [_listed(dict.fromkeys(map(read, records))) for records in (old, new)]
        if told[0] != told[1]:
            found.append(f"{name}: {told[0]} → {told[1]}")
    return found


def reasons_of_attack(old: Mapping[int, Row], new: Mapping[int, Row]) -> list[str]:
    """Whether another attack decides, or another version of it."""
    was, now = (_attackers(rows) for rows in (old, new))
    return [] if was == now else [f"attacker: {was or 'none'} → {now or 'none'}"]


def _attackers(rows: Mapping[int, Row]) -> str:
    told = (f"{row['attack']} version {row['attack_version']}" for row in rows.values())
    return _listed(dict.fromkeys(told))


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
            yield f"{kind}: {setting(name, new[name])} is new"
        elif name not in new:
            yield f"{kind}: {setting(name, old[name])} is gone"
        elif old[name] != new[name]:
            yield f"{kind}: {setting(name, old[name])} → {setting('', new[name]).removeprefix(' = ')}"


def _code(record: Record) -> str:
    made = record.provenance
    return f"{made.leakboard} at {made.commit[:7]}{'+' if made.dirty else ''}"


def _listed(values: Any) -> str:
    told = [str(value) for value in values]
    return ", ".join(told[:4]) + (f" and {len(told) - 4} more" if len(told) > 4 else "")
