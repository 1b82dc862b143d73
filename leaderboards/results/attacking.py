"""Lets attacks loose on a transcript from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import track

from leakboard.bench.backbones import device_of, load_backbone
from leakboard.bench.contracts import LeakboardError, Progress, path_of
from leakboard.bench.external import Request, attack_folder
from leakboard.bench.running import progress_console
from leakboard.leaderboards.results.attacked import Attacked

if TYPE_CHECKING:
    from pandas import DataFrame


def attack(
    folder: str | Path,
    model: str | Path,
    *,
    truth: str | Path | DataFrame | Mapping[str, Any] | None = None,
    attacks: Any = (),
    attributes: str | Sequence[str] = (),
    auxiliary: str | None = None,
    defense: Any = None,
    data: str | Path | None = None,
    device: str = "auto",
    seed: int = 0,
    progress: bool | Console = True,
) -> Attacked:
    """Attacks what a system has sent, recorded as a folder, without that system.

    Args:
        folder: a transcript, as `Recorder` and `run(transcripts=…)` write it.
        model: the public model it came from: an embedded one, a folder, a hub id.
        truth: to score the guesses: a .csv, .tsv or .parquet, a DataFrame, or a dict of columns (lists,
            arrays, tensors) with an entry per example, in the order of the transcript's rows; columns
            `text`, `label`, `split`. Without it the guesses are returned.
        attacks: one or a list, as a suite has them; without any, all but the costly ones.
        attributes: columns of the truth that hold private attributes.
        auxiliary: a task whose public text the attacks may know.
        defense: the mechanism, as a suite has it, for attacks that know it.
        data, device, progress: as for `run`.
        seed: of the attacks.

    Raises:
        LeakboardError: whatever is wrong with an argument.
    """
    if attributes and truth is None:
        raise LeakboardError("attributes: they are columns of the truth; give `truth`, too")
    place, console = path_of("folder", folder), progress_console(progress)
    assert place is not None
    with console.status("loading the model") if console else nullcontext():
        backbone = load_backbone(str(model), device_of(device))
    request = Request(
        attacks=list(attacks) if isinstance(attacks, list | tuple) else [attacks],
        truth=truth,
        attributes=[attributes] if isinstance(attributes, str) else attributes,
        auxiliary=auxiliary,
        defense=defense,
        data=path_of("data", data),
        seed=seed,
    )
    return Attacked(attack_folder(place, backbone, request, progress_on(console)))


def progress_on(console: Console | None) -> Progress:
    """Bars on a console; none without it."""

    def tracked(what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
        if console is None:
            return items
        return track(items, what, total, console=console, transient=True)

    return tracked
