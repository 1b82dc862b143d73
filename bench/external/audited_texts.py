"""Files of an audit: texts that a model was trained on, other texts, and secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from leakboard.bench.contracts import LeakboardError, plain
from leakboard.bench.tasks import read_table

TextSource: TypeAlias = "str | Path | Sequence[Any]"
"""The path of a table or of a .txt file, the texts themselves, or pairs of a text and its label."""
FEWEST = 10
"""Smallest number of members, and of other texts: fewer have intervals that say nothing."""


@dataclass(frozen=True)
class AuditedTexts:
    """Texts of one file, each once.

    Attributes:
        where: the file or the argument, for messages.
        places: [n] file and line of each text.
        labels: [n] as they are written; empty if none were asked for.
        note: a sentence about rows that were left out, or an empty string.
    """

    where: str
    texts: tuple[str, ...]
    places: tuple[str, ...]
    labels: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Secret:
    """A listed secret with the text before and after it."""

    before: str
    secret: str
    after: str

    def with_secret(self, other: str) -> str:
        """The text with another secret in its place."""
        return self.before + other + self.after


def read_texts(
    source: TextSource, option: str, column: str = "text", label: str | None = None
) -> AuditedTexts:
    """Read texts; blank ones and repetitions are left out.

    Args:
        option: name of the argument, for messages.
        label: the column of the labels, if the model is a classifier.

    Raises:
        LeakboardError: see `read_table`; no such column, no label, or too few texts.
    """
    if isinstance(source, str | Path):
        given, labels, places, where = _of_file(source, option, column, label)
    else:
        given, labels, where = *_of_list(source, option, label is not None), option
        places = [f"{option}[{i}]" for i in range(len(given))]
    first: dict[str, int] = {}
    blank, again = list[str](), list[str]()
    for row, text in enumerate(given):
        if not text.strip():
            blank.append(places[row])
        elif first.setdefault(text.strip(), row) != row:
            again.append(places[row])
    for row in first.values():
        if labels and not labels[row].strip():
            raise LeakboardError(f"{option}: {places[row]}: the text has no label")
    if len(first) < FEWEST:
        but = f" ({len(blank)} rows are blank)" if blank else ""
        raise LeakboardError(
            f"{option}: {where} holds {len(first)} different texts{but}; at least {FEWEST} are needed"
        )
    notes = [
        f"{len(rows)} {what} rows of {where} are left out, such as {rows[0]}."
        for what, rows in (("blank", blank), ("repeated", again))
        if rows
    ]
    rows = list(first.values())
    return AuditedTexts(
        where,
        tuple(first),
        tuple(places[row] for row in rows),
        tuple(labels[row].strip() for row in rows) if labels else (),
        " ".join(notes),
    )


def _of_file(
    source: str | Path, option: str, column: str, label: str | None
) -> tuple[list[str], list[str], list[str], str]:
    try:
        table = read_table(Path(source))
        given = table.column(column)
    except LeakboardError as error:
        hint = " (--text names the column of the texts)" if "no column" in str(error) else ""
        raise LeakboardError(f"{option}: {error}{hint}") from error
    labels = list[str]()
    if label is not None:
        try:
            labels = table.column(label)
        except LeakboardError as error:
            raise LeakboardError(
                f"{option}: {error} (the model is a classifier, so that each text needs its label; --label names the column)"
            ) from error
    return given, labels, [table.place(row) for row in range(len(table))], str(source)


def _of_list(source: Sequence[Any], option: str, is_labelled: bool) -> tuple[list[str], list[str]]:
    texts, labels = list[str](), list[str]()
    for i, one in enumerate(source):
        if is_labelled and isinstance(one, tuple | list) and len(one) == 2:
            text, label = one
            labels.append(str(label))
        elif is_labelled:
            raise LeakboardError(
                f"{option}[{i}]: expected a pair of a text and its label, since the model is a classifier; got {one!r:.60}"
            )
        else:
            text = one
        if not isinstance(text, str):
            raise LeakboardError(
                f"{option}[{i}]: expected a text, got {type(text).__name__} {text!r:.60}"
            )
        texts.append(text)
    return texts, labels


def check_apart(members: AuditedTexts, others: AuditedTexts, option: str) -> None:
    """Raise LeakboardError if a text is in both files."""
    place_of = dict(zip(members.texts, members.places, strict=True))
    both = [
        (place_of[text], place, text)
        for text, place in zip(others.texts, others.places, strict=True)
        if text in place_of
    ]
    if both:
        a, b, text = both[0]
        raise LeakboardError(
            f"{option}: {b} is also {a}: '{plain(text, 60)}'. {len(both)} texts are in both; remove each from the "
            "file where it does not belong"
        )


def read_secrets(source: str | Path) -> tuple[Secret, ...]:
    """Read a table with the columns `text` and `secret`: the secret stands in its text, behind a beginning.

    Raises:
        LeakboardError: see `read_table`; a column is missing, or a secret does not stand in its text.
    """
    try:
        table = read_table(Path(source))
        rows = list(zip(table.column("text"), table.column("secret"), strict=True))
    except LeakboardError as error:
        raise LeakboardError(
            f"secrets: {error} (expected the columns text and secret: 'My PIN is 4711.' and '4711')"
        ) from error
    found = []
    for row, (text, secret) in enumerate(rows):
        before, there, after = text.partition(secret.strip()) if secret.strip() else (text, "", "")
        if not there:
            raise LeakboardError(
                f"secrets: {table.place(row)}: the secret '{plain(secret, 40)}' does not occur in its text "
                f"'{plain(text, 60)}'; write it exactly as in the text"
            )
        if not before.strip():
            raise LeakboardError(
                f"secrets: {table.place(row)}: the text begins with the secret '{plain(secret, 40)}'. An attacker prompts "
                "the model with the words before a secret; add them to the text"
            )
        found.append(Secret(before, there, after))
    return tuple(found)
