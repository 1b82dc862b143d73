"""Loading of tasks by name or description."""

from __future__ import annotations

import os
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, did_you_mean, place, plain
from leakboard.bench.tasks.abcd import abcd
from leakboard.bench.tasks.assemble import assemble
from leakboard.bench.tasks.catalogue import CATALOGUE, GENERATED
from leakboard.bench.tasks.dialogues import dialogues, replies
from leakboard.bench.tasks.hub import load_hub
from leakboard.bench.tasks.reviews import reviews
from leakboard.bench.tasks.task import Task
from leakboard.bench.tasks.user_data import load_user_task, read_folder
from leakboard.bench.tasks.user_task import UserTask

VARIABLE = "LEAKBOARD_DATA"
GENERATORS = {"reviews": reviews, "dialogues": dialogues, "replies": replies}
READERS = {"abcd": abcd}
"""Datasets whose folder holds the authors' file instead of tables."""


def load_task(spec: str | UserTask, data: Path | None = None, base: Path = Path()) -> Task:
    """Load a task.

    Args:
        spec: a name from `listing()`, or the user's own task.
        data: folder with one subfolder per dataset; default: LEAKBOARD_DATA. A dataset that is not there is
                loaded from the hub.
            base: folder to which relative paths of a user task refer.

    Raises:
        LeakboardError: the name is unknown, or the data are missing or wrong.
    """
    if isinstance(spec, UserTask):
        return load_user_task(spec, base)
    if spec in GENERATORS:
        return GENERATORS[spec]()
    if spec not in CATALOGUE:
        known = [*GENERATED, *CATALOGUE]
        raise LeakboardError(f"unknown task '{spec}'. {did_you_mean(spec, known)}")
    entry = CATALOGUE[spec]
    data = data_folder(data)
    if data is None or not (folder := data / entry.folder).is_dir():
        return load_hub(entry)
    if spec in READERS:
        return READERS[spec](folder)
    tables = read_folder(folder, entry.files)
    return assemble(spec, tables, entry.layout, f"folder: {folder}")


def data_folder(data: Path | None) -> Path | None:
    """The folder of datasets: the given one, or LEAKBOARD_DATA, if set.

    Raises:
        LeakboardError: it does not exist.
    """
    variable = os.environ.get(VARIABLE)
    origin = "--data" if data else VARIABLE
    named = data or variable
    if not named:
        return None
    folder = place(named, origin)
    if not folder.is_dir():
        raise LeakboardError(f"{plain(folder)}: no such folder (named by {origin})")
    return folder
