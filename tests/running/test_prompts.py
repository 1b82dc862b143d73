"""Prompts: the tokens up to a secret and those of it, and none that a prompt already tells."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.bench.running import cell_context
from leakboard.bench.running.cell_context import prompts_of
from leakboard.bench.tasks.task import Span, Split

TEXTS = (
    "call parcel at 3 , then call refund",
    "parcel is parcel",
    "the agent will call",
    "call the agent at 40",
)
SECRETS = (
    (Span(5, 11, "name"), Span(15, 16, "hour"), Span(29, 35, "name")),
    (Span(0, 6, "name"), Span(10, 16, "name")),  # the first opens the text, the second was told
    (),
    (Span(18, 20, "hour"),),
)


def asked(texts=TEXTS, secrets=SECRETS, rows=None, planted=(), length=32, seed=0):
    base = load_tiny("tiny-gpt2")
    split = Split(texts, np.zeros(len(texts), int), secrets=secrets)
    tokens = base.encode(texts, None, length, opened=True)
    rows = np.arange(len(texts)) if rows is None else np.array(rows)
    found = prompts_of(split, tokens, base, rows, planted, np.random.default_rng(seed))
    if found is None:
        return None

    def words(ragged, i):
        return base.tokenizer.decode(ragged.take(torch.tensor([i])).values)

    n = len(found.answers)
    return [(words(found.tokens.ids, i), words(found.answers, i)) for i in range(n)]


def test_a_prompt_ends_where_its_secret_begins():
    found = asked()
    assert [answer.replace(" ", "") for _, answer in found] == [
        "parcel",
        "3",
        "refund",
        "parcel",
        "40",
    ]
    texts = [prompt.split("<|endoftext|>")[1].replace(" ", "") for prompt, _ in found]
    assert texts == ["call", "callparcelat", "callparcelat3,thencall", "", "calltheagentat"]


def test_a_secret_that_its_prompt_tells_is_not_asked_for():
    answers = [answer for _, answer in asked(TEXTS[1:2], SECRETS[1:2])]
    assert answers == ["parcel"]  # once, behind the mark of the beginning


def test_canaries_rows_not_recorded_and_secrets_cut_off_are_left_out():
    assert [answer for _, answer in asked(rows=[0, 3], planted={0})] == ["4 0"]
    assert [answer for _, answer in asked(rows=[3], length=5)] == []
    assert asked(secrets=None) is None


def test_what_is_longer_than_what_is_written_is_left_out(monkeypatch):
    monkeypatch.setattr(cell_context, "CONTINUED", (1, 10))
    assert "4 0" not in [answer for _, answer in asked()]


def test_so_many_are_asked_for_and_which_depends_on_the_seed(monkeypatch):
    monkeypatch.setattr(cell_context, "MAX_PROMPTS", 2)
    drawn = {tuple(asked(seed=seed)) for seed in range(8)}
    assert {len(one) for one in drawn} == {2}
    assert len(drawn) > 1


@pytest.mark.parametrize("rows", [[], [2]])
def test_texts_without_secrets_give_no_prompt(rows):
    assert asked(rows=rows) == []
