"""Utility of a language model: next-token accuracy without secrets, and perplexities."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.backbones import (
    NO_LABEL,
    Backbone,
    Ragged,
    Tokens,
    covered_tokens,
    next_tokens,
    offsets,
)
from leakboard.bench.contracts import Estimate, Ints
from leakboard.bench.scoring import metrics
from leakboard.bench.tasks import Split


def next_token_fields(
    loss: Ragged, hits: Ragged, backbone: Backbone, split: Split, tokens: Tokens, length: int
) -> dict[str, Any]:
    """Utility fields of a record.

    Utility is next-token accuracy outside of secrets, so that hiding secrets costs no utility. Perplexities are over
    all tokens, as in papers, and also per word, since tokenisers differ. In pairs of prompt and answer, only answers
    count.

    Args:
        loss: −ln p of the next token at every place; 0 at places without one.
        hits: True where the next token was predicted.
        tokens: of `split`, cut to `length`.
    """
    is_label = tokens.ids.with_values((next_tokens(tokens) != NO_LABEL).roll(1, 0))
    is_open, words = _open_text(backbone, split, length) if split.pairs is None else _answers(split)
    counted = is_label if is_open is None else is_label.with_values(is_label.values & is_open)
    predicted = _sums(loss.with_values(hits.values & counted.values))
    counts = _sums(counted)
    losses, tokens_ = _sums(loss), _sums(is_label)
    return {
        "utility_metric": "next-token accuracy",
        "utility": metrics.share(
            predicted.astype(np.int64), counts.astype(np.int64), _most_frequent(tokens, counted)
        ),
        "measures": {
            "perplexity per token": _perplexity(losses, tokens_, len(backbone.embeddings)),
            "perplexity per word": _perplexity(losses, words, len(backbone.embeddings)),
        },
        "predictions": {
            "hits": predicted.astype(int).tolist(),
            "tokens": counts.astype(int).tolist(),
        },
    }


def _open_text(backbone: Backbone, split: Split, length: int) -> tuple[Tensor | None, Ints]:
    """[T] True for tokens outside of secrets, and the number of remaining words of each text."""
    spans = split.secrets or [()] * len(split)
    where = offsets(backbone, split.texts, length)
    is_open = [
        ~covered_tokens(places, secrets) for places, secrets in zip(where, spans, strict=True)
    ]
    ends = (places[:, 1].max() for places in where)
    words = [len(text[:end].split()) for text, end in zip(split.texts, ends, strict=True)]
    return torch.from_numpy(np.concatenate(is_open)), np.array(words)


def _answers(split: Split) -> tuple[Tensor | None, Ints]:
    """None, and the number of words of each answer; answers have no marked secrets and are not truncated."""
    assert split.pairs is not None
    return None, np.array([len(answer.split()) for answer in split.pairs])


def _sums(values: Ragged) -> NDArray[np.float64]:
    """[n] sum of the values of each example."""
    at = np.repeat(np.arange(len(values)), values.lengths.numpy())
    sums = np.bincount(at, values.values.double().numpy(), minlength=len(values))
    return sums.astype(np.float64)


def _most_frequent(tokens: Tokens, counted: Ragged) -> float:
    return metrics.most_frequent_share(tokens.ids.values[counted.values].numpy())


def _perplexity(losses: NDArray[np.float64], counts: NDArray[Any], vocabulary: int) -> Estimate:
    """exp(Σ loss / Σ count), with a bootstrap over examples."""
    used = counts > 0
    losses, counts = losses[used], counts[used]
    weights = metrics.resamples(len(losses))
    spread = np.exp((weights @ losses) / np.maximum(weights @ counts, 1))
    low, high = np.quantile(spread, [0.025, 0.975])
    value = float(np.exp(losses.sum() / counts.sum()))
    return Estimate(value=value, low=low, high=high, n=len(losses), chance=vocabulary)
