"""Several cells of one worker at once, in joint passes through their model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import Record
from leakboard.bench.running.cells import run_cell
from leakboard.bench.running.plan import Planned
from leakboard.bench.running.scene import Scene
from leakboard.bench.running.stack import Place, Stack


def fitting(planned: Planned, others: Sequence[Planned]) -> list[Planned]:
    """Those of some cells whose passes may be made together with a cell's, the likest ones first.

    A defense asks in its own rhythm, and cells of a seed have batches of the same lengths.
    """

    def place(one: Planned) -> tuple[Any, ...]:
        cell = one.cell
        return cell.data_hash, cell.model_hash, cell.cut, cell.train

    if not planned.defense.stacks or planned.refused:
        return []
    found = [p for p in others if p.defense.stacks and not p.refused]
    found = [p for p in found if place(p) == place(planned)]
    name, seed = planned.defense.name, planned.cell.seed
    return sorted(found, key=lambda p: (p.defense.name != name, p.cell.seed != seed))


def run_together(
    scenes: Sequence[Scene],
    transcripts: Path | None,
    warned: Callable[[str], None],
    written: Callable[[int, Record], Record],
) -> list[Record]:
    """The records of some cells; what runs out of memory beside others is run again by itself.

    Args:
        transcripts: as `run_cell` takes it.
        warned: told where no joint passes can be made.
        written: told of each record at once, with the number of its scene; returns what becomes of it.
    """
    if len(scenes) < 2:
        return [written(i, run_cell(scene, transcripts)) for i, scene in enumerate(scenes)]
    records: dict[int, Record] = {}

    def ended(number: int, record: Record) -> None:
        if record.status != "out-of-memory":
            records[number] = written(number, record)

    def work(scene: Scene, place: Place) -> Record:
        progress = place.watched(scene.progress)
        shared = replace(scene, workers=len(scenes), place=place, progress=progress)
        return run_cell(shared, transcripts)

    stack = Stack(scenes[0].backbone.device, warned)
    stack.run([partial(work, scene) for scene in scenes], ended)
    for number, alone in enumerate(scenes):
        if number not in records:  # by itself it may have room
            records[number] = written(number, run_cell(alone, transcripts))
    return [records[number] for number in range(len(scenes))]
