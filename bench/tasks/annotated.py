"""Texts with marked secrets, on which detectors are measured: two corpora, and users' files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.tasks.loading import VARIABLE, data_folder
from leakboard.bench.tasks.readers import read_table
from leakboard.bench.tasks.table import Table
from leakboard.bench.tasks.task import Span, Split, Task, check_spans
from leakboard.bench.tasks.user_data import read_folder

TEXT, SPANS = "text", "spans"
"""Columns of a user's file."""
FILE = "file"
"""Name of the only split of a user's file."""


class _Marked(BaseModel):
    start: int
    end: int
    kind: str = Field(validation_alias=AliasChoices("kind", "type"))


_MARKED = TypeAdapter(list[_Marked])
Marks = Sequence[Sequence[Span]]


def load_annotated(name: str, data: Path | None = None) -> Task:
    """Load one of `ANNOTATED` from the folder of datasets.

    Raises:
        LeakboardError: there is no such folder, or its files are wrong.
    """
    folder = data_folder(data)
    if folder is None or not (folder / name).is_dir():
        raise LeakboardError(
            f"no folder '{name}' with train.tsv and dev.tsv; name its parent folder with --data or "
            f"{VARIABLE}"
        )
    tables = read_folder(folder / name)
    splits = {split: _split(table, ANNOTATED[name](table)) for split, table in tables.items()}
    return Task(name, (), splits, source=f"folder: {folder / name}")


def load_file(path: Path) -> Task:
    """Load a user's texts as the split `file`.

    The file has a column `text` and, if secrets are marked, a column `spans`: JSON lists of
    {"start", "end", "kind"} in characters; an empty field means no secret.

    Raises:
        LeakboardError: see `read_table`; a column is missing, or spans are wrong.
    """
    table = read_table(path)
    marks = _from_json(table, SPANS) if SPANS in table.columns else None
    return Task(path.name, (), {FILE: _split(table, marks)}, source=f"file: {path}")


def _split(table: Table, marks: Marks | None) -> Split:
    texts = tuple(table.column(TEXT))
    if marks is not None:
        check_spans(texts, marks, table.where)
        marks = tuple(_sorted_spans(table, row, own) for row, own in enumerate(marks, start=1))
    return Split(texts, np.zeros(len(texts), np.int64), secrets=marks)


def _sorted_spans(table: Table, row: int, spans: Sequence[Span]) -> tuple[Span, ...]:
    ordered = tuple(sorted(spans, key=lambda span: span.start))
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise LeakboardError(
                f"{table.where}, data row {row}: the spans [{before.start}, {before.end}) and "
                f"[{after.start}, {after.end}) overlap; expected spans that do not overlap"
            )
    return ordered


def _from_json(table: Table, column: str) -> list[list[Span]]:
    found = []
    for row, field in enumerate(table.column(column), start=1):
        try:
            marked = _MARKED.validate_json(field or "[]")
        except ValidationError as error:
            raise LeakboardError(
                f"{table.where}, data row {row}: column '{column}' must be a JSON list of "
                f'{{"start", "end", "kind"}}, got {field[:80]!r}'
            ) from error
        found.append([Span(m.start, m.end, m.kind.lower()) for m in marked])
    return found


def _from_tags(table: Table) -> list[list[Span]]:
    """Spans from B-, I- and O-tags, one for each word of a text."""
    found = []
    rows = zip(table.column(TEXT), table.column("label"), strict=True)
    for row, (text, tags) in enumerate(rows, start=1):
        words, named = text.split(" "), tags.split(" ")
        if len(words) != len(named):
            raise LeakboardError(
                f"{table.where}, data row {row}: {len(named)} tags for {len(words)} words"
            )
        spans: list[Span] = []
        at, inside = 0, ""
        for word, tag in zip(words, named, strict=True):
            position, _, kind = tag.lower().partition("-")
            if kind and position == "i" and kind == inside:
                spans[-1] = Span(spans[-1].start, at + len(word), kind)
            elif kind:
                # An I- tag without B- also starts a span, as in the shared task's scoring.
                spans.append(Span(at, at + len(word), kind))
            at, inside = at + len(word) + 1, kind
        found.append(spans)
    return found


ANNOTATED: dict[str, Callable[[Table], list[list[Span]]]] = {
    "presidio_synth": lambda table: _from_json(table, "label"),
    "wnut17": _from_tags,
}
