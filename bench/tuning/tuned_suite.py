"""What was chosen, as a suite file that says where the trials are."""

from __future__ import annotations

from pathlib import Path

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.records import replacing
from leakboard.bench.suites import Suite, suite_text
from leakboard.bench.tasks import UserTask
from leakboard.bench.tuning.halving import Tuning

ABOVE = """The suite `{name}`, each row trained as was chosen for it by `leakboard tune`: on a fifth of the
training split that was held out, never on what is reported. Below each row stand the keys of the
records of all its trials, those of the chosen one first; these lie in {folder}."""


def check_file(suite: Suite, file: Path) -> None:
    """Raises LeakboardError where a suite cannot be written to a file: no such name, or apart from its data."""
    if file.suffix not in (".yaml", ".yml"):
        raise LeakboardError(f"{file}: the file of a suite ends in .yaml")
    apart = file.parent.resolve() != suite.base.resolve()
    if apart and any(isinstance(task, UserTask) for task in suite.task):
        raise LeakboardError(
            f"{file}: the suite has data of its own, whose paths start at {suite.base.resolve()}; write it there"
        )


def write_tuned_suite(tuning: Tuning, file: Path, folder: Path) -> None:
    """Writes the suite with what was chosen.

    Args:
        folder: of the records of the trials.

    Raises:
        LeakboardError: see `check_place`.
    """
    check_file(tuning.suite, file)
    text = suite_text(tuning.suite, ABOVE.format(name=tuning.suite.name, folder=folder))
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as new:
        new.write_text(text, "utf-8")
