"""Scoring of guesses about inputs, labels and attributes against the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leakboard.bench.backbones import NO_LABEL, Ragged, Tokens, next_tokens
from leakboard.bench.contracts import Channel, Claim, Goal, Guess, Ints, Transcript
from leakboard.bench.scoring import metrics, moments, roc
from leakboard.bench.tasks import Planted, Split

PER_TOKEN = frozenset({Channel.TOKENS, Channel.REPRESENTATIONS})
"""Channels on which the number of tokens of a text is visible."""


PRESENCE = "AUC of presence"
"""Metric of a ranking of texts by how likely they are among the candidates."""


class BadGuess(Exception):
    """An attack returned something that cannot be scored."""


@dataclass(frozen=True)
class Truth:
    """The truth that attacks guess: tokens, labels and attributes of each split."""

    tokens: dict[str, Tokens]
    splits: dict[str, Split]
    recorded: dict[str, Ints]
    """Rows that a guess must cover, by split; an attack may not select easy ones."""
    planted: Planted | None = None
    """Canaries and coins; None if nothing was planted."""
    claim: Claim | None = None
    """Claim of the defense, whose δ and profile an audit uses."""
    answers: Ragged | None = None
    """Tokens of the secret after each prompt of an extraction attack."""
    texts: dict[str, Tokens] = field(default_factory=dict)
    """By split, the candidates among which an attack searches the recorded texts."""
    prompted: bool = False
    """Whether the first text of a pair is the input, and the second is learnt."""

    @cached_property
    def permuted(self) -> Any:
        """Permuted labels of `train`, see `leakboard.bench.scoring.moments.permuted`."""
        return moments.permuted(self.splits["train"].labels)


def score(guess: Guess, truth: Truth, granted: Ints | None = None) -> dict[str, Any]:
    """Leak fields from a guess: metric, success, units, raw.

    Args:
        granted: rows of `train` whose attributes were given to the attack. They are neither scored nor stored,
            and chance is computed on the others.

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
    if guess.measure == "bag":
        return _bag(guess, rows, values, truth)
    if guess.goal == Goal.REIDENTIFICATION:
        return _reidentification(guess, rows, values, truth)
    if guess.goal == Goal.INVERSION:
        return _inversion(guess, rows, values, truth)
    if guess.goal == Goal.LABEL and guess.lengths is not None:
        return _next_tokens(guess, rows, values, truth)
    if guess.goal in (Goal.LABEL, Goal.MODEL):
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


def score_over_training(
    guesses: Sequence[Guess], seen: Transcript, truth: Truth, curve: bool = True
) -> list[dict[str, Any]]:
    """Leak fields from guesses about labels over training, at the worst and at the last moment.

    Args:
        guesses: of one attack from one channel, by one measure; one per moment, part and recipient.
        seen: the transcript, which determines the rows that a guess must cover.
        curve: also score all moments between.

    Raises:
        BadGuess: wrong shape, type, goal or rows.
    """
    labels = truth.splits["train"].labels
    trials = []
    for guess in guesses:
        if guess.goal != Goal.LABEL or guess.split != "train" or guess.channel is None:
            raise BadGuess(f"the measure '{guess.measure}' is for labels of 'train' on a channel")
        messages = [
            m
            for m in seen.messages
            if (m.channel, m.split, m.moment) == (guess.channel, "train", guess.moment)
            and (guess.moment is not None or m.round == guess.round)
            and guess.recipient in (None, m.recipient)
        ]
        sent = (
            np.unique(np.concatenate([m.rows for m in messages])) if messages else np.zeros(0, int)
        )
        rows, values = np.asarray(guess.rows), np.asarray(guess.values)
        if not np.array_equal(np.sort(rows), sent):
            raise BadGuess(
                f"guesses must be about each of the {len(sent)} examples sent on {guess.channel} "
                f"to {guess.recipient or 'anybody'} at moment {guess.moment} once; there are {len(rows)} guesses"
            )
        kinds = "iuf" if guess.measure == "auc" else "iu"
        if values.shape != rows.shape or values.dtype.kind not in kinds:
            raise BadGuess(
                f"one guess per example has shape {rows.shape}, not {values.shape}; "
                f"'{guess.measure}' takes {'numbers' if kinds == 'iuf' else 'whole numbers'}"
            )
        if not np.isfinite(values).all() or (guess.measure == "matching" and values.min() < 0):
            raise BadGuess("guesses must be finite, and clusters count from 0")
        step = min(m.step for m in messages)
        trials.append(moments.Trial(guess, step, values, labels[rows], truth.permuted[:, rows]))
    return moments.scored(trials, int(labels.max()) + 1, curve)


