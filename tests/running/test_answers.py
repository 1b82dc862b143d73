"""What a tuned language model answers to prompts: its likeliest words, until it ends the text."""

from __future__ import annotations

import pytest
import torch
from cells import fine_tuned, load_tiny, run

from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.exchange.model_release import Released
from leakboard.bench.exchange.tuned_model import Tuned
from leakboard.bench.running.cells import generate_answers
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

BASE = load_tiny("tiny-gpt2")
PROMPTS = ("call the agent about", "the room", "my order number is 4")
RIGHT = ("a refund", "is good today", "of course")
REPLIES = {"task": "replies", "model": "tiny-gpt2", "limit": 24}


def encoded(length=32):
    return BASE.encode(PROMPTS, RIGHT, length, opened=True)


class Scripted(Tuned):
    """Says of each row the next word of its script; notes what it was asked."""

    def __init__(self, scripts):
        self.scripts, self.asked = scripts, []

    def predict(self, tokens, split):
        raise NotImplementedError

    def next_words(self, tokens, rows, split):
        found = []
        for i, row in enumerate(rows.tolist()):
            one = tokens.take(torch.tensor([i]))
            said = int((one.types == 1).sum())
            self.asked.append((row, one, split))
            found.append(self.scripts[row][said])
        return torch.tensor(found)


def ids_of(text):
    return BASE.tokenizer(text)["input_ids"]


def test_an_answer_ends_where_the_model_ends_it_and_is_no_longer_than_the_longest_right_one():
    tokens, end = encoded(), BASE.tokenizer.eos_token_id
    scripts = [[*ids_of("a"), end], ids_of("good good good good good good"), [end]]
    tuned = Scripted(scripts)
    assert generate_answers(tuned, tokens, "dev", BASE)[0] == ["a", "good good good good", ""]
    assert [row for row, _, _ in tuned.asked].count(2) == 1


def test_every_word_is_asked_for_with_the_prompt_and_what_was_written_and_nothing_of_the_right_answer():
    tokens = encoded()
    tuned = Scripted([ids_of("good good good good")] * 3)
    generate_answers(tuned, tokens, "dev", BASE)
    assert len(tuned.asked) == 3 * 4
    for row, one, split in tuned.asked:
        own = tokens.take(torch.tensor([row]))
        prompt = own.ids.values[own.types == 0].tolist()
        said = int((one.types == 1).sum())
        assert one.ids.values.tolist() == prompt + ids_of("good good good good")[:said]
        assert one.special.tolist() == [True] + [False] * (len(one.special) - 1)
        assert split == "dev, answered"


@pytest.mark.parametrize("head", ["vendor", "customer", None])
def test_the_likeliest_word_is_the_same_over_the_wire_as_of_the_model_itself(head):
    still = {"train": {"epochs": 1, "learning_rate": 1e-12}}
    defense = NoDefense() if head is None else SAP(eta=None, head=head)
    session, inputs, tuned = fine_tuned(defense, **REPLIES | still)
    tokens, rows = inputs.tokens["dev"], torch.arange(5)
    few = tokens.take(rows)
    hidden = LanguageModel(session.backbone, TrainSettings()).eval().hidden(few)
    last = hidden[torch.arange(5), few.lengths - 1] @ session.backbone.head.T
    assert tuned.next_words(few, rows, "dev, answered").tolist() == last.argmax(1).tolist()
    before = session.wire.transcript()
    assert not [m for m in before.messages if m.split != "train"]


def test_a_model_of_prompts_is_judged_by_its_answers_beside_its_next_tokens(tmp_path):
    settings = {"epochs": 6, "batch_size": 8, "learning_rate": 1e-2}
    (record,) = run(tmp_path, NoDefense(head="customer"), train=settings, **REPLIES)
    assert record.status == "ok", record.reason
    assert record.utility_metric == "ROUGE-L"
    assert record.utility.n == 24
    assert set(record.measures) == {
        "exact match", "next-token accuracy", "perplexity per token", "perplexity per word",
    }  # fmt: skip
    assert record.measures["exact match"].value <= record.utility.value


def test_whoever_releases_its_model_writes_as_the_model_does():
    network = LanguageModel(BASE, TrainSettings())
    tokens = encoded()
    greedy, _ = generate_answers(Released(network), tokens, "dev", BASE)
    assert len(greedy) == len(tokens)
    own = tokens.take(torch.tensor([0]))
    ids = own.ids.values[own.types == 0].tolist()
    for _ in range(4):
        hidden = BASE.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
        ids.append(int((hidden @ BASE.head.T).argmax()))
        if ids[-1] == BASE.tokenizer.eos_token_id:
            break
    said = BASE.tokenizer.decode(ids[int((own.types == 0).sum()) :], skip_special_tokens=True)
    assert greedy[0] == said.strip()
