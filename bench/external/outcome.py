"""Results of attacks on an external transcript, as JSON for a file, and the table of its messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.table import Table

from leakboard.bench.contracts import (
    Guess,
    Leak,
    LeakboardError,
    Refused,
    grouped,
    parsed,
)
from leakboard.bench.exchange import Manifest
from leakboard.bench.methods import Attack, spec_of

BYTES = {"float32": 4}
"""Bytes of a number; 8 of whole numbers."""


@dataclass(frozen=True)
class Audit:
    """Scores of attacks on a transcript or a trained model, or guesses if the truth is unknown.

    Attributes:
        leaks: score of each attack, or the reason why there is none.
        guesses: attacks with their guesses, if there was no truth to score them.
        cut_short: the error that ended the recording early, or an empty string.
        summary: sentences that explain the scores: what is read, how certain that is, and what to do next.
        strongest: of an audited model the best membership attack, chosen on one half of the texts and measured on the other:
            `attacks` (of each half), and `AUC`, `TPR at 1% FPR` and `TPR at 0.1% FPR` as estimates.
    """

    leaks: tuple[Leak, ...]
    guesses: tuple[tuple[Attack, Guess], ...] = ()
    cut_short: str = ""
    summary: tuple[str, ...] = ()
    strongest: Mapping[str, object] | None = None

    @classmethod
    def read(cls, file: str | Path) -> Self:
        """Reads the scores that `write` wrote, without unscored guesses.

        Raises:
            LeakboardError: the file cannot be read, or has another format.
        """
        wanted = "expected a file of `leakboard attack --out`"
        try:
            content = parsed(Path(file).read_bytes(), "it")
            leaks = tuple(Leak.model_validate(one) for one in content["leaks"])
            summary = tuple(map(str, content.get("summary", ())))
            best = content.get("strongest")
            return cls(leaks, (), str(content["cut_short"]), summary, best)
        except OSError as error:
            raise LeakboardError(f"{file}: cannot be read ({error.strerror}); {wanted}") from error
        except Refused as error:
            raise LeakboardError(f"{file}: {error}; {wanted}") from error
        except (KeyError, TypeError) as error:
            raise LeakboardError(f"{file}: holds no 'leaks'; {wanted}") from error
        except ValidationError as error:
            first = error.errors()[0]
            message = f"leaks: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise LeakboardError(f"{file}: {message}; {wanted}") from error

    def to_json(self) -> str:
        """Everything as one line of JSON, as `write` writes it."""
        content = {
            "cut_short": self.cut_short,
            "summary": self.summary,
            "strongest": self.strongest,
            "leaks": [leak.model_dump(mode="json") for leak in self.leaks],
            "guesses": [
                {"attack": spec_of(attack).model_dump(mode="json")} | _as_json(guess)
                for attack, guess in self.guesses
            ],
        }
        return json.dumps(content, ensure_ascii=False)

    def write(self, file: str | Path) -> Path:
        """Writes everything as JSON, and returns the path.

        Raises:
            LeakboardError: the file cannot be written.
        """
        try:
            Path(file).write_text(self.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise LeakboardError(f"{file}: cannot be written ({error.strerror})") from error
        return Path(file)


def messages_table(manifest: Manifest) -> Table:
    """The messages of a recording by channel and sender: rounds, numbers of a vector, and megabytes."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("channel", "sent by"):
        table.add_column(name, overflow="fold")
    for name in ("rounds", "width", "MB"):
        table.add_column(name, justify="right", no_wrap=True)
    by = grouped(manifest.messages, lambda sent: (sent.channel, sent.sender))
    for (channel, sender), each in by.items():
        rounds = len({(sent.split, sent.round) for sent in each})
        width = each[0].shape[-1] if len(each[0].shape) > 1 else 1
        size = sum(prod(sent.shape) * BYTES.get(sent.dtype, 8) for sent in each) / 1e6
        table.add_row(channel, sender, str(rounds), str(width), f"{size:.1f}")
    return table


def _as_json(guess: Guess) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(guess).items()
    }
