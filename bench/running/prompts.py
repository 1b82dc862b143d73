"""The beginnings of training texts, up to a secret that stands in them, and the secret's own tokens."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch

from leakboard.bench.backbones import Backbone, Ragged, Tokens, covered, offsets
from leakboard.bench.contracts import Ints
from leakboard.bench.tasks import CONTINUED, Split

PROMPTS = 50
"""So many secrets are asked for, drawn from those of the recorded texts."""


@dataclass(frozen=True)
class Prompts:
    """n prompts, which an attacker is told, and what stands behind each, which it is not."""

    tokens: Tokens
    answers: Ragged


def prompts_of(
    split: Split,
    tokens: Tokens,
    backbone: Backbone,
    rows: Ints,
    planted: Collection[int],
    rng: np.random.Generator,
) -> Prompts | None:
    """Prompts of some rows of a split of language modelling; None where nobody marked its secrets.

    A secret that the prompt already holds is copied, not remembered, and left out; so is one of more
    tokens than are written, or that the text was cut within.

    Args:
        tokens: of the split, cut as for training.
        rows: the texts that are looked at.
        planted: rows that hold canaries, which are looked for by their sentence.
    """
    if split.secrets is None:
        return None
    own = [row for row in rows.tolist() if row not in planted]
    texts = [split.texts[row] for row in own]
    found: list[tuple[int, int, int]] = []
    places = offsets(backbone, texts, int(tokens.lengths.max())) if own else []
    for row, text, where in zip(own, texts, places, strict=True):
        for secret in split.secrets[row]:
            at = np.flatnonzero(covered(where, [secret]))
            if not 0 < len(at) <= CONTINUED[0] or not at[0] or where[at[-1], 1] < secret.end:
                continue
            if text[secret.start : secret.end] not in text[: secret.start]:
                found.append((row, int(at[0]), int(at[-1]) + 1))
    chosen = [found[i] for i in np.sort(rng.permutation(len(found))[:PROMPTS])]
    before, behind = [], []
    for row, first, last in chosen:
        ids = tokens.ids.take(torch.tensor([row])).values.tolist()
        before.append(ids[:first])
        behind.append(ids[first:last])
    told = Ragged.of(before)
    flat = torch.zeros_like(told.values)
    return Prompts(Tokens(told, flat, flat.bool()), Ragged.of(behind))
