"""From whatever holds results to the file of a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leakboard.bench.contracts import LeakboardError, path_of
from leakboard.bench.exchange import MANIFEST
from leakboard.leaderboards.report.asked import asked
from leakboard.leaderboards.report.writing import write
from leakboard.leaderboards.results import Attacked, Results, attack, load, published


def report(
    source: Results | Attacked | str | Path,
    to: str | Path = "report.html",
    *,
    task: str | None = None,
    max_cost: float = 0.02,
    **attacked: Any,
) -> Path:
    """Writes two to four pages for somebody who decides: what is read, what protects, at which cost, how sure.

    Of a transcript it says what your own system gives away, and takes from the published records what protects.

    Args:
        source: records (as `load` takes or returns them); a transcript's folder, which is attacked first; what
            `attack` returns, or the .json file that it was written to.
        to: the .html file, which holds its figures and needs nothing else; a browser prints it as PDF.
        task: the one whose settings are compared; without it sst2, else the one of most defenses.
        max_cost: the utility that protection may cost, as a share: 0.02 are two points.
        attacked: of a transcript's folder `model`, `truth` and the rest, as for `attack`.

    Raises:
        LeakboardError: whatever is wrong with an argument, or nothing is there to report.
    """
    place = path_of("to", to)
    assert place is not None
    wanted = asked(place, task, max_cost)
    folder = None if isinstance(source, Results | Attacked) else path_of("source", source)
    if folder is not None and (folder / MANIFEST).is_file():
        found: Results | Attacked = _attacked(folder, attacked)
    elif attacked:
        raise LeakboardError(
            f"{next(iter(attacked))}: goes with the folder of a transcript alone, which {source!r:.60} is not"
        )
    elif isinstance(source, Results | Attacked):
        found = source
    else:
        file = Path(source)
        found = Attacked.read(file) if file.suffix == ".json" else load(source)
    return write(found, wanted, place, published() if isinstance(found, Attacked) else None)


def _attacked(folder: Path, given: Mapping[str, Any]) -> Attacked:
    if "model" not in given or given.get("truth") is None:
        raise LeakboardError(
            f"{folder} is a transcript: give the public model it came from (model) and what was sent (truth), by "
            "which guesses are scored"
        )
    return attack(folder, **given)
