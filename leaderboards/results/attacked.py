"""Results of attacks on a transcript, or on a trained model, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from leakboard.bench.contracts import Guess, Leak
from leakboard.bench.external import Audit
from leakboard.bench.methods import Attack
from leakboard.leaderboards.tables import leaks_frame

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType


class Attacked:
    """What attacks made of a transcript: scores and reasons, or guesses where there is no truth.

    Attributes:
        leaks: what each attack found, or why it found nothing.
        guesses: each attack with what it guesses, where nothing was there to score it by.
    """

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    @classmethod
    def read(cls, file: str | Path) -> Self:
        """The scores that `write` wrote; guesses that nothing scored are left out.

        Raises:
            LeakboardError: there is no such file, or it holds something else.
        """
        return cls(Audit.read(Path(file)))

    @property
    def cut_short(self) -> str:
        """The error that ended the recording before its time, or nothing."""
        return self._audit.cut_short

    @property
    def summary(self) -> tuple[str, ...]:
        """Sentences that say what the scores mean; empty for a transcript."""
        return tuple(self._audit.summary)

    @property
    def strongest(self) -> dict[str, Any] | None:
        """Of an audited model the best membership attack, chosen on one half of the texts and measured on the other.

        `attacks` names the choice of each half; `AUC` and both true positive rates are estimates. None for a transcript.
        """
        return self._audit.strongest

    @property
    def leaks(self) -> tuple[Leak, ...]:
        return tuple(self._audit.leaks)

    @property
    def guesses(self) -> tuple[tuple[Attack, Guess], ...]:
        return tuple(self._audit.guesses)

    def frame(self) -> pd.DataFrame:
        """One row per leak, with those columns of `Results.frame` that it decides."""
        return leaks_frame(self.leaks)

    def best(self) -> pd.DataFrame:
        """For each goal, attribute and view the attack with the largest advantage over guessing.

        Attacks that read nothing are left out: they only guess. `is_clear` says whether the whole interval of success
        lies above the baseline. Without an undefended twin, a result that is not clear is no evidence of privacy.
        """
        rows = self.frame().dropna(subset=["success"])
        rows = rows[rows["channel"] != ""].sort_values("advantage", ascending=False, kind="stable")
        first = rows.drop_duplicates(["goal", "attribute", "view"]).sort_index()
        shown = ["goal", "attribute", "view", "attack", "channel", "metric"]
        numbers = ["success", "success_low", "success_high", "chance", "is_clear"]
        first = first.assign(is_clear=first["advantage_low"] > 0)
        return first[[*shown, *numbers]].reset_index(drop=True)

    def tables(self) -> Iterator[RenderableType]:
        """The scores, highest advantage first, and why the rest was not scored, for a terminal."""
        return self._audit.tables()

    def to_json(self) -> str:
        """Everything as one line of JSON, as `write` writes it."""
        return self._audit.as_json()

    def write(self, file: str | Path) -> Path:
        """Writes everything as JSON, and returns the path.

        Raises:
            LeakboardError: the file cannot be written.
        """
        self._audit.write(Path(file))
        return Path(file)

    def __repr__(self) -> str:
        told = (
            f"{len(self.guesses)} guesses" if self.guesses else self.best().to_string(index=False)
        )
        return f"<Attacked: {len(self.leaks)} leaks>\n{told}"
