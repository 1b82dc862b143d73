"""Validation of a transcript from another system: the shapes and types on which attacks rely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakboard.bench.contracts import (
    Channel,
    Ints,
    LeakboardError,
    Message,
    Transcript,
    as_ints,
    as_numbers,
    form,
)

PER_CALL = {
    Channel.PARAMETERS,
    Channel.ADAPTER_GRADIENTS,
    Channel.EMULATOR,
    Channel.MODEL,
}
"""Channels with one vector for all rows of a message."""
PER_TOKEN = {Channel.TOKENS, Channel.REPRESENTATIONS, Channel.CUT_GRADIENTS}
INTEGER_CHANNELS = {Channel.TOKENS, Channel.LABELS}
"""Channels of integers; the others carry vectors."""


def as_arrays(transcript: Transcript, where: str) -> Transcript:
    """Converts a transcript of lists, tensors or other number types to NumPy arrays.

    Args:
        where: name of the transcript, for error messages.

    Raises:
        LeakboardError: values are not arrays of numbers, or rows or lengths have the wrong shape.
    """
    messages = []
    for i, m in enumerate(transcript.messages):
        try:
            rows, values = as_ints(m.rows, "rows", least=0), as_numbers(m.values, "values")
            lengths = m.lengths
            if lengths is not None:
                lengths = as_ints(lengths, "lengths", length=len(rows), least=1)
        except LeakboardError as error:
            raise LeakboardError(_about(i, m, where) + str(error)) from error
        same = rows is m.rows and values is m.values and lengths is m.lengths
        messages.append(m if same else replace(m, rows=rows, values=values, lengths=lengths))
    return Transcript(tuple(messages), transcript.dropped)


def check(
    transcript: Transcript, vocabulary: int | None, width: int | None, where: str
) -> dict[str, Ints]:
    """Checks all messages; returns the sorted rows of each split that are recorded in every round.

    Args:
        transcript: the result of `as_arrays`.
        vocabulary: number of token ids, if known.
        width: dimension of the vectors at the cut, if known.
        where: name of the transcript, for error messages.

    Raises:
        LeakboardError: wrong shapes or types, or rounds with different rows.
    """
    sent: dict[tuple[str, int, int, str, Channel], list[Ints]] = {}
    for i, m in enumerate(transcript.messages):
        wrong = _rows(m) or (m.channel not in PER_CALL and _values(m, vocabulary, width))
        if wrong:
            raise LeakboardError(_about(i, m, where) + wrong)
        if m.moment is None:
            group = (m.split, m.round, m.part, m.recipient, m.channel)
            sent.setdefault(group, []).append(m.rows)
    rows: dict[str, Ints] = {}
    for split in dict.fromkeys(group[0] for group in sent):
        parts = [part for group, each in sent.items() if group[0] == split for part in each]
        rows[split] = np.unique(np.concatenate(parts))
    shared: dict[tuple[str, int, int, Channel], list[Ints]] = {}
    for (split, round, part, _, channel), parts in sent.items():
        shared.setdefault((split, round, part, channel), []).extend(parts)
    for (split, round, part, recipient, channel), parts in sent.items():
        # Each recipient sees all rows, or the recipients take turns and see all rows between them.
        every = (parts, shared[split, round, part, channel])
        found = np.sort(np.concatenate(parts))
        whole = any(np.array_equal(np.sort(np.concatenate(seen)), rows[split]) for seen in every)
        if channel not in transcript.dropped and not whole:
            raise LeakboardError(
                f"{where}: {channel} of {split}, round {round}, part {part}, to {recipient}: each of "
                f"the {len(rows[split])} recorded examples must occur once, as in every other "
                f"round; there are {len(np.unique(found))} in {len(found)} rows"
            )
    return rows


def _about(i: int, m: Message, where: str) -> str:
    return f"{where}: message {i} ({m.channel} of {m.split}): "


def _rows(m: Message) -> str:
    """Error in the rows or in the type of the values, or an empty string."""
    if not len(m.rows) or len(np.unique(m.rows)) < len(m.rows):
        return "rows must be different whole numbers from 0, at least one"
    if m.values.dtype.kind not in "iub" and m.values.dtype != np.float32:
        return f"values must be float32 or whole numbers, got {m.values.dtype}"
    return ""


def _values(m: Message, vocabulary: int | None, width: int | None) -> str:
    """Error in the values of a channel with one row per token or example, or an empty string."""
    if m.channel in PER_TOKEN and m.lengths is None:
        return "expected lengths, the number of tokens of each example"
    if m.lengths is not None and m.lengths.max() > len(m.values):  # their sum might overflow
        return f"lengths must be at most the {len(m.values)} values, got {m.lengths.max()}"
    entries = len(m.rows) if m.lengths is None else int(m.lengths.sum())
    is_integer = m.channel in INTEGER_CHANNELS
    expected = f"{'int64' if is_integer else 'float32'} [{entries}{'' if is_integer else ', d'}]"
    fits = (
        m.values.ndim == (1 if is_integer else 2) and len(m.values) == entries and m.values.size > 0
    )
    if not fits or (m.values.dtype.kind in "iu") != is_integer:
        return f"values must be {expected}, got {form(m.values)}"
    if m.channel == Channel.LABELS and m.values.min() < 0:
        return f"labels count from 0, got {m.values.min()}"
    if m.channel == Channel.TOKENS and (
        m.values.min() < 0 or (vocabulary and m.values.max() >= vocabulary)
    ):
        return "token ids must be from 0" + (f" to {vocabulary - 1}" if vocabulary else "")
    if m.channel == Channel.REPRESENTATIONS and width not in (None, m.values.shape[1]):
        return f"vectors of this model have {width} numbers, got {form(m.values)}"
    return ""
