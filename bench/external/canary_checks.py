"""Check that planted canaries are in the text that the loss sees, behind collators, truncation and label masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.external.canary_planting import CanarySet
from leakboard.bench.tasks import DIGITS, SLOT

IGNORED = -100
"""The label of tokens that the loss leaves out."""
BATCH = 64


def batches_of(loader: Any) -> Iterator[Mapping[str, Any]]:
    """Batches of a data loader's rows in their order; its sampler and the random state stay as they are.

    Raises:
        LeakboardError: its rows cannot be counted.
    """
    data = loader.dataset
    if not hasattr(data, "__len__"):
        raise LeakboardError(
            "canaries: an iterable data set cannot be searched before training. Use one of known length, or "
            "Canaries(check=False)"
        )
    with torch.random.fork_rng(devices=[]):
        for at in range(0, len(data), BATCH):
            rows = [data[i] for i in range(at, min(at + BATCH, len(data)))]
            yield loader.collate_fn(rows)


def check_visible(
    canaries: CanarySet, batches: Iterable[Mapping[str, Any]], tokenizer: Any
) -> None:
    """Raise LeakboardError, with the remedy, if a planted canary is missing from what the loss sees.

    Reading stops as soon as all canaries were seen.

    Args:
        batches: with `input_ids` and `labels` [B, L], where tokens that the loss leaves out have the label −100.
    """
    wanted = {f"{secret:0{DIGITS}d}" for secret in canaries.secrets[canaries.planted].tolist()}
    beginning = _squeezed(canaries.form.partition(SLOT)[0])
    seen, present, begun, longest = set[str](), set[str](), 0, 0
    for batch in batches:
        if not isinstance(batch, Mapping):
            raise LeakboardError(
                f"batches: expected mappings with input_ids and labels, got {type(batch).__name__}"
            )
        if batch.get("labels") is None or batch.get("input_ids") is None:
            raise LeakboardError(
                "canaries: the batches hold no input_ids with labels, so that it is not known what the loss sees. "
                "Canaries are for causal language models; use a collator that sets labels, such as "
                "DataCollatorForLanguageModeling(tokenizer, mlm=False)"
            )
        ids, labels = torch.as_tensor(batch["input_ids"]), torch.as_tensor(batch["labels"])
        if ids.dim() != 2 or ids.shape != labels.shape:
            raise LeakboardError(
                "canaries: the labels are not one for each token; canaries are for causal language models"
            )
        longest = max(longest, ids.shape[1])
        # The first token is predicted from nothing.
        read = (labels != IGNORED) & (torch.arange(ids.shape[1]) > 0)
        for text, shown in zip(
            _texts(ids, None, tokenizer), _texts(ids, read, tokenizer), strict=True
        ):
            present |= {secret for secret in wanted if secret in text}
            seen |= {secret for secret in wanted if secret in shown}
            begun += beginning in text
        if seen == wanted:
            return
    _refuse(wanted, present, seen, begun, longest)


def _refuse(wanted: set[str], present: set[str], seen: set[str], begun: int, longest: int) -> None:
    lost, masked = len(wanted - present), len(present - seen)
    which = f"of {len(wanted)} planted canaries"
    if masked >= max(lost, 1):
        raise LeakboardError(
            f"canaries: the labels mask {masked} {which} (−100), so that the loss does not see them. Plant them into the "
            "answers (column='completion', or 'messages'), or use a collator that does not mask them"
        )
    if begun:
        raise LeakboardError(
            f"canaries: {lost} {which} are cut off before their digits, in batches of at most {longest} tokens. Raise the "
            "largest number of tokens, or choose a shorter form"
        )
    raise LeakboardError(
        f"canaries: {lost} {which} are in no batch. Train on what `plant` returned, and check that no filter or "
        "truncation removes them and that the tokeniser knows digits"
    )


def _texts(ids: Tensor, read: Tensor | None, tokenizer: Any) -> list[str]:
    """The text of each row without blanks, of all tokens or of those that are read."""
    rows = [row if read is None else row[read[i]] for i, row in enumerate(ids)]
    return [_squeezed(text) for text in tokenizer.batch_decode(rows)]


def _squeezed(text: str) -> str:
    return "".join(text.lower().split())
