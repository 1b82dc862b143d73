"""Guess against truth. This is the only place where the two meet, and no attack is called from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bench import metrics
from bench.ragged import Tokens
from bench.tasks import Split
from bench.types import Goal, Guess, Ints


class BadGuess(Exception):
    """An attack returned something that cannot be scored."""


@dataclass(frozen=True)
class Truth:
    """What the adversary wants: per split the tokens, labels and attributes."""

    tokens: dict[str, Tokens]
    splits: dict[str, Split]
    recorded: dict[str, Ints]
    """Rows about which a guess may speak; an attack may not choose the easy ones among them."""


def score(guess: Guess, truth: Truth, granted: Ints | None = None) -> dict[str, Any]:
    """The fields of a `Leak` that a guess decides: metric, success, units, raw.

    Args:
        granted: rows of `train` whose attributes the attack was told. Guesses about the attributes
            of these are neither scored nor kept, and chance is that of the others.

    Raises:
        BadGuess: wrong shape, type or rows.
    """
    if guess.split not in truth.recorded:
        raise BadGuess(f"split '{guess.split}' is not one of {', '.join(truth.recorded)}")
    rows, values = np.asarray(guess.rows), np.asarray(guess.values)
    if not np.array_equal(np.sort(rows), truth.recorded[guess.split]):
        raise BadGuess(
            f"guesses must be about each of the {len(truth.recorded[guess.split])} recorded "
            f"examples of '{guess.split}' once; there are {len(rows)} guesses about "
            f"{len(np.unique(rows))} examples"
        )
    if values.dtype.kind not in "iu":
        raise BadGuess(f"guesses must be integers, not {values.dtype}")
    if guess.goal == Goal.INVERSION:
        return _inversion(guess, rows, values, truth)
    if guess.goal == Goal.LABEL:
        return _per_example(values, truth.splits[guess.split].labels[rows])
    if guess.goal == Goal.ATTRIBUTE:
        known = truth.splits[guess.split].attributes
        if guess.attribute not in known:
            raise BadGuess(f"attribute {guess.attribute!r} is not one of {', '.join(known)}")
        attribute = known[guess.attribute][rows]
        if granted is not None and guess.split == "train":
            attribute = np.where(np.isin(rows, granted), -1, attribute)
        return _per_example(values, attribute)
    raise BadGuess(f"goal '{guess.goal}' cannot be scored yet")


def _inversion(guess: Guess, rows: Ints, values: Ints, truth: Truth) -> dict[str, Any]:
    tokens = truth.tokens[guess.split].take(torch.from_numpy(rows))
    lengths = tokens.lengths.numpy()
    if guess.lengths is None or not np.array_equal(guess.lengths, lengths):
        raise BadGuess("an inversion must guess every token of every example it speaks about")
    if values.ndim not in (1, 2) or len(values) != lengths.sum() or not values.size:
        raise BadGuess(
            f"an inversion of {lengths.sum()} tokens has shape [T] or [T, R], not {values.shape}"
        )
    values = values.reshape(len(values), -1)
    original = tokens.ids.values.numpy()
    counted = ~tokens.special.numpy()
    hit = (values == original[:, None]).any(1) & counted
    example = np.repeat(np.arange(len(rows)), lengths)
    hits = np.bincount(example[hit], minlength=len(rows))
    totals = np.bincount(example[counted], minlength=len(rows))
    chance = metrics.most_frequent_share(original[counted], guesses=values.shape[1])
    return {
        "metric": "token accuracy",
        "success": metrics.share(hits, totals, chance),
        "units": int(totals.sum()),
        "raw": {"hits": hits.tolist(), "tokens": totals.tolist()},
    }


def _per_example(values: Ints, truth: Ints) -> dict[str, Any]:
    if values.shape != truth.shape:
        raise BadGuess(f"one guess per example has shape {truth.shape}, not {values.shape}")
    known = truth >= 0
    values, truth = values[known], truth[known]
    ones = np.ones(len(truth), np.int64)
    return {
        "metric": "accuracy",
        "success": metrics.share(
            (values == truth).astype(np.int64), ones, metrics.most_frequent_share(truth)
        ),
        "units": len(truth),
        "raw": {"guess": values.tolist(), "truth": truth.tolist()},
    }
