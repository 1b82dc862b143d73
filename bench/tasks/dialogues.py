"""The tasks `dialogues` and `replies`: generated customer service dialogues with known secrets.

Sentences come from the grammar `dialogues.toml`, secrets from Faker with a fixed seed; no real person is quoted.
Other versions of Faker generate other texts, which changes the hash of the task.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leakboard.bench.tasks.reviews import SLOT, Dice
from leakboard.bench.tasks.table import fingerprint
from leakboard.bench.tasks.task import Span, Split, Task

if TYPE_CHECKING:
    from faker import Faker


SEED = 20250311
SIZES = {"train": 2000, "dev": 400, "test": 400, "auxiliary": 2000}
KINDS = {
    kind: kind for kind in ("account", "address", "date", "email", "name", "order", "phone")
} | {"later": "date"}
"""Kind of each secret slot; the day that an agent names differs from the customer's."""
WORDS = range(12, 81)
FIRST_DAY, LAST_DAY = date(2021, 1, 1), date(2025, 12, 31)
SPEAKERS = ("Customer", "Agent")
FIRST_LETTER = re.compile(r"(?:^|(?<=[.?] ))[a-z]")


@cache
def dialogues() -> Task:
    """The task `dialogues`, with the splits train, dev, test and auxiliary; no text occurs twice.

    Each text is a dialogue of two to six turns. `Split.secrets` marks every account number, address, date, e-mail
    address, name, order number and phone number. The auxiliary split shares no secrets and no topics with the
    others.
    """
    # Imported here, since listing tasks should be quick.
    from faker import Faker

    grammar = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("ascii"))
    dice, fake = Dice(SEED), Faker("en_US")
    fake.seed_instance(SEED)
    seen: set[str] = set()
    splits = {}
    for name, size in SIZES.items():
        made: dict[str, tuple[Span, ...]] = {}
        public = name == "auxiliary"
        while len(made) < size:
            text, spans = _filled(_template(grammar, dice, public), Secrets(fake, public))
            if len(text.split()) in WORDS and text not in seen:
                seen.add(text)
                made[text] = spans
        labels = np.zeros(size, dtype=np.int64)
        splits[name] = Split(tuple(made), labels, secrets=tuple(made.values()))
    return Task("dialogues", (), splits, source="generated")


class Secrets(dict[str, str]):
    """The secrets of one dialogue by slot, drawn on first use.

    A hash of each value decides whether it is public or private, so that the two sets are disjoint.
    """

    def __init__(self, fake: Faker, public: bool) -> None:
        super().__init__()
        self.fake, self.public = fake, public

    def __missing__(self, slot: str) -> str:
        value = self._draw(KINDS[slot])
        while bool(fingerprint(value, "public") % 2) != self.public:
            value = self._draw(KINDS[slot])
        self[slot] = value
        return value

    def _draw(self, kind: str) -> str:
        fake = self.fake
        match kind:
            case "account":
                return str(fake.numerify("%#######"))
            case "address":
                street, town = fake.street_address(), fake.city()
                return f"{street}, {town}, {fake.state_abbr(include_territories=False)} {fake.zipcode()}"
            case "date":
                day = fake.date_between(FIRST_DAY, LAST_DAY)
                return f"{day:%B} {day.day}, {day.year}"
            case "email":
                return str(fake.safe_email())
            case "name":
                return f"{fake.first_name()} {fake.last_name()}"
            case "order":
                return str(fake.bothify("??-%#####", letters="ABCDEFGHJKLMNPRSTUVWXYZ"))
            case "phone":
                return str(fake.numerify("%##-%##-####"))
        raise KeyError(kind)


def _template(grammar: dict[str, Any], dice: Dice, public: bool) -> str:
    """The turns of a dialogue with unfilled slots for secrets.

    Args:
        public: whether it is about a topic of the public split.
    """

    def ours(all_: Iterable[str], told: Sequence[str]) -> list[str]:
        return [one for one in all_ if (one in told) == public]

    topic = grammar["topics"][dice.pick(ours(grammar["topics"], grammar["public"]["topics"]))]
    item = dice.pick(ours(grammar["parts"]["item"], grammar["public"]["item"]))
    parts: dict[str, list[str]] = grammar["parts"] | {"item": [item]}
    asked = list(topic["asks"])
    turns: list[str] = []

    def fill(template: str) -> str:
        return SLOT.sub(lambda slot: slot[0] if slot[1] in KINDS else chosen(slot[1]), template)

    def chosen(slot: str) -> str:
        return fill(dice.pick(parts[slot]))

    shape = dice.weighted(list(grammar["shares"]), list(grammar["shares"].values()))
    for part in shape.split("_"):
        if part == "ask":
            exchange = grammar["exchanges"][asked.pop(int(dice.roll() * len(asked)))]
            turn = "{welcome} " + dice.pick(exchange["ask"])
        elif part == "give":
            turn = dice.pick(exchange["give"])
        else:
            turn = dice.pick(topic[part] if part in topic else parts[part])
        turns.append(f"{SPEAKERS[len(turns) % 2]}: {_cased(fill(turn))}")
    return " ".join(turns)


def _cased(turn: str) -> str:
    """Capitalise sentences, and normalise spaces."""
    return FIRST_LETTER.sub(lambda match: match[0].upper(), " ".join(turn.split()))


def _filled(template: str, secrets: Secrets) -> tuple[str, tuple[Span, ...]]:
    """The text with secrets, and their spans."""
    text, spans, done = "", [], 0
    for slot in SLOT.finditer(template):
        text += template[done : slot.start()]
        start = len(text)
        text += secrets[slot[1]]
        spans.append(Span(start, len(text), KINDS[slot[1]]))
        done = slot.end()
    return text + template[done:], tuple(spans)


CUSTOMER, AGENT = (f" {speaker}:" for speaker in SPEAKERS)


@cache
def replies() -> Task:
    """The task `replies`: an agent's last turn (`Split.pairs`, which is learnt) after a dialogue (the prompt).

    Public prompts are those of public dialogues.
    """
    splits = {}
    for name, split in dialogues().splits.items():
        prompts, answers = zip(*map(_split_reply, split.texts), strict=True)
        splits[name] = Split(prompts, np.zeros(len(split), np.int64), answers)
    return Task("replies", (), splits, source="generated")


def _split_reply(dialogue: str) -> tuple[str, str]:
    """The prompt, which ends before the agent's last turn, and the answer."""
    before, _, rest = dialogue.rpartition(AGENT)
    return before + AGENT, rest.split(CUSTOMER)[0].strip()
