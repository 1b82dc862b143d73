"""What a suite and a cell set: training, recording, planting."""

from __future__ import annotations

import reprlib
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from leakboard.bench.contracts.parts import Part


def _known(value: Any) -> Any:
    if value in PRECISIONS:
        return value
    # Of the spellings in use, bfloat16 and BF16 among them, those with 16 bits say so.
    near = "bf16" if "16" in str(value) else "float32"
    raise ValueError(
        f"must be 'float32' or 'bf16', got {reprlib.repr(value)}. Did you mean '{near}'?"
    )


PRECISIONS = ("float32", "bf16")
Precision = Annotated[Literal["float32", "bf16"], BeforeValidator(_known)]


class TrainSettings(Part):
    """How the model is fine-tuned: the suite's settings, or those of a row of its own."""

    epochs: int = Field(2, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    warmup: float = Field(0.0, ge=0, lt=1)
    """Share of the steps over which the learning rate rises before it falls linearly to zero."""
    max_grad_norm: float = Field(1.0, gt=0)
    lora_rank: int = Field(8, ge=1)
    lora_alpha: float = Field(16.0, gt=0)
    max_length: int = Field(128, ge=4)
    """Tokens per example, special tokens included; longer texts are cut."""
    tune: Literal["lora", "full", "head"] = "lora"
    """What is trained of a released model: LoRA (and the head of a classifier), all of it, or of a
    classifier the head alone, on features that are computed once, without dropout."""
    precision: Precision = "float32"
    """In which the model computes while it is fine-tuned and while the vendor answers with it: bf16 is
    bfloat16 by autocast, on a CPU as on a GPU. What is trained, the optimiser, the losses, what is
    sent, noise and attacks (but for those with a precision of their own) stay in float32; so does the
    training of P³EFT, whose split gradients add up in no less."""


class Recording(Part):
    """What of the transcript is kept for the attacks; bytes are counted in full all the same."""

    examples: int = Field(1000, ge=1)
    """Examples of each split whose messages are kept, the same ones in every round."""
    megabytes: int = Field(2048, ge=1)
    """Upper bound of a transcript; what exceeds it is dropped and flagged. Beyond the first 256 of
    them it lies on disk."""


class Plant(Part):
    """What is planted in the training texts, to see what the released model remembers of them."""

    canaries: tuple[str, ...] = ()
    """Sentences in which {digits} stands for a secret of six random digits: 'My ID is {digits}.'"""
    copies: tuple[int, ...] = (1, 10, 100)
    """How often a canary is repeated; there are `each` canaries of every sentence and number. A suite
    trains a model of its own for each number, of which 0 may be one."""
    each: int = Field(1, ge=1)
    unseen: int = Field(100, ge=0)
    """Secrets of each sentence that are drawn but not planted: the level of what was never seen."""
    audit: int = Field(0, ge=0)
    """Training examples for each of which a fair coin decides whether the model is trained on it."""
    candidates: Literal["natural", "strange"] = "natural"
    """On whom the coins of `audit` fall. `natural`: on training examples of the task. `strange`: on canaries beside these,
    short texts of words that stand nowhere in the task, with labels by chance where it has any: nothing but
    memory tells them."""
    per_author: int | None = Field(None, ge=1)
    """At most so many examples of each author are trained on, and the coins of `audit` fall for authors: what is
    promised of one example is then promised of one author, as many times weaker. For tasks that say who
    wrote each text, such as synthpai."""

    @property
    def planting(self) -> bool:
        """Whether canaries come to stand among the texts."""
        return bool(self.canaries) and any(self.copies)

    @field_validator("canaries", "copies", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return value if isinstance(value, list | tuple) else (value,)

    @field_validator("canaries")
    @classmethod
    def _has_a_place(cls, forms: tuple[str, ...]) -> tuple[str, ...]:
        for form in forms:
            if form.count("{digits}") != 1:
                raise ValueError(f"'{form}' must hold {{digits}} once, where the secret stands")
        return forms

    @field_validator("copies")
    @classmethod
    def _counts(cls, copies: tuple[int, ...]) -> tuple[int, ...]:
        if min(copies, default=-1) < 0:
            raise ValueError("must be at least one number, of 0 or more")
        if len(set(copies)) < len(copies):
            raise ValueError(f"must be different numbers, not {list(copies)}")
        return copies

    @model_validator(mode="after")
    def _has_coins(self) -> Plant:
        if self.candidates == "strange" and (not self.audit or self.per_author is not None):
            raise ValueError(
                "candidates: strange are as many as `audit` says, and nobody wrote them: give audit, and no per_author"
            )
        return self


Objective = Literal["classification", "language modelling"]
Head = Literal["vendor", "customer", "private"]
"""Who holds the output layer of a language model that is fine-tuned over the wire: the public one, which stays as
it is, stands at the vendor's or at the customer's; a private one is the customer's, who tunes it and tells nobody."""
