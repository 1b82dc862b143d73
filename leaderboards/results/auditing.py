"""Audit of a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from leakboard.bench.backbones import device_of
from leakboard.bench.contracts import LeakboardError, path_of
from leakboard.bench.external import LONGEST, ModelRequest, audit_model
from leakboard.bench.running import progress_console
from leakboard.leaderboards.results.attacked import Attacked
from leakboard.leaderboards.results.attacking import progress_on

if TYPE_CHECKING:
    import torch


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
    named: dict[str, Any] = {"model": model, "base": base, "secrets": secrets}
    for name, value in named.items():
        if not _is_in_memory(value) or name == "secrets":
            path_of(name, value)
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
