"""Files of an audit: texts that a model was trained on, other texts, and secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from leakboard.bench.contracts import LeakboardError, plain
from leakboard.bench.tasks import read_table

TextSource: TypeAlias = "str | Path | Sequence[str]"
"""The path of a table or of a .txt file, or the texts themselves."""
FEWEST = 10
"""Smallest number of members, and of other texts: fewer have intervals that say nothing."""


@dataclass(frozen=True)
class AuditedTexts:
    """Texts of one file, each once.

    Attributes:
        where: the file or the argument, for messages.
        rows: [n] the row of each text in it, from 1.
        note: a sentence about rows that were left out, or an empty string.
    """

    where: str
    texts: tuple[str, ...]
    rows: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True)
class Secret:
    """A listed secret in its text: what stands before it, itself, and what follows."""

    before: str
    secret: str
    after: str

    def with_secret(self, other: str) -> str:
        """The text with another secret in its place."""
        return self.before + other + self.after


def read_texts(
    source: TextSource, option: str, column: str = "text", fewest: int = FEWEST
) -> AuditedTexts:
    """Read texts; blank ones and repetitions are left out.

    Args:
        option: name of the argument, for messages.

    Raises:
        LeakboardError: see `read_table`; no such column, or too few texts.
    """
    if isinstance(source, str | Path):
        try:
            given = read_table(Path(source)).column(column)
        except LeakboardError as error:
            hint = " (--text names the column of the texts)" if "no column" in str(error) else ""
            raise LeakboardError(f"{option}: {error}{hint}") from error
        where = str(source)
    else:
        given, where = list(source), option
        for i, text in enumerate(given):
            if not isinstance(text, str):
                raise LeakboardError(
                    f"{option}[{i}]: expected a text, got {type(text).__name__} {text!r:.60}"
                )
    first: dict[str, int] = {}
    blank = 0
    for row, text in enumerate(given, start=1):
        if text.strip():
            first.setdefault(text.strip(), row)
        else:
            blank += 1
    if len(first) < fewest:
        raise LeakboardError(
            f"{option}: {where} holds {len(first)} different texts; at least {fewest} are needed"
        )
    again = len(given) - blank - len(first)
    left_out = [f"{blank} blank" if blank else "", f"{again} repeated" if again else ""]
    told = " and ".join(filter(None, left_out))
    note = f"{where}: {told} rows are left out." if told else ""
    return AuditedTexts(where, tuple(first), tuple(first.values()), note)


def check_apart(members: AuditedTexts, others: AuditedTexts, option: str) -> None:
    """Raise LeakboardError if a text stands in both files."""
    row_of = dict(zip(members.texts, members.rows, strict=True))
    both = [
        (row_of[text], row, text)
        for text, row in zip(others.texts, others.rows, strict=True)
        if text in row_of
    ]
    if both:
        a, b, text = both[0]
        raise LeakboardError(
            f"{option}: row {b} of {others.where} is row {a} of {members.where}, too: '{plain(text, 60)}'. "
            f"{len(both)} texts stand in both; remove each from the file where it does not belong"
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
    for row, (text, secret) in enumerate(rows, start=1):
        before, there, after = text.partition(secret.strip()) if secret.strip() else (text, "", "")
        if not there:
            raise LeakboardError(
                f"secrets: {source}, row {row}: the secret '{plain(secret, 40)}' does not stand in its text "
                f"'{plain(text, 60)}'; write it as it stands there"
            )
        if not before.strip():
            raise LeakboardError(
                f"secrets: {source}, row {row}: the text begins with the secret '{plain(secret, 40)}'. An attacker prompts "
                "the model with what stands before a secret; add that to the text"
            )
        found.append(Secret(before, there, after))
    return tuple(found)
