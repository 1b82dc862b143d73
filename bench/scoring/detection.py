"""Evaluation of secret detectors: recall, precision, and share of masked text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.contracts import Estimate, LeakboardError, did_you_mean
from leakboard.bench.defending import Detector, mask_runs
from leakboard.bench.scoring.metrics import share
from leakboard.bench.tasks import (
    ANNOTATED,
    SPANS,
    SUFFIXES,
    Span,
    Split,
    Task,
    listing,
    load_annotated,
    load_file,
    load_task,
)

TOKEN, WORD = re.compile(r"\S+"), re.compile(r"\w+")


@dataclass(frozen=True)
class Score:
    """Scores of a detector on marked secrets; intervals are bootstraps over texts.

    Tokens are separated by white space; words are runs of letters, digits and '_'. A masked token or word is one
    that is masked at least in part.

    Attributes:
        precision: share of masked tokens that overlap a secret; None if nothing is masked, or no secrets are marked.
            Chance is the share of all tokens that overlap one.
        recall: share of secrets of which every character is masked; None without secrets. Chance is mᵏ for a secret
            of k tokens, where m is the share of masked tokens.
        kinds: number of secrets of each kind, and their recall.
        tokens: share of tokens that are masked.
        words: share of words that are masked.
    """

    precision: Estimate | None
    recall: Estimate | None
    kinds: dict[str, tuple[int, Estimate]]
    tokens: Estimate
    words: Estimate

    @property
    def miss_rate(self) -> Estimate | None:
        """1 − recall."""
        r = self.recall
        if r is None:
            return None
        return Estimate(
            value=1 - r.value, low=1 - r.high, high=1 - r.low, n=r.n, chance=1 - r.chance
        )


def score(
    texts: Sequence[str],
    found: Sequence[Sequence[Span]],
    secrets: Sequence[Sequence[Span]] | None,
) -> Score:
    """Scores of the spans that a detector reports in n texts.

    Args:
        secrets: marked secrets of each text; None if none are marked.

    Raises:
        LeakboardError: the texts have no words.
    """
    masks = [_covered(text, mask_runs(text, own)) for text, own in zip(texts, found, strict=True)]
    tokens = [_touched(TOKEN, text, mask) for text, mask in zip(texts, masks, strict=True)]
    words = [_touched(WORD, text, mask) for text, mask in zip(texts, masks, strict=True)]
    if not sum(map(len, words)):
        raise LeakboardError("the texts have no words, so there is nothing to score")
    masked, masked_words = _share(tokens, 0.0), _share(words, 0.0)
    assert masked is not None
    assert masked_words is not None
    if secrets is None:
        return Score(None, None, {}, masked, masked_words)

    marked = [
        _touched(TOKEN, text, _covered(text, [(s.start, s.end) for s in own]))
        for text, own in zip(texts, secrets, strict=True)
    ]
    at_random = sum(int(own.sum()) for own in marked) / sum(map(len, marked))
    right = [own[mask] for own, mask in zip(marked, tokens, strict=True)]
    every = dict.fromkeys(s.kind for own in secrets for s in own)
    kinds = {}
    for kind in sorted(every):
        estimate = _recall(texts, masks, secrets, masked.value, kind)
        assert estimate is not None
        kinds[kind] = (sum(s.kind == kind for own in secrets for s in own), estimate)
    recall = _recall(texts, masks, secrets, masked.value)
    return Score(_share(right, at_random), recall, kinds, masked, masked_words)


def _recall(
    texts: Sequence[str],
    masks: Sequence[NDArray[np.bool_]],
    secrets: Sequence[Sequence[Span]],
    masked: float,
    kind: str | None = None,
) -> Estimate | None:
    """Recall of all secrets, or of one kind."""
    caught, chances = [], []
    for text, mask, own in zip(texts, masks, secrets, strict=True):
        wanted = [s for s in own if kind is None or s.kind == kind]
        caught.append(np.array([mask[s.start : s.end].all() for s in wanted], bool))
        for s in wanted:
            k = int(_touched(TOKEN, text, _covered(text, [(s.start, s.end)])).sum())
            chances.append(masked**k)
    return _share(caught, float(np.mean(chances)) if chances else 0.0)


def _share(hits: Sequence[NDArray[np.bool_]], chance: float) -> Estimate | None:
    """Share of true entries over all texts; None without entries."""
    totals = np.array([len(text) for text in hits], np.int64)
    if not totals.sum():
        return None
    return share(np.array([text.sum() for text in hits], np.int64), totals, chance)


def _covered(text: str, spans: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    mask = np.zeros(len(text), bool)
    for start, end in spans:
        mask[start:end] = True
    return mask


def _touched(unit: re.Pattern[str], text: str, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True for each token or word of a text of which the mask covers any part."""
    return np.array([mask[m.start() : m.end()].any() for m in unit.finditer(text)], bool)


