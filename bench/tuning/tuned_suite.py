"""Writes a tuned suite to a file, with the keys of its trials."""

from __future__ import annotations

from pathlib import Path

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.records import replacing
from leakboard.bench.suites import Suite, suite_text
from leakboard.bench.tasks import UserTask
from leakboard.bench.tuning.grid import Tuning

HEADER = """The suite `{name}` with training settings that `leakboard tune` chose for each row, on a fifth of the
training split that was held out, or on public texts (`tuned_on`), and never on the split that is reported. `trials` lists the keys of the records of
all trials, those of the chosen one first. The records are in {folder}."""


def check_file(suite: Suite, file: Path) -> None:
    """Raise LeakboardError if a suite cannot be written to a file: wrong suffix, or relative paths would break."""
    if file.suffix not in (".yaml", ".yml"):
        raise LeakboardError(f"{file}: the name of a suite file ends in .yaml")
    if any(isinstance(task, UserTask) and task.from_python for task in suite.task):
        raise LeakboardError(
            f"{file}: the suite has data from Python, which a file cannot contain; save the data, for example as Parquet, "
            "and give the path"
        )
    is_elsewhere = file.parent.resolve() != suite.base.resolve()
    if is_elsewhere and any(isinstance(task, UserTask) for task in suite.task):
        raise LeakboardError(
            f"{file}: paths of the suite's data are relative to {suite.base.resolve()}; write the file to that folder"
        )


def write_tuned_suite(tuning: Tuning, file: Path, folder: Path) -> None:
    """Write the suite with the chosen settings.

    Args:
        folder: with the records of the trials.

    Raises:
        LeakboardError: see `check_place`.
    """
    check_file(tuning.suite, file)
    text = suite_text(tuning.suite, HEADER.format(name=tuning.suite.name, folder=folder))
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as new:
        new.write_text(text, "utf-8")
