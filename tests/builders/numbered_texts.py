"""Texts with nothing to learn but themselves, and numbers in them that detectors mask."""

from __future__ import annotations

import numpy as np
from cells import load_tiny

from leakboard.bench.tasks.task import Split, Task


def numbered(seed: int, n: int = 100) -> Task:
    """Two words at random and three long numbers in each text; public text is of the same kind."""
    vocabulary = load_tiny("tiny-gpt2").tokenizer.get_vocab()
    words = sorted(word for word in vocabulary if word.isalpha())[:300]
    rng = np.random.default_rng(seed)

    def text() -> str:
        one, two, three = rng.integers(10**11, 10**12, 3)
        return f"{' '.join(rng.choice(words, 2))} id {one} {two}, {three}"

    sizes = {"train": n, "dev": 5, "auxiliary": 60}
    splits = {
        name: Split(tuple(text() for _ in range(size)), np.zeros(size, np.int64))
        for name, size in sizes.items()
    }
    return Task("numbered", (), splits)
