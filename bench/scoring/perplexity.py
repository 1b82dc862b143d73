"""What a tuned language model is good for: tokens predicted and perplexities, secrets left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.backbones import Backbone, LanguageModel, Ragged, Tokens, covered, offsets, per_token
from bench.contracts import Estimate
from bench.scoring import metrics
from bench.tasks import Split


def judged(
    network: LanguageModel, backbone: Backbone, split: Split, tokens: Tokens, length: int
) -> dict[str, Any]:
    """Utility fields of a record.

    Utility is the share of tokens predicted, secrets left out: what protects them shall not count as
    a loss. Perplexities are over all tokens, as papers give them; per word, too, since models differ
    in how they split words.

    Args:
        tokens: of `split`, cut to `length`.
    """
    loss, hits = per_token(network, tokens)
    spans = split.secrets or [()] * len(split)
    where = offsets(backbone, split.texts, length)
    open_, words = [], []
    for text, own, secrets in zip(split.texts, where, spans, strict=True):
        open_.append(np.concatenate([[False], ~covered(own[1:], secrets)]))
        words.append(len(text[: own[:, 1].max()].split()))
    counted = Ragged(torch.from_numpy(np.concatenate(open_)), tokens.lengths)
    predicted = _sums(loss.with_values(hits.values & counted.values))
    counts = _sums(counted)
    losses, tokens_ = _sums(loss), tokens.lengths.numpy() - 1
    return {
        "utility_metric": "next-token accuracy",
        "utility": metrics.share(
            predicted.astype(np.int64), counts.astype(np.int64), _most_frequent(tokens, counted)
        ),
        "measures": {
            "perplexity per token": _perplexity(losses, tokens_, len(backbone.embeddings)),
            "perplexity per word": _perplexity(losses, np.array(words), len(backbone.embeddings)),
        },
        "predictions": {
            "hits": predicted.astype(int).tolist(),
            "tokens": counts.astype(int).tolist(),
        },
    }


def _sums(values: Ragged) -> NDArray[np.float64]:
    """Per example the sum of its values."""
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
