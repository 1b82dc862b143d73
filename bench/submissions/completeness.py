"""Completeness of a submission: missing seeds, missing attacks, and unfinished cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import get_args

from leakboard.bench.contracts import FINAL, Leak, Objective, Record, grouped, name_of
from leakboard.bench.methods import Attack, registry
from leakboard.bench.running import Pairing, pair
from leakboard.bench.submissions.reproduction import LocalResources, local_method
from leakboard.bench.suites import Suite, load_suite, suite_names


def gaps(suite: str, records: Sequence[Record]) -> Iterator[str]:
    """Missing or unfinished parts among the records of one suite.

    A suite is a grid: each setting needs all seeds, and each cell all attacks. A built-in suite needs all seeds of
    its file.
    """
    seeds = {record.cell.seed for record in records}
    if suite in suite_names():
        seeds |= set(built_in(suite).seeds)
    there = grouped(records, _setting)
    lacking = grouped(there, lambda name: tuple(sorted(seeds - {r.cell.seed for r in there[name]})))
    for missing, settings in lacking.items():
        if missing:
            lost = ", ".join(map(str, missing[:20])) + (" …" if len(missing) > 20 else "")
            yield f"{suite}: {len(settings)} settings lack seed {lost}, the first of them {settings[0]}"
    # Shadow models are read only by the attacks that need them.
    attacks = {_attack(leak) for record in records if _is_attacked(record) for leak in record.leaks}
    for record in records:
        if _is_attacked(record):
            done = {_attack(leak) for leak in record.leaks}
            for name, params in sorted(attacks - done):
                yield f"{record.key}: {name} {params} was run on other cells of {suite}, not here"
        yield from (f"{record.key}: {what}" for what in _unfinished(record))


def missing_attacks(
    suite: str, records: Sequence[Record], here: LocalResources
) -> Iterator[tuple[bool, str]]:
    """Required attacks that a record lacks, and applicable attacks that were skipped.

    For a setting of a built-in suite the attacks of that suite are required; otherwise all built-in attacks except
    the costly ones. Attacks whose threat model does not apply may be absent.

    Returns:
        Whether it is an error, and a message.
    """
    pairings: dict[str, Mapping[str, Pairing]] = {}
    for record in records:
        if not _is_attacked(record):
            continue
        cell, expected = record.cell, _expected(suite, record)
        where = f"{cell.defense!r} {cell.task} {cell.cut} {cell.plant!r}"  # all that pairs attacks
        if where not in pairings:
            known = local_method(here, record)
            pairings[where] = (
                {
                    name: pair(attack, known[0], known[1], cell.cut, cell.plant)
                    for name, attack in expected.items()
                }
                if known
                else {}
            )
        named = grouped(record.leaks, lambda leak: leak.attack.name)
        for name in expected:
            own, pairing = named.get(name, []), pairings[where].get(name)
            if not own and (pairing is None or pairing.goals):
                yield True, f"{record.key}: the required attack {name} is missing"
            elif own and pairing is not None:
                yield from _unfinished_goals(record, pairing, own)


def _unfinished_goals(
    record: Record, pairing: Pairing, own: Sequence[Leak]
) -> Iterator[tuple[bool, str]]:
    """Applicable goals of an attack that have no result."""
    for goal in sorted(pairing.goals):
        ended = {leak.status: leak.reason for leak in own if leak.goal == goal}
        if "ok" in ended:
            continue
        pair = f"{pairing.attack.name} applies to {record.cell.defense.name} for {goal}"
        if ended.keys() - {"skipped"}:
            status, reason = next((s, r) for s, r in ended.items() if s != "skipped")
            yield True, f"{record.key}: {pair}, but ended as {status}: {reason}; run it again"
        elif not ended:  # a run has a result for every goal
            yield True, f"{record.key}: {pair}, but has no result"
        else:
            yield False, f"{pair}, but was skipped: {ended['skipped']}"


def _expected(suite: str, record: Record) -> Mapping[str, Attack]:
    """The required attacks of a record, by name."""
    if suite in suite_names():
        own = built_in(suite)
        listed = [row.defense for row in own.defenses]
        # Plans add undefended twins that the suite lacks.
        twins = [t for d in listed for aim in get_args(Objective) for t in d.twins(aim)]
        defense = record.cell.defense
        if any(d.name == defense.name and d.params == defense.params for d in [*listed, *twins]):
            return {attack.name: attack for attack in own.attacks}
    return standard()


@cache
def standard() -> dict[str, Attack]:
    """Built-in attacks with default parameters, except for the costly ones."""
    ours = {name: cls for name, cls in registry.attacks().items() if not cls.costly}
    return {
        name: cls() for name, cls in ours.items() if cls.__module__.startswith("leakboard.attacks.")
    }


@cache
def built_in(suite: str) -> Suite:
    return load_suite(suite)


def _is_attacked(record: Record) -> bool:
    """Whether all attacks apply to a record: it is trained, and no shadow model."""
    return record.status == "ok" and record.cell.shadow is None


def _unfinished(record: Record) -> Iterator[str]:
    if record.status not in FINAL:
        yield f"ended {record.status}: {record.reason}; run it again"
    if record.provenance.dirty:
        yield "was made from a source tree with uncommitted changes; commit them and run it again"
    if record.status != "ok":
        if not record.reason:
            yield f"ended {record.status} and does not say why"
        return
    if record.utility is None or record.cost is None:
        yield "has no utility or no cost"
    if not record.leaks:
        yield "has no results of attacks"
    for leak in record.leaks:
        if leak.status == "ok" and leak.success is None:
            yield f"{name_of(leak)}: nothing was measured"
        if leak.status != "ok" and not leak.reason:
            yield f"{name_of(leak)}: ended {leak.status} and does not say why"


def _setting(record: Record) -> str:
    """All of a cell but its seed, with the most important parts first."""
    cell = record.cell
    where = f"{cell.defense.name} {json.dumps(cell.defense.params)} on {cell.task}, cut {cell.cut}"
    return f"{where}, {cell.model_dump_json(exclude={'seed'})}"


def _attack(leak: Leak) -> tuple[str, str]:
    return leak.attack.name, json.dumps(leak.attack.params, sort_keys=True)