def load_texts(name: str, data: Path | None = None) -> Task:
    """Texts by the name of an annotated corpus or of a task, or from the user's file.

    Raises:
        LeakboardError: the name is unknown, or the data are missing or wrong.
    """
    if name in ANNOTATED:
        return load_annotated(name, data)
    if name.endswith(SUFFIXES):
        return load_file(Path(name))
    tasks = [task.name for task in listing()]
    if name not in tasks:
        known = [*ANNOTATED, *tasks]
        raise LeakboardError(
            f"unknown data '{name}', and no file {' or '.join(SUFFIXES)}. {did_you_mean(name, known)}"
        )
    return load_task(name, data)


def measure_detector(
    name: str,
    detector: str,
    pipeline: str,
    split: str | None = None,
    limit: int | None = None,
    data: Path | None = None,
) -> list[RenderableType]:
    """Output of `leakboard detect` for one detector on a split.

    Raises:
        LeakboardError: see `load_texts`, `Task.split`, `Detector.detect`; the detector is unknown.
    """
    try:
        chosen = Detector(name=detector, spacy=pipeline)
    except ValidationError as error:
        raise LeakboardError(f"--detector: {error.errors()[0]['ctx']['error']}") from None
    task = load_texts(name, data).limited(limit, 0)
    split, texts = chosen_split(task, split)
    found = chosen.detect(texts.texts, texts.secrets).spans
    scored = score(texts.texts, found, texts.secrets)
    return _render(f"{detector} on {task.name}, {split}, {len(texts)} texts", scored, texts.secrets)


def chosen_split(task: Task, split: str | None) -> tuple[str, Split]:
    """Name and texts of the requested split, or of the only one, or of dev.

    Raises:
        LeakboardError: see `Task.split`.
    """
    split = split or (next(iter(task.splits)) if len(task.splits) == 1 else "dev")
    return split, task.split(split)


def _render(
    title: str, scored: Score, secrets: Sequence[Sequence[Span]] | None
) -> list[RenderableType]:
    total = sum(map(len, secrets or ()))
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for column in ("measure", "value", "chance", "texts", "secrets"):
        table.add_column(column, justify="left" if column == "measure" else "right")
    if secrets is not None:
        table.add_row(*_row("precision", scored.precision))
        table.add_row(*_row("recall", scored.recall, total))
        table.add_row(*_row("miss-rate", scored.miss_rate, total), end_section=True)
        for kind, (count, estimate) in scored.kinds.items():
            table.add_row(*_row(f"recall of {kind}", estimate, count))
        table.add_section()
    table.add_row(*_row("masked tokens", scored.tokens, chance=False))
    table.add_row(*_row("masked words", scored.words, chance=False))
    note = (
        "A secret is found if all of its characters are masked. Precision is the share of masked tokens "
        "that belong to a secret."
    )
    if secrets is None:
        note = f"No secrets are marked (column '{SPANS}' of a file), so missed secrets cannot be counted."
    return [table, Text(note)]


def _row(
    name: str, estimate: Estimate | None, secrets: int | None = None, chance: bool = True
) -> list[str]:
    counted = "" if secrets is None else str(secrets)
    if estimate is None:
        return [name, "–", "", "", counted]
    shown_chance = f"{estimate.chance:.3f}" if chance else ""
    return [name, format_estimate(estimate), shown_chance, str(estimate.n), counted]


def format_estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
