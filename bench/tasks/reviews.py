"""The task `reviews`: generated short reviews whose style depends on the author's gender and age band.

Nothing is downloaded, and no real text is quoted: the grammar is `reviews.toml`, and draws are seeded. Negation,
contrast and comparison prevent a bag of words from solving the sentiment. Gender and age band influence the choice of
words only partly, so that attacks differ in how much they infer.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from leakboard.bench.tasks.task import Split, Task

SEED = 20240817
SIZES = {"train": 6000, "dev": 1000, "test": 1000, "auxiliary": 2000}
LABELS = ("negative", "positive")
ATTRIBUTES = {"gender": ("female", "male"), "age_band": ("18-29", "30-54", "55+")}
AGE_SHARES = (0.35, 0.40, 0.25)

STYLE_SHARE = 0.85
"""Probability that a style slot matches the author's value of an attribute."""
LABEL_NOISE = 0.03
TYPOS = 0.12
"""Share of the texts with two letters swapped."""
WORDS = range(12, 31)

T = TypeVar("T")
SLOT = re.compile(r"\{(\w+)\}")


class Dice:
    """Uniform random draws in a fixed order, generated in blocks for speed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._block: list[float] = []

    def roll(self) -> float:
        if not self._block:
            self._block = self._rng.random(65536).tolist()
        return self._block.pop()

    def pick(self, values: Sequence[T]) -> T:
        return values[int(self.roll() * len(values))]

    def weighted(self, values: Sequence[T], shares: Sequence[float]) -> T:
        left = self.roll() * sum(shares)
        for value, share in zip(values, shares, strict=True):
            left -= share
            if left < 0:
                return value
        return values[-1]


@cache
def reviews() -> Task:
    """The task `reviews`, with the splits train, dev, test and auxiliary; no text occurs twice.

    Labels are negative and positive, about half each. Attributes are independent of the label and of each other:
    `gender` (female, male) and `age_band` (18-29, 30-54, 55+).
    """
    grammar = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("ascii"))
    dice = Dice(SEED)
    seen: set[str] = set()
    splits = {name: _split(size, grammar, dice, seen) for name, size in SIZES.items()}
    return Task("reviews", LABELS, splits, ATTRIBUTES, source="generated")


def _split(size: int, grammar: dict[str, Any], dice: Dice, seen: set[str]) -> Split:
    genders, ages = ATTRIBUTES["gender"], ATTRIBUTES["age_band"]
    texts: list[str] = []
    labels, of_gender, of_age = [], [], []
    while len(texts) < size:
        label = len(texts) % 2
        gender, age = dice.pick(genders), dice.weighted(ages, AGE_SHARES)
        text = _review(grammar, dice, LABELS[label], gender, age)
        if len(text.split()) not in WORDS or text.lower() in seen:
            continue
        seen.add(text.lower())
        texts.append(text)
        labels.append(1 - label if dice.roll() < LABEL_NOISE else label)
        of_gender.append(genders.index(gender))
        of_age.append(ages.index(age))
    # Labels alternate during generation, so rows are shuffled.
    order = np.argsort([dice.roll() for _ in texts], kind="stable")
    attributes = {"gender": np.array(of_gender), "age_band": np.array(of_age)}
    return Split(tuple(texts), np.array(labels), attributes=attributes).take(order)


def _review(grammar: dict[str, Any], dice: Dice, label: str, gender: str, age: str) -> str:
    domain = grammar["domains"][dice.pick(list(grammar["domains"]))]
    opposite = LABELS[1 - LABELS.index(label)]
    words: dict[str, list[str]] = grammar["parts"] | grammar[label] | domain
    words |= {f"un_{slot}": fillers for slot, fillers in grammar[opposite].items()}
    # Half of the adjectives are specific to the domain, half are general.
    words["adj"] = dice.pick([grammar[label]["adj"], domain[label]])
    words["un_adj"] = dice.pick([grammar[opposite]["adj"], domain[opposite]])
    author = {"gender": gender, "age_band": age}

    def fill(template: str) -> str:
        return SLOT.sub(lambda slot: fill(dice.pick(choices(slot[1]))), template)

    def choices(slot: str) -> list[str]:
        if slot not in grammar["style"]["neutral"]:
            return words[slot]
        trait: list[str] = grammar["style"][_trait(dice, author)][slot]
        return trait

    shape = dice.weighted(list(grammar["shares"]), list(grammar["shares"].values()))
    body = fill(dice.pick(grammar["shapes"][shape])).strip()
    text = _cased(body, dice, age) + dice.pick(choices("end"))
    return _misspelt(text, dice) if dice.roll() < TYPOS else text


def _trait(dice: Dice, author: dict[str, str]) -> str:
    """Style of a slot: neutral, or that of a value of one attribute."""
    attribute = dice.pick(["neutral", *author])
    if attribute == "neutral":
        return "neutral"
    own = author[attribute]
    if dice.roll() < STYLE_SHARE:
        return own
    return dice.pick([value for value in ATTRIBUTES[attribute] if value != own])


def _cased(text: str, dice: Dice, age: str) -> str:
    """Capitalise sentences; the youngest authors often omit it."""
    if dice.roll() < (0.5 if age == "18-29" else 0.1):
        return text
    return re.sub(r"^[a-z]|(?<=\. )[a-z]", lambda match: match[0].upper(), text)


def _misspelt(text: str, dice: Dice) -> str:
    words = text.split(" ")
    at = dice.pick([i for i, word in enumerate(words) if word.isalpha() and len(word) > 4] or [0])
    word = words[at]
    cut = 1 + int(dice.roll() * (len(word) - 2))
    words[at] = word[:cut] + word[cut : cut + 2][::-1] + word[cut + 2 :]
    return " ".join(words)
