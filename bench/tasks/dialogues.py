"""The task `dialogues`: short talks between a customer and an agent, with secrets whose places are known.

The sentences come from a grammar of our own, `dialogues.toml`, the secrets from Faker with a fixed
seed; nobody real is quoted. Other versions of Faker know other names and so make other texts, which
the hash of the task shows.
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
"""The kind of each slot that is a secret; an agent names another day than the customer did."""
WORDS = range(12, 81)
FIRST_DAY, LAST_DAY = date(2021, 1, 1), date(2025, 12, 31)
SPEAKERS = ("Customer", "Agent")
FIRST_LETTER = re.compile(r"(?:^|(?<=[.?] ))[a-z]")


@cache
def dialogues() -> Task:
    """The task with the splits train, dev, test and auxiliary; no text occurs twice.

    One text is one dialogue of two to six turns in a single line, and `Split.secrets` holds the
    place of every account number, address, date, e-mail address, name, order number and phone
    number. No secret of `auxiliary` is one of another split, and no topic: it is of other companies.
    """
    # Imported here, so that naming the task stays quick.
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
    """The secrets of one dialogue by slot, drawn when first asked for.

    A hash of the value decides whether it is a public or a private one, so that the two never meet.
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
    """The turns of a dialogue, in which only the slots of secrets are still open.

    Args:
        public: about what the public ones are about, and else about the rest.
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
    """Sentences begin with a capital; single spaces."""
    return FIRST_LETTER.sub(lambda match: match[0].upper(), " ".join(turn.split()))


def _filled(template: str, secrets: Secrets) -> tuple[str, tuple[Span, ...]]:
    """The text, and where its secrets stand."""
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
    """The task with the splits train, dev, test and auxiliary; what is learnt is `Split.pairs`."""
    splits = {}
    for name, split in dialogues().splits.items():
        prompts, answers = zip(*map(_split_reply, split.texts), strict=True)
        splits[name] = Split(prompts, np.zeros(len(split), np.int64), answers)
    return Task("replies", (), splits, source="generated")


def _split_reply(dialogue: str) -> tuple[str, str]:
    """The prompt, which ends where the agent is to speak, and the answer."""
    before, _, rest = dialogue.rpartition(AGENT)
    return before + AGENT, rest.split(CUSTOMER)[0].strip()
