"""Chats: conversations as prompts and answers, of which the answers are trained on.

A task stores a prompt as one text with a mark before each message, `<|user|> … <|assistant|>`. The marks are replaced
by the chat template of the tokeniser, or by `User: … Assistant:` if it has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.bench.contracts import LeakboardError, did_you_mean, plain
from leakboard.bench.tasks.table import Table
from leakboard.bench.tasks.values import ENTRIES

PROMPT, ANSWER, OPENING = "<prompt>", "<answer>", "<opening>"
"""Columns of a table of chats: prompt, answer, and the first prompt of the conversation."""
MESSAGES = ("messages", "conversations", "conversation")
PAIRS = (("prompt", "completion"), ("prompt", "response"), ("instruction", "output"))
INPUT = "input"
"""Column of what an instruction is about, in the format of Alpaca."""
ROLES = {
    **{role: role for role in ("system", "user", "assistant", "tool")},
    "developer": "system",
    "human": "user",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function": "tool",
    "ipython": "tool",
}
"""Roles in files → roles in prompts."""
MARK = re.compile(r"<\|(system|user|assistant|tool)\|>")
END = "<|assistant|>"
"""End of a prompt, before the answer."""


@dataclass(frozen=True)
class Message:
    """A message of a conversation."""

    role: str
    content: str

    def __str__(self) -> str:
        return f"<|{self.role}|> {self.content}"


def chat_columns(table: Table) -> tuple[str, ...] | None:
    """The column of messages, or the columns of prompts and completions; None if there are none."""
    for name in MESSAGES:
        if name in table.nested:
            return (name,)
    return next((pair for pair in PAIRS if set(pair) <= set(table.names)), None)


def chat_table(table: Table, columns: tuple[str, ...]) -> Table:
    """Build a row for each answer of the assistant; the messages before it are its prompt.

    Raises:
        LeakboardError: a row is not a conversation, or has no answer.
    """
    rows, prompts, answers, openings = list[int](), list[str](), list[str](), list[str]()
    for row in range(len(table)):
        where = table.place(row)
        messages = _conversation(table, columns, row, where)
        opening = ""
        for prompt, answer in _answers(messages):
            opening = opening or prompt
            rows.append(row)
            prompts.append(prompt)
            answers.append(answer)
            openings.append(opening)
        if not opening:
            raise LeakboardError(
                f"{where}: no message of the role 'assistant' after one of the role 'user', so there is no "
                "answer to train on"
            )
    return table.take(rows).with_columns({PROMPT: prompts, ANSWER: answers, OPENING: openings})


def _answers(messages: Sequence[tuple[Message, bool]]) -> Iterator[tuple[str, str]]:
    for at, (message, learnt) in enumerate(messages):
        before = [earlier for earlier, _ in messages[:at]]
        if message.role == "assistant" and learnt and any(m.role == "user" for m in before):
            yield " ".join([*map(str, before), END]), message.content


def _conversation(
    table: Table, columns: tuple[str, ...], row: int, where: str
) -> list[tuple[Message, bool]]:
    """The messages of a row, with True for those that are trained on."""
    if len(columns) == 1:
        return _messages(table.nested[columns[0]][row], columns[0], where)
    found = []
    for name, role in zip(columns, ("user", "assistant"), strict=True):
        value = (table.nested if name in table.nested else table.columns)[name][row]
        if isinstance(value, list):
            found += _messages(value, name, where)
        else:
            about = (
                table.columns.get(INPUT, [""] * len(table))[row] if name == "instruction" else ""
            )
            text = _content(value, name, where)
            text = f"{text} {_content(about, INPUT, where)}" if about.strip() else text
            found.append((Message(role, text), True))
    return found


def _messages(value: Any, name: str, where: str) -> list[tuple[Message, bool]]:
    if not isinstance(value, list) or not value:
        raise LeakboardError(
            f'{where}: column \'{name}\' must be a list of {{"role", "content"}}, got {plain(repr(value)[:80])}'
        )
    if len(value) > ENTRIES:
        raise LeakboardError(f"{where}: column '{name}' has more than {ENTRIES:,} messages")
    return [_message(one, f"{where}, message {at}") for at, one in enumerate(value, start=1)]


def _message(value: Any, where: str) -> tuple[Message, bool]:
    if not isinstance(value, dict):
        raise LeakboardError(
            f'{where}: must be {{"role", "content"}}, got {plain(repr(value)[:80])}'
        )
    role = value.get("role", value.get("from"))
    content = value.get("content", value.get("value"))
    if not isinstance(role, str) or role.lower() not in ROLES:
        raise LeakboardError(
            f"{where}: unknown role {plain(repr(role)[:80])}. {did_you_mean(str(role)[:80], ROLES)}"
        )
    calls = _calls(value)
    if calls and content in (None, ""):
        return Message(ROLES[role.lower()], _content(calls, "tool_calls", where)), False
    text = _content(content, "content", where)
    return Message(ROLES[role.lower()], f"{text} {calls}".strip()), value.get("weight") != 0


def _calls(value: dict[str, Any]) -> str:
    """Calls of tools in a message, such as 'find({"q": "x"})'; they are part of prompts and not trained on."""
    calls = value.get("tool_calls") or ()
    calls = [one.get("function") for one in calls if isinstance(one, dict)]
    functions = [*calls, value.get("function_call")]
    return "; ".join(
        f"{one.get('name')}({one.get('arguments') or ''})"
        for one in functions
        if isinstance(one, dict)
    )


def _content(value: Any, name: str, where: str) -> str:
    if isinstance(value, list) and all(isinstance(p, dict) and "text" in p for p in value):
        value = " ".join(str(part["text"]) for part in value)
    if not isinstance(value, str) or not value.strip():
        got = "nothing" if value in (None, "") else plain(repr(value)[:80])
        raise LeakboardError(f"{where}: '{name}' must be text, got {got}; leave the row out")
    if MARK.search(value):
        raise LeakboardError(
            f"{where}: '{name}' holds {MARK.search(value)[0]}, which separates messages; leave it out"  # type: ignore[index]
        )
    return value


def parse_prompt(prompt: str) -> list[Message] | None:
    """The messages of a prompt; None if the text is not a prompt of a chat."""
    if not MARK.match(prompt) or not prompt.endswith(END):
        return None
    parts = MARK.split(prompt.removesuffix(END))[1:]
    return [Message(role, text.strip()) for role, text in zip(parts[::2], parts[1::2], strict=True)]


def plain_prompt(messages: Sequence[Message]) -> str:
    """The prompt for a model without a chat template."""
    return " ".join([*(f"{m.role.capitalize()}: {m.content}" for m in messages), "Assistant:"])