def _inversion(guess: Guess, rows: Ints, values: Ints, truth: Truth) -> dict[str, Any]:
    tokens = truth.tokens[guess.split].take(torch.from_numpy(rows))
    original, counted = tokens.ids.values.numpy(), ~tokens.special.numpy()
    if truth.prompted:
        counted &= (tokens.types == 0).numpy()
    return _token_fields(guess, tokens.lengths.numpy(), values, original, counted) | {
        "metric": "token accuracy"
    }


def _next_tokens(guess: Guess, rows: Ints, values: Ints, truth: Truth) -> dict[str, Any]:
    """Labels of a language model: at each place, the next token. Special tokens do not count."""
    tokens = truth.tokens[guess.split].take(torch.from_numpy(rows))
    labels = next_tokens(tokens).numpy()
    added = next_tokens(tokens.with_ids(tokens.special.long())).numpy()
    counted = (labels != NO_LABEL) & (added != 1)
    return _token_fields(guess, tokens.lengths.numpy(), values, labels, counted) | {
        "metric": "label token accuracy"
    }


def _token_fields(
    guess: Guess, lengths: Ints, values: Ints, original: Ints, counted: NDArray[np.bool_]
) -> dict[str, Any]:
    """Leak fields from guesses about tokens, of which only those in `counted` are scored."""
    if guess.lengths is None or not np.array_equal(guess.lengths, lengths):
        raise BadGuess(
            f"a guess about the {guess.goal} of tokens must cover every token of each of its examples"
        )
    if values.ndim not in (1, 2) or len(values) != lengths.sum() or not values.size:
        raise BadGuess(
            f"a guess about {lengths.sum()} tokens has shape [T] or [T, R], not {values.shape}"
        )
    values = values.reshape(len(values), -1)
    hit = (values == original[:, None]).any(1) & counted
    example = np.repeat(np.arange(len(lengths)), lengths)
    hits = np.bincount(example[hit], minlength=len(lengths))
    totals = np.bincount(example[counted], minlength=len(lengths))
    chance = metrics.most_frequent_share(original[counted], guesses=values.shape[1])
    return {
        "success": metrics.share(hits, totals, chance),
        "units": int(totals.sum()),
        "raw": {"hits": hits.tolist(), "tokens": totals.tolist()},
    }


def _bag(guess: Guess, rows: Ints, values: Ints, truth: Truth) -> dict[str, Any]:
    """F1 of the first k guesses, where k is the number of different tokens of a text, so precision equals recall.

    Chance is the F1 of the k tokens that occur in most of these texts.
    """
    if guess.goal != Goal.INVERSION or values.ndim != 2 or len(values) != len(rows):
        raise BadGuess(
            f"a bag is an inversion of shape [{len(rows)}, R], not {guess.goal} of {values.shape}"
        )
    tokens = truth.tokens[guess.split].take(torch.from_numpy(rows))
    ids, counted = tokens.ids.values.numpy(), ~tokens.special.numpy()
    example = np.repeat(np.arange(len(rows)), tokens.lengths.numpy())
    held = np.unique(np.stack([example[counted], ids[counted]], axis=1), axis=0)
    totals = np.bincount(held[:, 0], minlength=len(rows))
    # One number per pair of example and token, so that membership is a search in one array.
    width = int(max(ids.max(initial=0), values.max(initial=0))) + 1
    pairs = held[:, 0] * width + held[:, 1]
    ranked = np.sort(np.where(values < 0, -1 - np.arange(values.shape[1]), values), axis=1)
    if (ranked[:, 1:] == ranked[:, :-1]).any():
        raise BadGuess("a bag names each token once; −1 stands for none")

    def hits(ids: Ints) -> Ints:
        is_in_text = np.isin(np.arange(len(rows))[:, None] * width + ids, pairs) & (ids >= 0)
        counts: Ints = (is_in_text & (np.arange(ids.shape[1]) < totals[:, None])).sum(1)
        return counts

    frequent = np.bincount(held[:, 1], minlength=width).argsort(kind="stable")[::-1]
    usual = np.broadcast_to(frequent[: totals.max(initial=0)], (len(rows), totals.max(initial=0)))
    right = hits(values)
    chance = hits(usual).sum() / totals.sum()
    return {
        "metric": "token F1",
        "success": metrics.share(right, totals, float(chance)),
        "units": int(totals.sum()),
        "raw": {"hits": right.tolist(), "tokens": totals.tolist()},
    }


