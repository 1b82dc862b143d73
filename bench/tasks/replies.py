"""The task `replies`: what an agent answers to a customer, for instruction tuning.

Made of the task `dialogues`: a prompt is a dialogue up to where its agent speaks for the last time, the
answer is what the agent says there. Public prompts are those of public dialogues, about other topics.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from leakboard.bench.tasks.dialogues import SPEAKERS, dialogues
from leakboard.bench.tasks.task import Split, Task

CUSTOMER, AGENT = (f" {speaker}:" for speaker in SPEAKERS)


@cache
def replies() -> Task:
    """The task with the splits train, dev, test and auxiliary; what is learnt is `Split.pairs`."""
    splits = {}
    for name, split in dialogues().splits.items():
        prompts, answers = zip(*map(_parted, split.texts), strict=True)
        splits[name] = Split(prompts, np.zeros(len(split), np.int64), answers)
    return Task("replies", (), splits, source="generated")


def _parted(dialogue: str) -> tuple[str, str]:
    """The prompt, which ends where the agent is to speak, and the answer."""
    before, _, rest = dialogue.rpartition(AGENT)
    return before + AGENT, rest.split(CUSTOMER)[0].strip()
