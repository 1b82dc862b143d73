"""Reproduction of a record: a plan that runs its cell again, if nothing that decides the outcome has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from leakboard.bench.contracts import (
    Cell,
    LeakboardError,
    MethodSpec,
    Record,
    changed_fields,
    fingerprint,
)
from leakboard.bench.methods import Attack, Defense, Method, registry, spec_of
from leakboard.bench.running.engine import user_secret
from leakboard.bench.running.plan import Plan, make_plan
from leakboard.bench.suites import Suite
from leakboard.bench.tasks import Task, listing

M = TypeVar("M", bound=Method)

TRAINED_ELSEWHERE = (
    ". Until data version 6 each machine trained dialogue-gpt, with weights of its own. The package has other "
    "ones now; give the folder of the old ones as the model"
)


def plan_reproduction(
    record: Record,
    data: Path | None = None,
    device: str = "cpu",
    model: str | None = None,
    tasks: Mapping[str, Task] | None = None,
) -> Plan:
    """The plan of the record's cell alone, with the attacks of the record.

    Args:
        model: the folder of the model, if it came from one; its hash must be that of the record.
        tasks: by name; None to load them.

    Raises:
        LeakboardError: a method, the data or the model has changed; the message names each field
            that differs.
    """
    cell = record.cell
    if cell.task not in [task.name for task in listing()]:
        raise LeakboardError(
            f"record {record.key}: its task '{cell.task}' was a user's own data, which a record "
            "does not contain. Describe that task in a suite of your own and run the suite"
        )
    defense, attacks = methods_of_record(record)
    suite = Suite(
        name=f"record-{record.key}",
        task=(cell.task,),
        model=(model or cell.model,),
        cut=(cell.cut,),
        seeds=(cell.seed,),
        limit=cell.limit,
        evaluate=cell.evaluate,
        utility=cell.utility,
        train=(cell.train,),
        record=cell.record,
        plant=cell.plant,
        defenses=(defense,),
        attacks=attacks,
    )
    plan = make_plan(suite, data, device, twins=False, tasks=tasks)
    now = plan.cells[-1].cell  # shadow models come before it
    if now.key != record.key:
        check_unchanged(record, now)
    secret = user_secret()
    return replace(plan, secret=secret if record.provenance.secret == fingerprint(secret) else "")


def methods_of_record(record: Record) -> tuple[Defense, tuple[Attack, ...]]:
    """The defense and the attacks of a record, with its parameters.

    Raises:
        LeakboardError: one is unknown here, or its version or its parameters have changed.
    """
    spec = record.cell.defense
    defense = _configured(record, spec, registry.defense(spec.name))
    specs = _newest_attacks(record)
    return defense, tuple(_configured(record, s, registry.attack(s.name)) for s in specs)


def check_unchanged(record: Record, cell: Cell) -> None:
    """Compares the cell of a record with the same cell as this installation would run it.

    Raises:
        LeakboardError: they differ; the message names each field that differs.
    """
    is_older = cell.model == "dialogue-gpt" and cell.model_hash != record.cell.model_hash
    _check(record, changed_fields(record.cell, cell), TRAINED_ELSEWHERE if is_older else "")


def _newest_attacks(record: Record) -> list[MethodSpec]:
    """The attacks of the record; of one with several versions, only the newest."""
    newest: dict[str, MethodSpec] = {}
    for spec in sorted((leak.attack for leak in record.leaks), key=lambda spec: spec.version):
        newest[f"{spec.name} {sorted(spec.params.items())}"] = spec
    order = [leak.attack for leak in record.leaks]
    return sorted(newest.values(), key=order.index)


def _configured(record: Record, spec: MethodSpec, cls: type[M]) -> M:
    """The method with the parameters of the record, unless its version or its parameters have changed."""
    try:
        # A value that is the default is as one that nobody gave.
        fields = cls.model_fields
        defaults = {name: field.default for name, field in fields.items()}
        method = cls(**{k: v for k, v in spec.params.items() if v != defaults.get(k, ...)})
    except ValidationError as error:
        first = error.errors()[0]
        _check(record, [f"{'.'.join(map(str, (spec.name, *first['loc'])))}: {first['msg']}"])
        raise
    _check(record, changed_fields(spec, spec_of(method), f"{spec.name}."))
    return method


def _check(record: Record, differences: Iterable[str], hint: str = "") -> None:
    lines = "\n".join(f"  {line}" for line in differences)
    if not lines:
        return
    commit, version = record.provenance.commit, record.provenance.leakboard
    raise LeakboardError(
        f"record {record.key} cannot be run again here, because this differs:\n{lines}\n"
        f"It was made by leakboard {version}, commit {commit}{hint}"
    )
