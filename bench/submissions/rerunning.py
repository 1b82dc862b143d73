"""Runs cells of a submission once more, where the method and the data are here, and compares."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.backbones import EMBEDDED
from bench.contracts import LeakboardError, Record
from bench.records import Outcome, compared
from bench.running import Reporter, plan_again, run_cell, scene_of, with_shadows
from bench.tasks import GENERATED, data_folder


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
        planned, idle = with_shadows(target, shadows.get)
        self.reporter.started(planned)
        again = run_cell(scene_of(plan, planned, self.reporter.track))
        again = again.model_copy(update={"leaks": [*again.leaks, *idle]})
        self.reporter.finished(again, reused=False)
        return again


def _no_paths(params: Any) -> None:
    """A parameter may name a file that a method opens; those of strangers are not followed."""
    values = params.values() if isinstance(params, dict) else params
    for value in values:
        if isinstance(value, dict | list):
            _no_paths(value)
        elif isinstance(value, str) and (set(value) & set("/\\") or Path(value).exists()):
            raise LeakboardError(f"its parameter '{value}' is a path, which is not followed")
