"""What the owner of a recorded transcript knows: texts, labels and attributes, in a table of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bench.backbones import Backbone, Tokens
from bench.contracts import Channel, Goal, Ints, LeakboardError, Transcript
from bench.tasks import Split, Table, Task, read_table

TEXT, SECOND, LABEL, SPLIT = "text", "text2", "label", "split"
"""Columns of the table."""


@dataclass(frozen=True)
class Known:
    """The truth as a task, and the goals that it can score.

    Attributes:
        task: row number i of a split is its line number i; its labels are class numbers.
    """

    task: Task
    goals: frozenset[Goal]


def read_truth(path: Path, classes: int, attributes: Sequence[str] = ()) -> Known:
    """Reads a table with a line per example, in the order of the transcript's row numbers.

    Columns: `text` (and `text2` of pairs), `label` (a class number from 0), `split` (else all is
    `train`), and the named attributes; each may be absent.

    Raises:
        LeakboardError: see `read_table`; no column to score by, or a label that is no class number.
    """
    table = read_table(path)
    for name in attributes:
        table.column(name)
    columns = table.columns
    goals = {
        Goal.INVERSION: TEXT in columns,
        Goal.LABEL: LABEL in columns,
        Goal.ATTRIBUTE: attributes,
    }
    if not any(goals.values()):
        raise LeakboardError(
            f"{path}: nothing to score by; expected a column '{TEXT}' or '{LABEL}', or an attribute "
            f"named by --attribute; it has {', '.join(columns)}"
        )
    values = {name: tuple(sorted({*columns[name]} - {""})) for name in attributes}
    names = columns.get(SPLIT, ["train"] * len(table))
    splits = {
        split: _split(
            table.take([i for i, name in enumerate(names) if name == split]), classes, values
        )
        for split in dict.fromkeys(names)
    }
    numbers = tuple(str(i) for i in range(classes))
    task = Task("the transcript", numbers, splits, values, f"file: {path}")
    return Known(task, frozenset(goal for goal, there in goals.items() if there))


def tokens_sent(known: Known, seen: Transcript, base: Backbone) -> dict[str, Tokens]:
    """The tokens of each split, cut to the longest example that was sent.

    That is how they were cut before: what is longer was cut to that, what is not was not.

    Raises:
        LeakboardError: the texts have other numbers of tokens than what was sent of them.
    """
    found = {}
    for split, texts in known.task.splits.items():
        sent = [
            (m.rows, m.lengths) for m in seen.messages if m.split == split and _whole(m.channel)
        ]
        ragged = [(rows, lengths) for rows, lengths in sent if lengths is not None]
        if not ragged:
            continue
        longest = max(int(lengths.max()) for _, lengths in ragged)
        tokens = base.encode(texts.texts, texts.pairs, longest)
        for rows, lengths in ragged:
            mine = tokens.lengths[torch.from_numpy(np.array(rows))].numpy()
            if (mine != lengths).any():
                at = int(np.flatnonzero(mine != lengths)[0])
                raise LeakboardError(
                    f"{known.task.source}: the text of row {rows[at]} of {split} has {mine[at]} tokens "
                    f"of '{base.name}', and {lengths[at]} were sent. Lines must stand in the order of "
                    "the transcript's rows, with the texts as they were sent"
                )
        found[split] = tokens
    return found


def _whole(channel: Channel) -> bool:
    """Whether every token of an example has its entry there."""
    return channel in (Channel.TOKENS, Channel.REPRESENTATIONS)


def _split(table: Table, classes: int, values: dict[str, tuple[str, ...]]) -> Split:
    n, columns = len(table), table.columns
    return Split(
        tuple(columns.get(TEXT, [""] * n)),
        _labels(table, classes) if LABEL in columns else np.zeros(n, np.int64),
        tuple(columns[SECOND]) if SECOND in columns else None,
        {name: _indices(columns[name], known) for name, known in values.items()},
    )


def _labels(table: Table, classes: int) -> Ints:
    valid = {str(i): i for i in range(classes)}
    for i, label in enumerate(table.columns[LABEL]):
        if label not in valid:
            raise LeakboardError(
                f"{table.where}: the label of row {i} must be a class number from 0 to "
                f"{classes - 1}, in the order of the logits; got '{label}'"
            )
    return np.array([valid[label] for label in table.columns[LABEL]], np.int64)


def _indices(column: Sequence[str], values: tuple[str, ...]) -> Ints:
    return np.array([values.index(value) if value else -1 for value in column], np.int64)
