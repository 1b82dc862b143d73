"""What a report is to be about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.leaderboards.tables import Comparison, check_cost

FIRST = "sst2"
"""The task that most others measure on, too."""


@dataclass(frozen=True)
class Asked:
    """What a report is to be about.

    Attributes:
        task: the one whose settings are compared; None takes sst2, where it is, else the one of most defenses.
        max_cost: the utility that protection may cost, as a share.
    """

    task: str | None
    max_cost: float

    def among(self, compared: list[Comparison]) -> list[Comparison]:
        """What may be compared of the task, most defenses first.

        Raises:
            LeakboardError: there is nothing of that task.
        """
        tasks = list(dict.fromkeys(one.task for one in compared))
        if self.task is not None and self.task not in tasks:
            raise LeakboardError(
                f"task: nothing to compare of '{self.task}'. {did_you_mean(self.task, tasks)}"
            )
        wanted = self.task or (FIRST if FIRST in tasks or not tasks else tasks[0])
        return [one for one in compared if one.task == wanted]


def asked(to: Path, task: str | None, max_cost: float) -> Asked:
    """The same, checked before anything is read or attacked.

    Raises:
        LeakboardError: another suffix than .html, a folder that is not there, or no share.
    """
    if to.suffix != ".html":
        raise LeakboardError(
            f"to: a report is one .html file, which a browser prints as PDF; got '{to}'"
        )
    if to.is_dir() or not to.parent.is_dir():
        raise LeakboardError(
            f"to: {to} is a folder" if to.is_dir() else f"to: there is no folder {to.parent}"
        )
    check_cost(max_cost)
    return Asked(task, max_cost)
