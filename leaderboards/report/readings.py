"""What is read of each thing where nothing more protects it, in words for somebody who decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan

import pandas as pd

from leakboard.bench.contracts import Channel, Goal
from leakboard.leaderboards.tables import (
    IDLE,
    NOT_SHOWN,
    PROVEN,
    Comparison,
    Range,
    Row,
    Standing,
    standing,
)

SUBJECTS = {
    Goal.INVERSION: "Your texts",
    Goal.LABEL: "Your labels",
    Goal.ATTRIBUTE: "What your texts say of people",
    Goal.MEMORISATION: "Secrets in your texts",
    Goal.MEMBERSHIP: "Who is in your data",
    Goal.MODEL: "The provider's model",
}
"""What attacks look for, in the words of who owns it."""
WAYS = {
    Channel.TOKENS: "the tokens that are sent",
    Channel.REPRESENTATIONS: "the vectors that are sent of each word",
    Channel.ACTIVATIONS: "the activations of the model",
    Channel.RECOMPUTED: "activations that the provider computes again",
    Channel.GRADIENTS: "gradients",
    Channel.LOGIT_GRADIENTS: "gradients of the answers",
    Channel.CUT_GRADIENTS: "gradients of the vectors",
    Channel.ADAPTER_GRADIENTS: "gradients of the adapters",
    Channel.PARAMETERS: "the adapters that are sent",
    Channel.LABELS: "the labels that are sent",
    Channel.LOGITS: "the model's answers",
    Channel.EMULATOR: "what the customer was handed",
    Channel.MODEL: "the model that is handed out",
}
SHARES = {
    "token accuracy": "{} of their tokens are found",
    "accuracy": "{} are guessed right",
    "balanced accuracy": "{} of a class are guessed right, on the mean over classes",
    "matched accuracy": "{} are told apart right",
    "AUC": "of two examples that differ, {} of the pairs are told apart",
    "AUC (sign-free)": "of two examples that differ, {} of the pairs are told apart",
    "TPR at 1% FPR": "{} are found at one false alarm in a hundred",
    "extracted": "{} of the planted ones come out whole",
    "extracted by beam search": "{} of the planted ones come out whole",
}
"""What a share of 1 by each metric says; any other metric is named with its number."""
OPEN = 1 - IDLE
"""Of the privacy that guessing leaves; where no more of it is kept, a thing is as good as read."""


@dataclass(frozen=True)
class Reading:
    """What the strongest attack reads of one thing.

    Attributes:
        subject: the thing, in the words of who owns it.
        chance: what guessing reaches, or the untrained model where that is more.
        kept: of the privacy that guessing leaves: 1 all of it, 0 nothing.
        n: independent examples behind it in a seed.
    """

    goal: Goal
    subject: str
    attack: str
    channel: str
    metric: str
    success: Range
    chance: float
    kept: float
    standing: Standing
    n: int
    seeds: int

    @classmethod
    def of(cls, row: Row, how: Standing, seeds: int) -> Reading:
        """The same of a row of a frame, or of means over seeds."""
        goal, attribute = Goal(row["goal"]), str(row["attribute"])
        floor: float = 0.0 if pd.isna(row["floor"]) else float(row["floor"])
        level = float(row["ep_level"]) or float("nan")
        return cls(
            goal=goal,
            subject=f"{SUBJECTS[goal]}: {attribute}" if attribute else SUBJECTS[goal],
            attack=str(row["attack"]),
            channel=str(row["channel"]),
            metric=str(row["metric"]),
            success=Range(*(float(row[f"success{end}"]) for end in ("", "_low", "_high"))),
            chance=max(float(row["chance"]), floor),
            kept=min(1.0, max(0.0, float(row["ep"]) / level)),
            standing=how,
            n=int(row["n"]),
            seeds=seeds,
        )

    @property
    def clear(self) -> bool:
        """Whether more than guessing is found, with the whole interval."""
        return self.success.low > self.chance

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.standing == NOT_SHOWN:
            return "not shown"
        if not self.clear:
            return "no leak found"
        return (
            "read" if self.kept <= OPEN else "read in part" if self.kept < IDLE else "hardly read"
        )

    @property
    def share(self) -> bool:
        """Whether the success is a share of something, which can be drawn from 0 to 1."""
        return self.metric in SHARES

    @property
    def words(self) -> str:
        """What the number says, with its interval and what guessing reaches."""
        if self.standing == NOT_SHOWN:
            return f"{self.attack} found nothing clear, and is not shown to work here: no number"
        value, low, high = self.success.value, self.success.low, self.success.high
        if not self.share:
            ends = "" if isnan(low) else f" [{low:.2f}, {high:.2f}]"
            return f"{self.metric} of {value:.2f}{ends}; guessing reaches {self.chance:.2f}"
        ends = "" if isnan(low) else f" [{100 * low:.0f}–{100 * high:.0f}]"
        said = SHARES[self.metric].format(f"{100 * value:.0f} %{ends}")
        return f"{said}; guessing reaches {100 * self.chance:.0f} %"

    @property
    def way(self) -> str:
        """By which attack, from what, and on how much."""
        parts = self.channel.split(", ") if self.channel else []
        read = " and ".join(WAYS[Channel(part)] for part in parts) or "nothing that is sent"
        runs = f", {self.seeds} seeds" if self.seeds > 1 else ""
        return f"{self.attack}, from {read} ({self.n:,} examples{runs})"


def unprotected(compared: Sequence[Comparison]) -> list[Reading]:
    """What is read in records where nothing is protected, of each thing that an attack looked for there.

    Of several comparisons the first that has it; of several cells without protection `none`, else
    the one where most is found.
    """
    found: dict[tuple[str, str], Reading] = {}
    for comparison in compared:
        means = comparison.deciding()
        rows = means[means["undefended"] & (means["ep_level"] > 0)]
        plain = rows["defense"] != "none"
        kept = rows["ep"] / rows["ep_level"]
        rows = rows.assign(plain=plain, kept=kept).sort_values(["plain", "kept"], kind="stable")
        for row in rows.to_dict("records"):
            reading = Reading.of(row, standing(row), int(row["n_seeds"]))
            found.setdefault((row["goal"], row["attribute"]), reading)
    return list(_in_order(list(found.values())))


def of_transcript(leaks: pd.DataFrame) -> list[Reading]:
    """What attacks read in a transcript, of each thing the attack that is furthest above guessing.

    Args:
        leaks: as `leakboard.leaderboards.tables.leaks_frame` builds them. Nothing certifies an attack there: what
            finds nothing clear shows nothing.
    """
    rows = leaks.dropna(subset=["success"])
    rows = rows[(rows["channel"] != "") & (rows["ep_level"] > 0)]
    rows = rows.sort_values("advantage", ascending=False, kind="stable")
    first = rows.drop_duplicates(["goal", "attribute"])
    return list(
        _in_order(
            [
                Reading.of(row, PROVEN if row["advantage_low"] > 0 else NOT_SHOWN, 1)
                for row in first.to_dict("records")
            ]
        )
    )


def _in_order(readings: Sequence[Reading]) -> Iterator[Reading]:
    for goal in SUBJECTS:
        yield from (one for one in readings if one.goal == goal)
