"""Small tasks whose targets are numbers or sets of labels."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from leakboard.bench.tasks import UserTask


@cache
def task(objective: str) -> UserTask:
    """[120] texts with a number, or with any of three labels."""
    rng = np.random.default_rng(0)
    words = ["order", "room", "agent", "good", "bad", "today", "number", "call"]
    texts = [f"{' '.join(rng.choice(words, 6))} {i}" for i in range(120)]
    labels = [[w for w in ("good", "bad", "call") if w in text] for text in texts]
    if objective == "regression":
        labels = [text.count("good") - text.count("bad") + 0.5 for text in texts]
    frame = pd.DataFrame({"text": texts, "label": labels, "sex": ["f", "m", "m"] * 40})
    return UserTask(name="mine", path=frame, objective=objective, attributes=("sex",))
