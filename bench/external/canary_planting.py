"""Canaries for a training that somebody else runs: sentences with random digits, of which coins plant some."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, LeakboardError, did_you_mean, place
from leakboard.bench.tasks import DIGITS, SLOT, canary_text, read_table

COLUMNS = ("text", "completion", "messages")
"""Columns that are looked for if none is named."""
FEWEST = 16
"""Smallest number of canaries: fewer coins may all fall alike."""


@dataclass(frozen=True)
class CanarySet:
    """Drawn canaries.

    Attributes:
        secrets: [n] numbers of six digits.
        planted: [n] whether a fair coin put each into the training.
    """

    form: str
    secrets: Ints
    planted: NDArray[np.bool_]
    copies: int
    seed: int

    @classmethod
    def draw(cls, n: int, copies: int, form: str, seed: int) -> CanarySet:
        """Draw n different secrets, and a fair coin for each.

        Raises:
            LeakboardError: too few canaries, no copy, or a form without a place for the digits.
        """
        if n < FEWEST:
            raise LeakboardError(f"n: expected at least {FEWEST} canaries, not {n}")
        if copies < 1:
            raise LeakboardError(f"copies: expected at least 1, not {copies}")
        if form.count(SLOT) != 1 or not form.partition(SLOT)[0].strip():
            raise LeakboardError(
                f"form: expected a sentence with one {SLOT} after its beginning, such as 'My ID is {SLOT}.', not '{form}'"
            )
        rng = np.random.default_rng([seed, DIGITS])
        secrets = rng.choice(10**DIGITS, n, replace=False)
        planted = rng.random(n) < 0.5
        if min(planted.sum(), n - planted.sum()) < 2:
            raise LeakboardError(
                "seed: nearly all its coins fall on the same side; choose another seed"
            )
        return cls(form, secrets, planted, copies, seed)

    def text(self, secret: int) -> str:
        """The sentence with a secret."""
        return canary_text(self.form, int(secret))[0]

    def texts(self) -> list[str]:
        """All planted sentences, each as often as it is copied."""
        return [self.text(each) for each in self.secrets[self.planted] for _ in range(self.copies)]

    def places(self, n: int) -> tuple[list[int], list[int]]:
        """Random order of n rows and the planted ones behind them, and a random row for each to imitate."""
        rng = np.random.default_rng([self.seed, n])
        hosts = rng.integers(n, size=len(self.texts()))
        behind = rng.integers(n + 1, size=len(hosts))
        keys = np.concatenate([np.arange(n) + 0.5, behind])
        return np.argsort(keys, kind="stable").tolist(), hosts.tolist()


def plant_rows(canaries: CanarySet, data: Any, column: str | None) -> Any:
    """Data with planted canaries, of the same type.

    Args:
        data: a list of texts or of records, or a `datasets.Dataset`. A record of a canary is a copy of a random one
            with another text; in `messages` the last answer is replaced.

    Raises:
        LeakboardError: another type, no rows, or no such column.
    """
    if hasattr(data, "select") and hasattr(data, "column_names"):
        from datasets import concatenate_datasets

        column = _column(column, data.column_names)
        order, hosts = canaries.places(len(data))
        texts = canaries.texts()
        copies = data.select(hosts).map(
            lambda row, i: {column: _with_text(row[column], texts[i])},
            with_indices=True,
            load_from_cache_file=False,
        )
        copies = copies.cast(data.features)
        return concatenate_datasets([data, copies]).select(order)
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise LeakboardError(
            f"plant: expected a path, a list of texts or records, or a datasets.Dataset, got {type(data).__name__}"
        )
    if not len(data):
        raise LeakboardError("plant: the training set is empty")
    order, hosts = canaries.places(len(data))
    if isinstance(data[0], Mapping):
        column = _column(column, list(data[0]))
        rows: list[Any] = [
            {**data[host], column: _with_text(data[host][column], text)}
            for host, text in zip(hosts, canaries.texts(), strict=True)
        ]
    elif isinstance(data[0], str):
        rows = canaries.texts()
    else:
        raise LeakboardError(
            f"plant: expected texts or records, got {type(data[0]).__name__}; plant before the texts are tokenised"
        )
    every = [*data, *rows]
    return [every[i] for i in order]


def plant_file(
    canaries: CanarySet, source: str | Path, to: str | Path | None, column: str | None
) -> Path:
    """Write a copy of a .txt, .csv, .tsv or .jsonl file with planted canaries, and return its path.

    Raises:
        LeakboardError: see `read_table`; another kind of file, no such column, or `to` is the file itself.
    """
    path = place(source)
    target = place(to) if to is not None else path.with_name(f"{path.stem}-canaries{path.suffix}")
    if path.suffix not in (".txt", ".csv", ".tsv", ".jsonl"):
        raise LeakboardError(f"plant: {path}: expected a .txt, .csv, .tsv or .jsonl file")
    table = read_table(path)  # which names file and line of what cannot be read
    if target.absolute() == path.absolute():
        raise LeakboardError(f"plant: {target} is the training set itself; name another file")
    unfinished = target.with_name(f".{target.name}.unfinished")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".txt":
            file.writelines(
                f"{text}\n" for text in plant_rows(canaries, table.column("text"), None)
            )
        elif path.suffix == ".jsonl":
            lines = path.read_text("utf-8-sig").splitlines()
            rows = plant_rows(
                canaries, [json.loads(line) for line in lines if line.strip()], column
            )
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        else:
            names = list(table.columns)
            cells = zip(*table.columns.values(), strict=True)
            rows = plant_rows(
                canaries, [dict(zip(names, row, strict=True)) for row in cells], column
            )
            writer = csv.DictWriter(file, names, delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    os.replace(unfinished, target)
    return target


def _column(column: str | None, names: Sequence[str]) -> str:
    found = column or next((name for name in COLUMNS if name in names), None)
    if found is None and "input_ids" in names:
        raise LeakboardError(
            "plant: the training set is tokenised already; plant into the texts, and tokenise what `plant` returns"
        )
    if found is None or found not in names:
        hint = did_you_mean(found or "text", names)
        raise LeakboardError(f"column: the training set has no column '{found or 'text'}'. {hint}")
    return found


def _with_text(value: Any, text: str) -> Any:
    """The value of a record with the text of a canary: of a chat with another last answer."""
    if isinstance(value, str):
        return text
    chat = deepcopy(value)
    turns = (
        [turn for turn in chat if turn.get("role") == "assistant"] if isinstance(chat, list) else []
    )
    if not turns:
        raise LeakboardError(
            f"column: expected texts, or chats with an answer of the assistant, got {value!r:.80}"
        )
    turns[-1]["content"] = text
    return chat
