"""Runs the cell of a record once more: exactly that cell, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from leakboard.bench.contracts import LeakboardError, MethodSpec, Record, fingerprint
from leakboard.bench.methods import Attack, Defense, Method, registry, spec_of
from leakboard.bench.running.plan import Plan, make_plan
from leakboard.bench.running.secrecy import own_secret
from leakboard.bench.suites import Suite
from leakboard.bench.tasks import listing


def plan_again(
    record: Record, data: Path | None = None, device: str = "cpu", model: str | None = None
) -> Plan:
    """The plan of the record's cell alone, under the attacks of the record.

    Args:
        model: where the model lies, if it was a folder; its hash has to be that of the record.

    Raises:
        LeakboardError: a method, the data or the model is no longer what it was; the message names
            each field that differs.
    """
    cell = record.cell
    if cell.task not in [task.name for task in listing()]:
        raise LeakboardError(
            f"record {record.key}: its task '{cell.task}' was somebody's own data, which a record "
            "does not hold. Describe that task in a suite of your own and run that"
        )
    defense, attacks = methods_again(record)
    suite = Suite(
        name=f"record-{record.key}",
        task=(cell.task,),
        model=(model or cell.model,),
        cut=(cell.cut,),
        seeds=(cell.seed,),
        limit=cell.limit,
        evaluate=cell.evaluate,
        train=(cell.train,),
        record=cell.record,
        plant=cell.plant,
        defenses=(defense,),
        attacks=attacks,
    )
    plan = make_plan(suite, data, device, twins=False)
    now = plan.cells[-1].cell  # what attackers train for it stands before it
    if now.key != record.key:
        raise _changed(
            record, _differences(cell.model_dump(mode="json"), now.model_dump(mode="json"))
        )
    secret = own_secret()
    return replace(plan, secret=secret if record.provenance.secret == fingerprint(secret) else "")


def methods_again(record: Record) -> tuple[Defense, tuple[Attack, ...]]:
    """The defense and the attacks of a record, if they still are what they were.

    Raises:
        LeakboardError: one is not known here, or another version or with other parameters.
    """
    spec = record.cell.defense
    defense = _built(record, spec, registry.defense(spec.name))
    attacks = (_built(record, each, registry.attack(each.name)) for each in _newest(record))
    return defense, tuple(attacks)


def _newest(record: Record) -> list[MethodSpec]:
    """The attacks of the record; of one that stands in several versions, the newest."""
    found: dict[str, MethodSpec] = {}
    for spec in sorted((leak.attack for leak in record.leaks), key=lambda spec: spec.version):
        found[f"{spec.name} {sorted(spec.params.items())}"] = spec
    order = [leak.attack for leak in record.leaks]
    return sorted(found.values(), key=order.index)


def _built(record: Record, spec: MethodSpec, cls: type[Any]) -> Any:
    """The method with the record's parameters, if it still is the one of the record."""
    try:
        method: Method = cls(**spec.params)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (spec.name, *first["loc"])))
        raise _changed(record, [f"{where}: {first['msg']}"]) from error
    then, now = spec.model_dump(mode="json"), spec_of(method).model_dump(mode="json")
    if then != now:
        raise _changed(record, _differences(then, now, f"{spec.name}."))
    return method


def _changed(record: Record, differences: Iterable[str]) -> LeakboardError:
    told = "\n".join(f"  {line}" for line in differences)
    commit, version = record.provenance.commit, record.provenance.leakboard
    return LeakboardError(
        f"record {record.key} cannot be run again here, since this differs:\n{told}\n"
        f"It was made by leakboard {version}, commit {commit}"
    )


def _differences(
    then: Mapping[str, Any], now: Mapping[str, Any], prefix: str = ""
) -> Iterator[str]:
    """A line for each field that differs, nested ones by their path."""
    for name in dict.fromkeys([*then, *now]):
        old, new = then.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name}: {old} in the record, {new} here"
