"""Runs cells of a submission once more, where the method and the data are here, and compares."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.again import plan_again
from bench.backbones import EMBEDDED
from bench.errors import LeakboardError
from bench.inputs import Inputs
from bench.record import Estimate, Leak, Record, attack_id
from bench.rescoring import name_of
from bench.runner import Reporter, run_cell
from bench.shadows import with_shadows
from bench.tasks.catalogue import GENERATED
from bench.tasks.loading import data_folder
from bench.verifying import Outcome


class Again:
    """Runs `count` of the records' cells again, drawn by a seed."""

    def __init__(
        self,
        count: int,
        seed: int,
        reporter: Reporter,
        data: Path | None = None,
        device: str = "cpu",
        model: str | None = None,
    ) -> None:
        self.count, self.seed, self.reporter = count, seed, reporter
        self.data, self.device, self.model = data, device, model

    def __call__(self, records: Sequence[Record]) -> Iterator[tuple[Outcome, str]]:
        """An outcome and what there is to say for each cell that was run, and why others were not."""
        order = [r for r in records if r.status == "ok" and r.cell.shadow is None]
        shadows = {r.key: r for r in records if r.cell.shadow is not None}
        random.Random(self.seed).shuffle(order)
        done, reasons = 0, dict[str, None]()
        for record in order:
            if done == self.count:
                break
            try:
                again = self._run(record, shadows)
            except (LeakboardError, ValidationError) as error:
                reasons[f"{record.cell.defense.name}: {error}"] = None
                continue
            done += 1
            outcome, what = compared(record, again)
            yield outcome, f"{what} (drawn by --seed {self.seed})"
        if done < self.count:
            yield "note", f"{done} of {self.count} cells could be run again here (seed {self.seed})"
            yield from (("note", f"not run again: {reason}") for reason in reasons)

    def _run(self, record: Record, shadows: Mapping[str, Record]) -> Record:
        cell = record.cell
        for params in (cell.defense.params, *(leak.attack.params for leak in record.leaks)):
            _no_paths(params)
        if cell.task not in GENERATED:
            folder = data_folder(self.data)
            if folder is None or not (folder / cell.task).is_dir():
                raise LeakboardError(f"its data '{cell.task}' are not here; give --data DIR")
        if self.model is None and cell.model not in EMBEDDED:
            raise LeakboardError(f"its model '{cell.model}' is somewhere else; give --model FOLDER")
        plan = plan_again(record, self.data, self.device, self.model)
        (target,) = (planned for planned in plan.cells if planned.cell.key == record.key)
        # Models that attackers trained themselves are those of the submission.
        planned, pairings, idle = with_shadows(target, target.pairings, shadows.get)
        backbone = plan.backbones[cell.model_hash]
        inputs = Inputs.of(cell, plan.tasks[cell.data_hash], backbone, plan.public)
        self.reporter.started(planned)
        again = run_cell(planned, inputs, backbone, pairings, self.reporter)
        again = again.model_copy(update={"leaks": [*again.leaks, *idle]})
        self.reporter.finished(again, reused=False)
        return again


def compared(stated: Record, again: Record) -> tuple[Outcome, str]:
    """Whether a record and another run of its cell are the same, or agree within their intervals."""
    where = f"{stated.key} ({stated.cell.defense.name}, seed {stated.cell.seed})"
    if stated.outcome() == again.outcome():
        return "held", f"{where}: every number came out the same"
    if again.status != "ok":
        return "refused", f"{where}: ended {again.status} here: {again.reason}"
    apart = list(_apart(stated, again))
    if apart:
        return "refused", f"{where}: {'; '.join(apart[:5])}{' …' if len(apart) > 5 else ''}"
    return (
        "held",
        f"{where}: not the same to the last digit, as on another machine; utility and every success "
        "lie within each other's 95 % interval",
    )


def _apart(stated: Record, again: Record) -> Iterator[str]:
    """What of two records lies outside of the other's interval, or is in one of them alone."""
    if not _agree(stated.utility, again.utility):
        yield f"utility {_told(stated.utility)}, here {_told(again.utility)}"
    theirs, ours = _by_what(stated), _by_what(again)
    for what in dict.fromkeys([*theirs, *ours]):
        one, two = theirs.get(what), ours.get(what)
        if one is None or two is None:
            found = one or two
            assert found is not None
            yield f"{name_of(found)} {'is new' if one is None else 'did not come out'} here"
        elif one.status != two.status or not _agree(one.success, two.success):
            yield (
                f"{name_of(one)} {one.status} {_told(one.success)}, "
                f"here {two.status} {_told(two.success)}"
            )


def _by_what(record: Record) -> dict[tuple[Any, ...], Leak]:
    return {
        (attack_id(k.attack), k.goal, k.view, k.attribute, k.channel, k.metric): k
        for k in record.leaks
    }


def _agree(one: Estimate | None, two: Estimate | None) -> bool:
    """Within each other's intervals; chance, which decides what a success is worth, as near as that."""
    if one is None or two is None:
        return one is two
    values = one.low <= two.value <= one.high and two.low <= one.value <= two.high
    return values and abs(one.chance - two.chance) <= max(one.high - one.low, two.high - two.low)


def _told(estimate: Estimate | None) -> str:
    if estimate is None:
        return "none"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}], chance {estimate.chance:.3f}"


def _no_paths(params: Any) -> None:
    """A parameter may name a file that a method opens; those of strangers are not followed."""
    values = params.values() if isinstance(params, dict) else params
    for value in values:
        if isinstance(value, dict | list):
            _no_paths(value)
        elif isinstance(value, str) and (set(value) & set("/\\") or Path(value).exists()):
            raise LeakboardError(f"its parameter '{value}' is a path, which is not followed")
