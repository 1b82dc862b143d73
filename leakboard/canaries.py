"""Canaries around a training of the Trainer, or of any loop: planted before, audited after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.external import (
    CanaryReadings,
    CanarySet,
    audit_canaries,
    batches_of,
    check_visible,
    plant_file,
    plant_rows,
    read_canaries,
)
from leakboard.leaderboards.results import Attacked

Rows = TypeVar("Rows")


class Canaries(TrainerCallback):  # type: ignore[misc]
    """Plant sentences with random digits in a training set, and measure after the training what the model kept of them.

    A fair coin decides for each canary whether it is planted; the others are held out. So their ranks give an exposure, and
    one training gives a lower bound on ε (Steinke et al. 2023). Before the first batch it is checked that collators,
    truncation and label masks leave the canaries in what the loss sees. In a loop without the Trainer, call `check`,
    `before` and `audit`.

    Args:
        n: number of canaries, at least 16.
        copies: of each planted one. With several, the bound on ε is about a canary with all its copies.
        form: the sentence; `{digits}` stands for the six digits.
        delta: δ of the bound on ε.
        seed: of the digits, the coins and the places. Whoever knows it knows the secrets.
        check: False leaves out the check before the first batch, and the result says so.

    Attributes:
        result: scores and sentences of the audit once the training has ended, otherwise None.

    Raises:
        LeakboardError: an argument is out of its range.

    Examples:
        >>> import leakboard as lb
        >>> canaries = lb.Canaries(n=20)
        >>> texts = canaries.plant(["A text."] * 100)
        >>> trainer = Trainer(model, train_dataset=tokenized(texts), callbacks=[canaries])  # doctest: +SKIP
        >>> trainer.train(); canaries.result.summary  # doctest: +SKIP
    """

    def __init__(
        self,
        n: int = 20,
        *,
        copies: int = 1,
        form: str = "My ID is {digits}.",
        delta: float = 1e-5,
        seed: int = 0,
        check: bool = True,
    ) -> None:
        if not 0 <= delta < 1:
            raise LeakboardError(f"delta: expected a number in [0, 1), not {delta}")
        self.drawn = CanarySet.draw(n, copies, form, seed)
        self.delta = delta
        self.result: Attacked | None = None
        self._check, self._checked = check, False
        self._before: CanaryReadings | None = None

    @overload
    def plant(
        self, data: str | Path, to: str | Path | None = None, *, column: str | None = None
    ) -> Path: ...

    @overload
    def plant(
        self, data: Rows, to: str | Path | None = None, *, column: str | None = None
    ) -> Rows: ...

    def plant(
        self, data: Rows | str | Path, to: str | Path | None = None, *, column: str | None = None
    ) -> Rows | Path:
        """The training set with planted canaries, at random places.

        Args:
            data: a `datasets.Dataset`, a list of texts or records, or the path of a .txt, .csv, .tsv or .jsonl file.
            to: of a file, where the copy is written (default: NAME-canaries beside it).
            column: the column of the texts (default: text, completion or messages). In chats the last answer is replaced.

        Returns:
            The same type; of a file the path of the copy.

        Raises:
            LeakboardError: the data cannot be read, or have no such column.
        """
        if isinstance(data, str | Path):
            return Path(plant_file(self.drawn, data, to, column))
        return cast("Rows", plant_rows(self.drawn, data, column))

    def check(self, batches: Iterable[Mapping[str, object]], tokenizer: object) -> None:
        """Raise LeakboardError, with the remedy, if planted canaries are missing from what the loss sees.

        Args:
            batches: with `input_ids` and `labels` [B, L]; all of one epoch, or as many as hold the canaries.
        """
        check_visible(self.drawn, batches, tokenizer)
        self._checked = True

    def before(self, model: object, tokenizer: object) -> None:
        """Read the canaries by the model before its training."""
        self._before = read_canaries(self.drawn, model, tokenizer)

    def audit(self, model: object, tokenizer: object) -> Attacked:
        """Read the canaries by the trained model, and compare with `before`.

        Raises:
            LeakboardError: `before` or `check` was not called, or the model is no causal language model that can be read.
        """
        if self._before is None:
            raise LeakboardError(
                "canaries: call before(model, tokenizer) ahead of the training, with which the audit compares"
            )
        if self._check and not self._checked:
            raise LeakboardError(
                "canaries: call check(batches, tokenizer), which shows that the training sees what `plant` returned; or "
                "choose Canaries(check=False)"
            )
        after = read_canaries(self.drawn, model, tokenizer)
        found = audit_canaries(self.drawn, self._before, after, self.delta, self._checked)
        self.result = Attacked.of(found)
        return self.result

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Called by the Trainer: checks the batches, and reads the canaries."""
        tokenizer = self._tokenizer(given)
        if self._check:
            self.check(batches_of(given["train_dataloader"]), tokenizer)
        self.before(given["model"], tokenizer)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Called by the Trainer: audits, and prints the sentences of the result."""
        found = self.audit(given["model"], self._tokenizer(given))
        if state.is_world_process_zero:
            print(*found.summary, sep="\n")

    def _tokenizer(self, given: Mapping[str, Any]) -> Any:
        tokenizer = given.get("processing_class") or given.get("tokenizer")
        if tokenizer is None:
            raise LeakboardError(
                "canaries: the Trainer has no tokeniser; give it one: Trainer(…, processing_class=tokenizer)"
            )
        return tokenizer
