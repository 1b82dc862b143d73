"""The truth about a recorded transcript: a table of texts, labels and attributes, by which guesses are scored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from leakboard.bench.backbones import Backbone, Tokens
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Ints,
    LeakboardError,
    Objective,
    Transcript,
    as_ints,
    form,
)
from leakboard.bench.exchange import Training
from leakboard.bench.external.rows import IDS, ids_digest, recorded_rows
from leakboard.bench.external.sent_ids import PER_TOKEN, SentIds, as_lists, with_ids
from leakboard.bench.tasks import Split, Table, Task, read_table

if TYPE_CHECKING:
    import pandas as pd

TruthTable: TypeAlias = "str | Path | Mapping[str, Any] | pd.DataFrame"
"""The path of a table, a DataFrame, or columns by name."""
TEXT, SECOND, LABEL, SPLIT = "text", "text2", "label", "split"
"""Columns of the table."""
LABELS = "labels"
"""Another name of the column of labels, as Trainers have it."""
NO_TEXTS = (
    "It could not be checked whether the lines of the truth are in the order of the recording, since there were no texts "
    "or token ids to compare. In another order, attacks seem to read nothing."
)
OTHER_TEXTS = (
    "The truth's texts have other token ids than the recording. Its lines may be in another order, or the texts were "
    "changed before they were sent."
)
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")
"""A number, which cannot be the name of a label."""


@dataclass(frozen=True)
class ScoringTruth:
    """The truth as a task, and the goals that can be scored with it.

    Attributes:
        task: row i of a split is its i-th line; labels are class numbers.
        ids: by split the token ids as they were sent, if the table has them; they take the place of the texts.
        sorted_labels: names of labels that were numbered in sorted order, since the transcript has no names.
    """

    task: Task
    goals: frozenset[Goal]
    ids: Mapping[str, SentIds] = field(default_factory=dict)
    sorted_labels: tuple[str, ...] = ()


def read_truth(
    source: TruthTable,
    classes: int | Sequence[str],
    attributes: Sequence[str] = (),
    objective: Objective = "classification",
) -> ScoringTruth:
    """Read a table with one line per example, in the order of the transcript's rows.

    Columns, all optional: `text` (and `text2` for pairs), `label` (a class number from 0, or a name), `split`
    (default `train`), and the named attributes. In place of texts, `input_ids` may hold lists of token ids as they were
    sent; see `SentIds`.

    Args:
        source: the path of a table; a pandas DataFrame; or columns by name, each a list, an array, or a tensor of
            whole numbers.
        classes: the labels in the order of the logits, or their number; names are then numbered in sorted order.
            0 for a language model, whose labels are the texts themselves.
        objective: with regression and multilabel, the column `label` is not read.

    Raises:
        LeakboardError: see `read_table`; no column can be scored, or a label is no class.
    """
    table, sent = with_ids(_table(source))
    for name in attributes:
        table.column(name)
    columns = table.columns
    if LABEL not in columns and LABELS in columns:
        table = table.with_columns({LABEL: columns[LABELS]})
        columns = table.columns
    has_texts = TEXT in columns or sent is not None
    goals = {
        Goal.INVERSION: has_texts,
        Goal.REIDENTIFICATION: has_texts,
        Goal.LABEL: (LABEL in columns if classes else has_texts)
        and objective not in ("regression", "multilabel"),
        Goal.ATTRIBUTE: attributes,
    }
    if not any(goals.values()):
        raise LeakboardError(
            f"{table.where}: nothing can be scored; expected a column '{TEXT}', '{IDS}' or '{LABEL}', or an "
            f"attribute named by --attribute; it has {', '.join(table.names)}"
        )
    values = {name: tuple(sorted({*columns[name]} - {""})) for name in attributes}
    has_labels = classes and LABEL in columns and objective not in ("regression", "multilabel")
    labels, ordered = np.zeros(len(table), np.int64), tuple[str, ...]()
    if has_labels:
        labels, ordered = _labels(table, classes)
    names = np.array(columns.get(SPLIT, ["train"] * len(table)))
    splits, ids = {}, {}
    for split in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == split)
        splits[split] = _split(table.take(rows.tolist()), labels[rows], values)
        if sent is not None:
            ids[split] = sent.take(rows)
    n = classes if isinstance(classes, int) else len(classes)
    task = Task("the transcript", tuple(map(str, range(n))), splits, values, f"file: {table.where}")
    scored = frozenset(goal for goal, there in goals.items() if there)
    return ScoringTruth(task, scored, ids, ordered)


def tokens_sent(
    known: ScoringTruth,
    seen: Transcript,
    base: Backbone,
    max_length: int,
    recorded: Training | None = None,
) -> dict[str, Tokens]:
    """The tokens of each split, truncated to the longest example that was sent.

    This reproduces the truncation of the recorded system. If one vector per text was sent, the length is not
    known, and `max_length` is used.

    Args:
        recorded: what a Recorder saw, by which it is known whether texts of a language model begin with BOS.

    Raises:
        LeakboardError: the number of tokens of a text differs from the number that was sent.
    """
    found, opened = {}, known.task.opened
    for split, texts in known.task.splits.items():
        sent = [
            (m.rows, m.lengths)
            for m in seen.messages
            if m.split == split and _is_per_token(m.channel)
        ]
        ragged = [(rows, lengths) for rows, lengths in sent if lengths is not None]
        if not ragged:
            pooled = (m.channel == Channel.ACTIVATIONS for m in seen.messages if m.split == split)
            if any(pooled):
                found[split] = base.encode(texts.texts, texts.pairs, max_length, opened)
            continue
        longest = max(int(lengths.max()) for _, lengths in ragged)
        if split in known.ids:
            tokens = known.ids[split].tokens(base)
            wrong = _first_mismatch(tokens, ragged)
        else:
            for tokens in _encodings(base, texts, longest, opened):
                wrong = _first_mismatch(tokens, ragged)
                if wrong is None and _fits(tokens, recorded):
                    break
        if wrong is not None:
            row, mine, theirs = wrong
            raise LeakboardError(
                f"{known.task.source}: the text of row {row} of {split} has {mine} tokens "
                f"of '{base.name}', but {theirs} were sent. Lines must be in the order of the "
                "transcript's rows, with the texts as they were sent; or give the token ids of each "
                f"row in a column '{IDS}', as a Trainer's data set has them"
            )
        found[split] = tokens
    return found


def check_order(
    known: ScoringTruth,
    seen: Transcript,
    tokens: Mapping[str, Tokens],
    order: Mapping[str, str] | None,
) -> list[str]:
    """Compare the order of the truth's lines with the recording, and say what could not be compared.

    Args:
        tokens: as `tokens_sent` gives them.
        order: by split the digest that a Recorder wrote.

    Raises:
        LeakboardError: the token ids of the truth are not those that were recorded for its rows.
    """
    unchecked = dict[str, None]()
    for split in known.task.splits:
        rows = recorded_rows(seen, split)
        expected = (order or {}).get(split)
        if split in known.ids:
            digest = ids_digest(known.ids[split].take(rows).ids)
        elif split in tokens:
            digest = ids_digest(tokens[split].take(torch.from_numpy(rows)).ids.sequences())
        else:
            unchecked[NO_TEXTS] = None
            continue
        if expected in (None, digest):
            continue
        if split in known.ids:
            raise LeakboardError(
                f"{known.task.source}: the token ids of {split} are not those that were recorded for its rows. Lines must "
                "be in the order of the transcript's rows, with the ids as they were sent"
            )
        unchecked[OTHER_TEXTS] = None
    return [*unchecked]


def _encodings(base: Backbone, texts: Split, longest: int, opened: bool) -> Iterator[Tokens]:
    """Tokens of texts as the harness trains on them, and of a language model as others do: without BOS, with EOS."""
    yield base.encode(texts.texts, texts.pairs, longest, opened)
    if not opened or texts.pairs is not None:
        return
    plain = base.encode(texts.texts, None, longest)
    yield plain
    last = base.tokenizer.eos_token_id
    if last is not None:
        ids = [[*each, last][:longest] for each in plain.ids.sequences()]
        yield SentIds([np.array(each) for each in ids]).tokens(base)


def _fits(tokens: Tokens, recorded: Training | None) -> bool:
    """Whether all texts begin and end with a token only if those that were recorded do."""
    if recorded is None:
        return True
    ids, last = tokens.ids.values, tokens.lengths.cumsum(0) - 1
    ends = ((recorded.begins, ids[tokens.ids.starts]), (recorded.ends, ids[last]))
    return all(len({*own.tolist()}) > 1 or int(own[0]) == expected for expected, own in ends)


def _first_mismatch(
    tokens: Tokens, sent: Sequence[tuple[Ints, Ints]]
) -> tuple[int, int, int] | None:
    """Row, number of tokens and number that was sent, of the first text where they differ."""
    for rows, lengths in sent:
        mine = tokens.lengths[torch.from_numpy(np.array(rows))].numpy()
        if (mine != lengths).any():
            at = int(np.flatnonzero(mine != lengths)[0])
            return int(rows[at]), int(mine[at]), int(lengths[at])
    return None


def _is_per_token(channel: Channel) -> bool:
    """Whether a channel has one entry per token of an example."""
    return channel in (Channel.TOKENS, Channel.REPRESENTATIONS)


def _table(source: Any) -> Table:
    """The truth as a table of text columns."""
    if isinstance(source, str | Path):
        return read_table(Path(source))
    # A DataFrame or a data set, without loading pandas or datasets.
    if hasattr(source, "columns") and hasattr(source, "isna"):
        source = {name: source[name] for name in source.columns}
    elif hasattr(source, "column_names") and not isinstance(source, Mapping):
        source = {name: source[name] for name in source.column_names}
    if not isinstance(source, Mapping):
        raise LeakboardError(
            "truth: expected the path of a table, a pandas DataFrame, a data set or columns by name, got "
            + form(source)
        )
    listed = ((name, as_lists(source[name])) for name in PER_TOKEN if name in source)
    nested = {name: values for name, values in listed if values is not None}
    columns = {
        str(name): _texts(values, f"truth['{name}']")
        for name, values in source.items()
        if name not in nested
    }
    lengths = {name: len(values) for name, values in (columns | nested).items()}
    if len({*lengths.values()}) != 1 or not any(lengths.values()):
        splits = ", ".join(f"{name} {n}" for name, n in lengths.items()) or "none"
        raise LeakboardError(f"truth: expected columns of one length, above 0; got {splits}")
    return Table("the truth", columns, nested)


def _texts(values: Any, name: str) -> list[str]:
    if hasattr(values, "dtype") and form(values).startswith(("int", "uint", "torch.")):
        values = as_ints(values, name).tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise LeakboardError(f"{name}: expected a value per example, got {form(values)}")
    # NaN is not equal to itself; pandas has a separate type for missing values.
    return ["" if v is None or type(v).__name__ == "NAType" or v != v else str(v) for v in values]


def _split(table: Table, labels: Ints, values: dict[str, tuple[str, ...]]) -> Split:
    columns = table.columns
    return Split(
        tuple(columns.get(TEXT, [""] * len(table))),
        labels,
        tuple(columns[SECOND]) if SECOND in columns else None,
        {name: _indices(columns[name], known) for name, known in values.items()},
    )


def _labels(table: Table, classes: int | Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """[n] class numbers, from labels that are numbers or names; and the names that were numbered in sorted order."""
    column, note, names = table.columns[LABEL], "", list[str]()
    n = classes if isinstance(classes, int) else len(classes)
    valid = {str(i): i for i in range(n)}
    if not isinstance(classes, int):
        note = f", or one of {', '.join(classes)}"
        if not {*column} <= valid.keys():
            valid = {name: i for i, name in enumerate(classes)}
    elif "" not in column and not any(map(NUMBER.fullmatch, column)):
        names = sorted({*column})
        if len(names) != n:
            raise LeakboardError(
                f"{table.where}: there are {len(names)} different labels ({', '.join(names)[:80]}), but the transcript "
                f"has {n} classes. Give class numbers, in the order of the logits"
            )
        valid = {name: i for i, name in enumerate(names)}
    for i, label in enumerate(column):
        if label not in valid:
            raise LeakboardError(
                f"{table.where}: the label of row {i} must be a class number from 0 to {n - 1}, in "
                f"the order of the logits{note}; got '{label}'"
            )
    return np.array([valid[label] for label in column], np.int64), tuple(names)


def _indices(column: Sequence[str], values: tuple[str, ...]) -> Ints:
    return np.array([values.index(value) if value else -1 for value in column], np.int64)
