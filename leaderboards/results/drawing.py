"""Figures of a collection of records, by their kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.contracts import Goal, LeakboardError, did_you_mean
from leaderboards.results.record_set import RecordSet
from leaderboards.tables import PAPER, STRONGEST, exposures, matrices, mirrored, points, swept

if TYPE_CHECKING:
    import pandas as pd

    from bench.suites import Suite

PLOTS = ("tradeoff", "goals", "memory", "training", "sensitivity", "bars", "pca")


def printed_by(suite: Suite | None) -> tuple[pd.DataFrame | None, str]:
    """What the paper that a suite mirrors prints, and what differs; None where it mirrors none."""
    return (mirrored(suite.paper), suite.paper.note) if suite and suite.paper else (None, "")


def draw(
    found: RecordSet, out: Path, kind: str, goal: str, attack: str, against: str | None
) -> list[Path]:
    """Draws one kind of figure into the folder `out`; see `Results.plot`.

    Raises:
        LeakboardError: an unknown word, or nothing to draw.
    """
    if kind not in PLOTS:
        raise LeakboardError(f"kind: unknown '{kind}'. {did_you_mean(str(kind), PLOTS)}")
    # Here, for what draws is slow to load.
    from leaderboards.figures import bars, goals, leaks, memory, pca, sensitivity, training

    name, records, path = found.name, found.records, out / f"{found.name}-{kind}"
    match kind:
        case "goals":
            title = f"{name}: what each defense protects, and what it costs"
            return goals(matrices(found.compared), path, title)
        case "memory":
            paper = found.suite.paper if found.suite else None
            theirs = exposures(paper) if paper else None
            return memory(records, path, f"{name}: what the model remembers", theirs)
        case "training":
            return training(records, path, f"{name}: label leak over training")
        case "sensitivity":
            return sensitivity(leaks(found.frame()), path, f"{name}: utility against label leak")
        case "bars":
            printed, _ = printed_by(found.suite)
            return bars(leaks(found.frame()), printed, path, f"{name}: utility and label leak")
        case "pca":
            return pca(records, out, name)
    return _tradeoff(found, out, goal, attack, against)


def _tradeoff(
    found: RecordSet, out: Path, goal: str, attack: str, against: str | None
) -> list[Path]:
    if goal not in list(Goal):
        raise LeakboardError(f"goal: unknown '{goal}'. {did_you_mean(str(goal), Goal)}")
    from leaderboards.figures import sweep, tradeoff

    rows, (known, more) = found.frame(), printed_by(found.suite)
    words = {STRONGEST: "the strongest attack", PAPER: "the paper's attack"}.get(attack, attack)
    name = "-".join([found.name, goal, *([] if attack == STRONGEST else [attack])])
    title = f"{found.name}: {goal} against {words}"
    if against is None:
        return tradeoff(points(rows, goal, attack), out / name, title, known, more)
    means = swept(rows, goal, against, attack)
    return sweep(means, against, out / f"{name}-by-{against}", title, known, more)
