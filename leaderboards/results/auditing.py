"""Audit of a model that is trained already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from leakboard.bench.backbones import device_of
from leakboard.bench.contracts import LeakboardError, path_of
from leakboard.bench.external import LONGEST, ModelRequest, audit_model
from leakboard.bench.running import progress_console
from leakboard.leaderboards.results.attacked import Attacked
from leakboard.leaderboards.results.attacking import progress_on


def audit(
    model: str | Path,
    *,
    members: str | Path | Sequence[str],
    others: str | Path | Sequence[str],
    base: str | Path | None = None,
    public: str | Path | Sequence[str] | None = None,
    secrets: str | Path | None = None,
    coins: bool = False,
    delta: float = 1e-5,
    text: str = "text",
    max_length: int = LONGEST,
    device: str = "auto",
    seed: int = 0,
    progress: bool | Console = True,
) -> Attacked:
    """Attack a causal language model that is trained already: can it tell what it was trained on?

    Each model reads each text once, for all attacks. Without `base` only attacks that need no comparison run.

    Args:
        model: a folder, an adapter of peft, an embedded model, or a hub id.
        members: texts that it was trained on, at least 10: a .txt, .csv, .tsv or .parquet file, or a list.
        others: texts of the same kind that it was not trained on. If they differ in topic or style from the members,
            attacks find that difference, and the result means nothing; then a sentence warns of it.
        base: the model from which training started, which an adapter needs.
        public: further texts that were not trained on, with which `rmia` compares.
        secrets: a table with the columns `text` and `secret` of secrets in the training texts, for extraction and exposure.
        coins: an independent fair coin decided of each text whether it is a member. Only then the success of
            the attacks proves a lower bound on ε.
        delta: δ of that bound.
        text: the column of the texts.
        max_length: largest number of tokens of a text; what is longer is cut.
        device, progress: as for `run`.
        seed: of sampled continuations.

    Returns:
        The scores, and the sentences of `summary`. `report` makes a page of it.

    Raises:
        LeakboardError: an argument, a file or a model is wrong; or they do not fit together.
    """
    for name, value in (("model", model), ("base", base), ("secrets", secrets)):
        path_of(name, value)
    for name, texts in (("members", members), ("others", others), ("public", public)):
        if texts is not None and not isinstance(texts, str | Path | Sequence):
            raise LeakboardError(
                f"{name}: expected a path or a list of texts, got {type(texts).__name__} {texts!r:.60}"
            )
    request = ModelRequest(
        model=str(model),
        members=members,
        others=others,
        base=None if base is None else str(base),
        public=public,
        secrets=secrets,
        coins=coins,
        delta=delta,
        column=text,
        longest=max_length,
        seed=seed,
    )
    console = progress_console(progress)
    return Attacked(audit_model(request, device_of(device), progress_on(console)))
