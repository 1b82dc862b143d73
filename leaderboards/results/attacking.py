"""Attacks on the recorded transcript of another system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.progress import track

from leakboard.bench.backbones import device_of, load_backbone
from leakboard.bench.contracts import LeakboardError, Progress, path_of, teaches
from leakboard.bench.external import Request, attack_folder
from leakboard.bench.running import progress_console
from leakboard.leaderboards.results.attacked import Attacked

if TYPE_CHECKING:
    from pandas import DataFrame

    from leakboard.bench.methods import Attack, Defense

    AttackChoice = str | Path | Mapping[str, object] | Attack


@teaches(attack="attacks", attribute="attributes", labels="truth")
def attack(
    folder: str | Path,
    model: str | Path,
    *,
    truth: str | Path | DataFrame | Mapping[str, object] | None = None,
    attacks: AttackChoice | Sequence[AttackChoice] = (),
    attributes: str | Sequence[str] = (),
    auxiliary: str | None = None,
    defense: str | Path | Mapping[str, object] | Defense | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    seed: int = 0,
    progress: bool | Console = True,
) -> Attacked:
    """Attacks the transcript of a system, without access to the system.

    Args:
        folder: transcript folder, as written by `Recorder` or `run(transcripts=…)`.
        model: public model of the system: an embedded one, a folder, or a hub id.
        truth: truth for scoring: a .csv, .tsv, .jsonl or .parquet file, a DataFrame, a tokenised data set, or a dict of
            columns (lists, arrays, tensors) with an entry per example, in the order of the transcript's rows; columns
            `text` (or `input_ids`, the token ids as they were sent), `label`, `split`. Without it, the guesses are
            returned.
        attacks: one attack or a list, as in a suite; by default all except for costly ones.
        attributes: columns of the truth with private attributes.
        auxiliary: task whose public text the attacks may know.
        defense: mechanism, as in a suite, for attacks that know it.
        data, device, progress: as for `run`.
        seed: seed of the attacks.

    Raises:
        LeakboardError: an invalid argument.

    Examples:
        >>> import leakboard as lb
        >>> found = lb.attack("wire/", model="minilm", truth="train.csv")  # doctest: +SKIP
        >>> found.best()  # doctest: +SKIP
    """
    if attributes and truth is None:
        raise LeakboardError("attributes: these are columns of the truth; give `truth` as well")
    place, console = path_of("folder", folder), progress_console(progress)
    assert place is not None
    with console.status("loading the model") if console else nullcontext():
        backbone = load_backbone(str(model), device_of(device))
    request = Request(
        attacks=cast("Any", list(attacks) if isinstance(attacks, list | tuple) else [attacks]),
        truth=truth,
        attributes=[attributes] if isinstance(attributes, str) else attributes,
        auxiliary=auxiliary,
        defense=cast("Any", defense),
        data=path_of("data", data),
        seed=seed,
    )
    return Attacked.of(attack_folder(place, backbone, request, progress_on(console)))


def progress_on(console: Console | None) -> Progress:
    """Function that shows progress bars on a console, if there is one."""

    def tracked(what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
        if console is None:
            return items
        return track(items, what, total, console=console, transient=True)

    return tracked