def _reidentification(guess: Guess, rows: Ints, values: Ints, truth: Truth) -> dict[str, Any]:
    """Top-1 accuracy. Chance is the mean of 1/N, where N counts the possible candidates.

    On channels that send one value per token, the number of tokens is visible, so N counts candidates of this length.
    """
    texts = truth.texts.get(guess.split)
    if texts is None:
        raise BadGuess(f"there are no candidates for '{guess.split}'; declare Knows.CANDIDATES")
    if values.shape != rows.shape or values.min() < 0 or values.max() >= len(texts):
        raise BadGuess(
            f"guesses must be one of {len(texts)} candidates for each of {len(rows)} examples"
        )
    sent = truth.tokens[guess.split].take(torch.from_numpy(rows))
    times = Counter(texts.ids.sequences())
    wrong = [times[ids] for ids in sent.ids.sequences() if times[ids] != 1]
    if wrong:
        raise BadGuess(
            f"{len(wrong)} recorded texts of '{guess.split}' are not once among the candidates; the first of them "
            f"is there {wrong[0]} times"
        )
    named = texts.take(torch.from_numpy(values))
    pairs = zip(sent.ids.sequences(), named.ids.sequences(), strict=True)
    hits = np.array([mine == other for mine, other in pairs], np.int64)
    number = np.full(len(rows), len(texts))
    if guess.channel in PER_TOKEN:
        number = (sent.lengths[:, None] == texts.lengths).sum(1).numpy()
    return {
        "metric": "top-1 accuracy",
        "success": metrics.share(hits, np.ones_like(hits), float((1 / number).mean())),
        "units": len(rows),
        "raw": {"hit": hits.tolist(), "candidates": number.tolist()},
    }


def score_presence(
    guesses: Sequence[Guess], seen: Transcript, truth: Truth
) -> list[dict[str, Any]]:
    """Leak fields from rankings of the recorded texts by how likely they are among the candidates: the AUC of each.

    Raises:
        BadGuess: wrong shape, rows or type; or all texts are among the candidates, or none.
    """
    fields = []
    for guess in guesses:
        rows, values = np.asarray(guess.rows), np.asarray(guess.values)
        texts, recorded = truth.texts.get(guess.split), truth.recorded.get(guess.split)
        if texts is None or recorded is None:
            raise BadGuess(f"there are no candidates for '{guess.split}'; declare Knows.CANDIDATES")
        if not np.array_equal(np.sort(rows), recorded) or values.shape != rows.shape:
            raise BadGuess(f"a ranking needs one number for each of {len(recorded)} examples")
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise BadGuess("the numbers of a ranking must be finite")
        sent, known = (
            truth.tokens[guess.split].take(torch.from_numpy(rows)),
            {*texts.ids.sequences()},
        )
        present = np.array([ids in known for ids in sent.ids.sequences()])
        if present.all() or not present.any():
            raise BadGuess("all texts are among the candidates, or none; set `absent: true`")
        twice_rank = np.rint(2 * metrics.mean_ranks(values)).astype(np.int64)
        fields.append(
            {
                "view": guess.view,
                "metric": PRESENCE,
                "success": roc.estimate(roc.area, twice_rank, present, 0.5),
                "units": len(rows),
                "raw": {"twice_rank": twice_rank.tolist(), "present": present.astype(int).tolist()},
            }
        )
    return fields


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
