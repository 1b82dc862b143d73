"""Exposure of a canary: the exact rank of a planted secret among all secrets of its form.

Carlini et al. 2019, "The Secret Sharer", definitions 1 to 3. The rank is computed without sampling: candidates form
a prefix tree over tokens, and each inner node is evaluated once, with the keys and values of its ancestors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.attacking.prefix_tree import MEMORY, Tree, Walk
from leakboard.bench.backbones import bos_prefix, chunks
from leakboard.bench.contracts import Channel, Goal, Guess, LeakboardError, Measure

SLAB = 50_000
"""Texts that are tokenised at a time."""
FIGURES = set("0123456789")
SPACES = "▁Ġ"
"""Symbols of tokenisers for a space."""
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""Name of a byte in a tokeniser; its figures are no text."""


def exposure(
    log_perplexities: NDArray[Any], truth: int, excluded: Collection[int] = frozenset()
) -> float:
    """log2(N) − log2(rank) of the candidate `truth`, in bits.

    The candidate with the lowest perplexity has rank 1; ties get the mean of their ranks.

    Args:
        excluded: other planted candidates, which are left out of the ranking, so that several memorised secrets can
            all have rank 1.
    """
    truth_value = log_perplexities[truth]
    planted = log_perplexities[list(excluded)] if excluded else log_perplexities[:0]
    equal = int((log_perplexities == truth_value).sum()) - int((planted == truth_value).sum())
    less = int((log_perplexities < truth_value).sum()) - int((planted < truth_value).sum())
    return math.log2(len(log_perplexities)) - math.log2(less + (equal + 1) / 2)


def expected_unseen(n: int) -> float:
    """Mean exposure in bits of a secret that was not in the training data.

    Its rank is uniform on 1…N, so the mean is log2 N − log2(N!)/N, which tends to 1/ln 2 = 1.443.
    """
    return math.log2(n) - math.lgamma(n + 1) / (n * math.log(2))


def digits_of(number: int, digits: int) -> str:
    """Digits of a candidate, with leading zeros."""
    return f"{number:0{digits}d}"


def number_in(text: str, digits: int) -> int:
    """The number at the start of a text, or −1 if the text does not start with `digits` digits."""
    start = text[:digits]
    return int(start) if len(start) == digits and start.isdecimal() else -1


def canary_guess(rows: NDArray[Any], values: NDArray[Any], measure: Measure, round: int) -> Guess:
    """A guess about planted secrets from the model that was released in a round."""
    where = (Goal.MEMORISATION, Channel.MODEL, "train")
    return Guess(*where, rows, values, measure=measure, round=round)


@torch.no_grad()
def beam_search(
    model: Any, head: Tensor, tokenizer: Any, prefix: str, n_tokens: int, beams: int = 1
) -> list[str]:
    """Continuations of `prefix` by beam search, likeliest first.

    Args:
        model: a causal base model, in evaluation mode.
        head: [V, d] output embeddings.
        beams: width of the beam; 1 is greedy decoding.
    """
    start = tokenizer(prefix)["input_ids"]
    start = [*bos_prefix(tokenizer, start), *start]
    ids = torch.tensor([start], device=head.device)
    totals = torch.zeros(1, device=head.device)
    for _ in range(n_tokens):
        hidden = model(input_ids=ids).last_hidden_state[:, -1]
        scores = torch.cat([some for _, some in chunks(hidden, head)])
        sums = totals[:, None] + scores.log_softmax(-1)
        totals, best = sums.flatten().topk(min(beams, sums.numel()))
        ids = torch.cat([ids[best // len(head)], (best % len(head))[:, None]], 1)
    prompt, *texts = (tokenizer.decode(i, skip_special_tokens=True) for i in [start, *ids.tolist()])
    return [text.removeprefix(prompt) for text in texts]


@torch.no_grad()
def candidates(
    model: Any,
    head: Tensor,
    tokenizer: Any,
    form: str,
    digits: int = 6,
    memory: int = MEMORY,
) -> NDArray[np.float32]:
    """[10^digits] −ln p of the full text of every candidate, in nats; the index is the number.

    It is a sum over tokens, since candidates may differ in length. Tokens after the digits count too, and each adds
    up to 10^digits nodes to the tree. The first token is not scored: it is BOS, or common to all candidates if the
    tokeniser has none.

    Args:
        model: a causal base model in evaluation mode, called with `input_ids`, `position_ids`,
            `attention_mask` [B, 1, Q, K] and a cache (`cache_argument`).
        head: [V, d] output embeddings.
        form: a text that contains `{digits}`.
        memory: bytes of keys, values and scores in memory at once; the result does not depend on it.

    Raises:
        LeakboardError: a form without `{digits}`, or candidates with equal tokens.
    """
    tree = Tree.of(token_ids(tokenizer, form, digits), form)
    return Walk(model, head, tree, memory).run().astype(np.float32)


def token_ids(tokenizer: Any, form: str, digits: int) -> NDArray[np.int32]:
    """[10^digits, L] token ids of every candidate's text, with BOS as in training, and −1 after the end.

    Raises:
        LeakboardError: no `{digits}` in the form, or a token of it is unknown to the tokeniser.
    """
    if form.count("{digits}") != 1:
        raise LeakboardError(f"canary '{form}': expected exactly one {{digits}}")
    before, after = form.split("{digits}")

    def encode(texts: Sequence[str], special: bool = True) -> list[list[int]]:
        rows = tokenizer(list(texts), add_special_tokens=special)["input_ids"]
        return [[*bos_prefix(tokenizer, ids), *ids] for ids in rows] if special else list(rows)

    def text(number: int) -> str:
        return before + digits_of(number, digits) + after

    repeated = [text(figure * (10**digits - 1) // 9) for figure in range(10)]  # 000…, 111…, …
    unknown = tokenizer.unk_token_id
    if unknown is not None and any(unknown in ids for ids in encode(repeated, special=False)):
        raise LeakboardError(
            f"canary '{form}': the tokeniser has no token for a part of it and returns "
            f"'{tokenizer.unk_token}'. Choose another form, or another model"
        )
    # Tokens with other characters, such as <h1> or <unused7>, cannot occur in these texts.
    characters = {*before, *after, *FIGURES, *SPACES}
    has_joint_figures = any(
        len(token) > 1 and FIGURES & set(token) and set(token) <= characters
        for token in tokenizer.get_vocab()
        if not BYTE.fullmatch(token) and token not in tokenizer.all_special_tokens
    )
    if not has_joint_figures:  # each figure is one token, so ten texts determine all others
        of_figure = np.array(encode(repeated), dtype=np.int32)
        numbers = np.arange(10**digits)
        places = np.flatnonzero((of_figure != of_figure[0]).any(0))
        if len(places) == digits:
            ids = np.repeat(of_figure[:1], len(numbers), axis=0)
            for place, power in zip(places, range(digits - 1, -1, -1), strict=True):
                ids[:, place] = of_figure[numbers // 10**power % 10, place]
            sample = np.random.default_rng(0).integers(10**digits, size=200)
            if encode([text(n) for n in sample]) == ids[sample].tolist():
                return ids
    slabs = [
        encode([text(n) for n in range(at, min(at + SLAB, 10**digits))])
        for at in range(0, 10**digits, SLAB)
    ]
    lengths = np.array([len(ids) for slab in slabs for ids in slab])
    ids = np.full((len(lengths), lengths.max()), -1, dtype=np.int32)
    flat = chain.from_iterable(chain.from_iterable(slabs))
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.fromiter(flat, np.int32, lengths.sum())
    return ids
