"""What an attack says, and how it wants to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.contracts.arrays import Ints, as_ints, as_numbers
from leakboard.bench.contracts.channels import Channel
from leakboard.bench.contracts.threat import Goal

Measure = Literal[
    "accuracy",
    "bag",
    "balanced accuracy",
    "auc",
    "matching",
    "exposure",
    "extraction",
    "beam extraction",
    "sampled extraction",
    "continuation",
    "membership",
]


@dataclass(frozen=True)
class Guess:
    """What an attack says, one entry per example, or per token where `lengths` is given.

    A guess about a label may be of three measures: the class itself; a number that ranks the
    examples, in either direction (AUC); or a cluster, whatever its class (matching). Guesses from
    what was sent at several moments, in several parts or to several recipients are scored together:
    the worst one and the last one count.

    A guess about an inversion may be a bag: the token ids that a text may hold, the likeliest first ([n, R],
    each once), whatever their order in the text. As many of them count as the text has different tokens.

    A guess about a canary is about its sentence, a row of `Knowledge.canaries`: for each of all
    possible secrets how unlikely the model finds it (exposure, [n, 10^6]), or what it prints there
    (extraction, [n, R] numbers that the digits spell, −1 for none; R at most `leakboard.bench.tasks.planting.TRIES`,
    and `SAMPLES` of random ones, whose shares decide). A continuation is about a row of `Knowledge.prompts`: the token
    ids that follow it ([n, 1 + R, L], the likeliest text first, then random ones; see `leakboard.bench.tasks.planting.CONTINUED`). A
    guess about membership ranks the rows of `Knowledge.candidates`: larger for those that were trained on.

    `rows`, `values` and `lengths` may be given as lists, NumPy arrays or torch tensors; they are NumPy
    arrays afterwards, whole numbers as int64.

    Attributes:
        rows: [n] the examples guessed about.
        values: [n] for one guess per example, real numbers only where they rank; [T, R] for R candidates per token, of which any
            may be right (the union over R observations); chance accounts for R.
        view: tells the guesses of one attack apart, such as the split they are about.
        bound: the largest success that the guarantee of the mechanism leaves to who knows as much.
    """

    goal: Goal
    channel: Channel | None
    split: str
    rows: Ints
    values: NDArray[Any]
    lengths: Ints | None = None
    attribute: str | None = None
    view: str = ""
    measure: Measure = "accuracy"
    moment: int | None = None
    round: int = 0
    part: int = 0
    recipient: str | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        # An attack may compute with what it likes; scoring computes with NumPy.
        values = as_numbers(self.values, "Guess.values")
        if values.dtype.kind in "iu":
            values = values.astype(np.int64, copy=False)
        lengths = None if self.lengths is None else as_ints(self.lengths, "Guess.lengths")
        rows = as_ints(self.rows, "Guess.rows")
        for name, taken in (("rows", rows), ("values", values), ("lengths", lengths)):
            object.__setattr__(self, name, taken)
