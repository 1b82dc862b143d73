"""Request of an audit: a trained model, and data about its training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.bench.external.audited_texts import TextSource

LONGEST = 512
"""Default of the largest number of tokens of a text."""


@dataclass(frozen=True)
class ModelRequest:
    """The model to audit, and what is known of its training.

    Attributes:
        model: a folder, an adapter of peft, an embedded model, or a hub id; or a model in memory, of transformers or
            of peft.
        members: texts that it was trained on; `others`: texts of the same kind that it was not.
        base: the model from which training started, as `model`. A model of peft in memory has its own.
        public: further texts that it was not trained on, with which RMIA compares.
        secrets: a table of secrets in the training texts.
        coins: whether an independent fair coin decided of each text whether it is a member.
        delta: δ of the bound on ε that coins allow.
        column: the column of the texts; `label`: that of their classes.
        longest: largest number of tokens of a text.
        tokenizer: of models in memory.
    """

    model: Any
    members: TextSource
    others: TextSource
    base: Any = None
    public: TextSource | None = None
    secrets: str | Path | None = None
    coins: bool = False
    delta: float = 1e-5
    column: str = "text"
    label: str = "label"
    longest: int = LONGEST
    seed: int = 0
    tokenizer: Any = None

    @property
    def name(self) -> str:
        """The model, for messages."""
        return self.model if isinstance(self.model, str) else type(self.model).__name__

    @property
    def base_name(self) -> str:
        """The base model, for messages."""
        return self.base if isinstance(self.base, str) else type(self.base or self.model).__name__
