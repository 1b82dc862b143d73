"""Exposure of a canary: the exact rank of a planted secret among all secrets of its form.

Carlini et al. 2019, "The Secret Sharer", definitions 1 to 3. Sampling the rank is not needed: texts
that begin alike share their beginning, so the candidates form a prefix tree over tokens, and each
inner node goes through the model once, with the keys and values of its ancestors.
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
"""How tokenisers write a space."""
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""How tokenisers name a byte; the figures in it are no text."""


def exposure(
    log_perplexities: NDArray[Any], truth: int, beside: Collection[int] = frozenset()
) -> float:
    """log2(N) − log2(rank) of the candidate `truth`, in bits: the definition of Carlini et al.

    The least perplexing of N candidates has rank 1; equal ones share the mean of their ranks.

    Args:
        beside: other candidates that were planted, which nobody competes with: of ten secrets that a
            model has all learned by heart each has rank 1.
    """
    own = log_perplexities[truth]
    others = log_perplexities[list(beside)] if beside else log_perplexities[:0]
    equal = int((log_perplexities == own).sum()) - int((others == own).sum())
    less = int((log_perplexities < own).sum()) - int((others < own).sum())
    return math.log2(len(log_perplexities)) - math.log2(less + (equal + 1) / 2)


def expected_unseen(n: int) -> float:
    """Mean exposure, in bits, of a secret that played no part in training.

    Its rank is uniform on 1…N, so the mean is log2 N − Σ_r log2(r)/N = log2 N − log2(N!)/N, which
    tends to 1/ln 2 = 1.443 by Stirling's formula.
    """
    return math.log2(n) - math.lgamma(n + 1) / (n * math.log(2))


def digits_of(number: int, digits: int) -> str:
    """The digits of a candidate, leading zeros kept."""
    return f"{number:0{digits}d}"


def number_in(text: str, digits: int) -> int:
    """The number that a text begins with, or −1 where it does not begin with so many digits."""
    start = text[:digits]
    return int(start) if len(start) == digits and start.isdecimal() else -1


def canary_guess(rows: NDArray[Any], values: NDArray[Any], measure: Measure, round: int) -> Guess:
    """What is guessed of planted secrets, from the model that a round released."""
    where = (Goal.MEMORISATION, Channel.MODEL, "train")
    return Guess(*where, rows, values, measure=measure, round=round)


@torch.no_grad()
def beam_search(
    model: Any, head: Tensor, tokenizer: Any, prefix: str, n_tokens: int, beams: int = 1
) -> list[str]:
    """What the model goes on to write after `prefix`: the ends of a beam search, likely ones first.

    Args:
        model: a causal base model, in evaluation mode.
        head: [V, d] output embeddings.
        beams: how many texts are kept at each token; one is greedy decoding.
    """
    start = tokenizer(prefix)["input_ids"]
    start = [*bos_prefix(tokenizer, start), *start]
    ids = torch.tensor([start], device=head.device)
    told = torch.zeros(1, device=head.device)
    for _ in range(n_tokens):
        hidden = model(input_ids=ids).last_hidden_state[:, -1]
        scores = torch.cat([some for _, some in chunks(hidden, head)])
        totals = told[:, None] + scores.log_softmax(-1)
        told, best = totals.flatten().topk(min(beams, totals.numel()))
        ids = torch.cat([ids[best // len(head)], (best % len(head))[:, None]], 1)
    known, *whole = (tokenizer.decode(i, skip_special_tokens=True) for i in [start, *ids.tolist()])
    return [text.removeprefix(known) for text in whole]


@torch.no_grad()
def candidates(
    model: Any,
    head: Tensor,
    tokenizer: Any,
    form: str,
    digits: int = 6,
    memory: int = MEMORY,
) -> NDArray[np.float32]:
    """[10^digits] −ln p of the whole text of every candidate, in nats; the index is the number.

    The total over the tokens of a text and not the mean, since candidates may differ in length.
    What stands behind the digits counts, and costs: with a token per digit, six digits have 111,111
    inner nodes, and every token behind them adds a million. The first token is given; it is BOS, which training
    puts in front of texts as well, and where the tokeniser has none, it is common to all candidates.

    Args:
        model: a causal base model in evaluation mode, called with `input_ids`, `position_ids`,
            `attention_mask` [B, 1, Q, K] and a cache (`cache_argument`).
        head: [V, d] output embeddings.
        form: a text with `{digits}` in it.
        memory: bytes of keys, values and scores held at a time; the result does not depend on it.

    Raises:
        LeakboardError: a form without `{digits}`, or candidates that the tokeniser cannot tell apart.
    """
    tree = Tree.of(token_ids(tokenizer, form, digits), form)
    return Walk(model, head, tree, memory).run().astype(np.float32)


def token_ids(tokenizer: Any, form: str, digits: int) -> NDArray[np.int32]:
    """[10^digits, L] token ids of every candidate's text, begun as one that is trained on, −1 behind the end.

    Raises:
        LeakboardError: no `{digits}` in the form, or a token of it is unknown to the tokeniser.
    """
    if form.count("{digits}") != 1:
        raise LeakboardError(f"canary '{form}': expected exactly one {{digits}} in it")
    before, after = form.split("{digits}")

    def encode(texts: Sequence[str], special: bool = True) -> list[list[int]]:
        given = tokenizer(list(texts), add_special_tokens=special)["input_ids"]
        return [[*bos_prefix(tokenizer, ids), *ids] for ids in given] if special else list(given)

    def text(number: int) -> str:
        return before + digits_of(number, digits) + after

    alike = [text(figure * (10**digits - 1) // 9) for figure in range(10)]  # 000…, 111…, …
    unknown = tokenizer.unk_token_id
    if unknown is not None and any(unknown in ids for ids in encode(alike, special=False)):
        raise LeakboardError(
            f"canary '{form}': its tokeniser has no token for a part of it "
            f"('{tokenizer.unk_token}' stands there). Choose another form, or another model"
        )
    # What such a text cannot hold, such as <h1> or <unused7>, never stands in it.
    there = {*before, *after, *FIGURES, *SPACES}
    joins = any(
        len(token) > 1 and FIGURES & set(token) and set(token) <= there
        for token in tokenizer.get_vocab()
        if not BYTE.fullmatch(token) and token not in tokenizer.all_special_tokens
    )
    if not joins:  # a figure is always a token by itself, so that ten texts tell all
        of_figure = np.array(encode(alike), dtype=np.int32)
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
