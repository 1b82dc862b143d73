"""Attacks on other systems: on a recorded transcript, and on a trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.progress import track

from leakboard.bench.backbones import device_of, load_backbone
from leakboard.bench.contracts import LeakboardError, Progress, path_of, teaches
from leakboard.bench.external import LONGEST, ModelRequest, Request, attack_folder, audit_model
from leakboard.bench.running import progress_console
from leakboard.leaderboards.results.attacked import Attacked

if TYPE_CHECKING:
    import torch
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


def audit(
    model: str | Path | torch.nn.Module,
    *,
    members: str | Path | Sequence[object],
    others: str | Path | Sequence[object],
    base: str | Path | torch.nn.Module | None = None,
    tokenizer: object = None,
    public: str | Path | Sequence[object] | None = None,
    secrets: str | Path | None = None,
    coins: bool = False,
    delta: float = 1e-5,
    text: str = "text",
    label: str = "label",
    max_length: int = LONGEST,
    device: str = "auto",
    seed: int = 0,
    progress: bool | Console = True,
) -> Attacked:
    """Attacks a trained language model or classifier: does it reveal which texts it was trained on?

    Each model reads each text once for all attacks. Without `base`, attacks that need a comparison are skipped.

    Args:
        model: a folder, an adapter of peft, an embedded model, or a hub id; or a model of transformers or peft in memory.
        members: at least 10 training texts: a .txt, .csv, .tsv, .jsonl or .parquet file, or a list. For a classifier,
            with labels: a column, or pairs of a text and its label.
        others: texts of the same kind that were not in the training. If they differ from the members in topic or style,
            attacks recognise that difference, and the result is meaningless; a sentence then warns of it.
        base: model from which training started; required for the folder of an adapter. For a peft model in memory, the
            default is the model without its adapter.
        tokenizer: tokeniser of models in memory.
        public: further texts that were not in the training, for comparisons by `rmia`.
        secrets: table with the columns `text` and `secret`, for extraction and exposure of secrets in training texts.
        coins: True if an independent fair coin decided for each text whether it is a member. Only then does the success
            of the attacks prove a lower bound on ε.
        delta: δ of that bound.
        text, label: columns of the texts and of their labels.
        max_length: largest number of tokens of a text; longer texts are truncated.
        device, progress: as for `run`.
        seed: seed of sampled continuations.

    Returns:
        The scores, with the sentences of `summary`. `report` writes a page about them.

    Raises:
        LeakboardError: an argument, a file or a model is invalid, or they do not match.

    Examples:
        >>> import leakboard as lb
        >>> files = {"members": "train.csv", "others": "rest.csv"}
        >>> found = lb.audit("adapter/", base="base/", **files)  # doctest: +SKIP
        >>> found.summary  # doctest: +SKIP
    """
    path_of("secrets", secrets)
    for name, given in (("model", model), ("base", base)):
        if not _is_in_memory(given):
            path_of(name, cast("Any", given))
    for name, texts in (("members", members), ("others", others), ("public", public)):
        if texts is not None and not isinstance(texts, str | Path | Sequence):
            raise LeakboardError(
                f"{name}: expected a path or a list of texts, got {type(texts).__name__} {texts!r:.60}"
            )
    request = ModelRequest(
        model=model if _is_in_memory(model) else str(model),
        members=members,
        others=others,
        base=base if base is None or _is_in_memory(base) else str(base),
        tokenizer=tokenizer,
        public=public,
        secrets=secrets,
        coins=coins,
        delta=delta,
        column=text,
        label=label,
        longest=max_length,
        seed=seed,
    )
    console = progress_console(progress)
    return Attacked.of(audit_model(request, device_of(device), progress_on(console)))


def _is_in_memory(value: object) -> bool:
    return hasattr(value, "state_dict")


def progress_on(console: Console | None) -> Progress:
    """Function that shows progress bars on a console, if there is one."""

    def tracked(what: str, items: Iterable[Any], total: int) -> Iterable[Any]:
        if console is None:
            return items
        return track(items, what, total, console=console, transient=True)

    return tracked
