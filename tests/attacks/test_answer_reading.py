"""answer-reading: what crosses the wire when a tuned language model answers prompts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cells import leak_of, load_tiny, run

from leakboard.attacks.answer_reading import AnswerReading
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import ANSWERED, Message, Transcript
from leakboard.bench.exchange.answering import REQUESTS, with_requests_as_rounds
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

ASKED = "dev" + ANSWERED
REPLIES = {"task": "replies", "model": "tiny-gpt2", "limit": 8, "record": {"answers": True}}
TRAIN = {"epochs": 1, "batch_size": 4, "max_length": 48}
ATTACKS = [AnswerReading(), NearestNeighbour()]
PLAIN, CLEAR, NOISY = NoDefense(head="vendor"), SAP(eta=None), SAP(eta=40.0, head="customer")
DEFENSES = [PLAIN, CLEAR, NOISY, Blackout()]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    found = run(folder, *DEFENSES, attacks=ATTACKS, train=TRAIN, **REPLIES)
    assert all(record.status == "ok" for record in found), [record.reason for record in found]
    return dict(zip(DEFENSES, found, strict=True))


def answers(record):
    return leak_of(record, "answer-reading", view=ASKED, goal="label").success


@pytest.mark.parametrize("defense", [PLAIN, CLEAR, NOISY], ids=str)
def test_answers_are_read_where_the_vendor_or_the_public_layer_writes_them(records, defense):
    found = answers(records[defense])
    assert (found.value, found.n) == (1, REPLIES["limit"])


def test_an_api_reads_prompts_too(records):
    assert leak_of(records[PLAIN], "eia-nn", view=ASKED).success.value == 1


def test_noise_of_several_requests_hides_less_of_a_prompt_than_that_of_one(records):
    clear, noisy = records[CLEAR], records[NOISY]
    assert leak_of(clear, "eia-nn", view=ASKED).success.value == 1
    once, often = (leak_of(noisy, "eia-nn", view=view).success.value for view in ("dev", ASKED))
    assert once < often < 1


def test_noise_names_random_words():
    rng, base = np.random.default_rng(0), load_tiny("tiny-gpt2")
    words = len(base.embeddings)
    asked = sent(Channel.REPRESENTATIONS, "customer", [{0: [0] * 300}])
    down = sent(Channel.LOGITS, "vendor", [{0: [0]}] * 200)
    noisy = (replace(m, values=rng.standard_normal((1, words))) for m in down)
    seen = with_requests_as_rounds(Transcript((*asked, *noisy)), ASKED)
    (guess,) = AnswerReading().guess(seen, Knowledge(0, "cpu", base=base), rng)
    assert not guess.values[:100].any()
    assert len(np.unique(guess.values[100:])) > min(words, 200) / 3


def test_where_no_answer_was_recorded_the_reason_says_so(records):
    dark = records[Blackout()]
    reason = leak_of(dark, "answer-reading", view="", goal="label").reason
    assert "no answers were recorded" in reason
    assert advantage_low(leak_of(dark, "eia-nn")) < NEEDED


def sent(channel, sender, requests):
    """Messages of one split, one for each request, of {row: values}."""
    for one in requests:
        lengths = np.array([len(values) for values in one.values()])
        values = np.concatenate([np.array(values, float)[:, None] for values in one.values()])
        about = np.array(list(one)), values, lengths if sender == "customer" else None
        yield Message(channel, ASKED, 0, sender, "vendor", 0, *about)


def test_requests_become_rounds_from_the_last_and_vectors_of_the_vendor_one_sequence():
    up = sent(
        Channel.REPRESENTATIONS,
        "customer",
        [{4: [1, 2], 2: [7]}, {4: [3, 4, 5]}, {4: [6, 7, 8, 9]}],
    )
    down = sent(Channel.LOGITS, "vendor", [{4: [10], 2: [70]}, {4: [20]}, {4: [30]}])
    seen = with_requests_as_rounds(Transcript((*up, *down)), ASKED)
    rounds = [seen.collect(Channel.REPRESENTATIONS, ASKED, r) for r in range(3)]
    assert [block.rows.tolist() for block in rounds] == [[2, 4]] * 3
    assert [block.values[:, 0].tolist() for block in rounds] == [
        [7, 6, 7, 8, 9], [7, 3, 4, 5, 9], [7, 1, 2, 8, 9],
    ]  # fmt: skip
    answer = seen.collect(Channel.LOGITS, ASKED)
    assert answer.values[:, 0].tolist() == [70, 10, 20, 30]
    assert answer.lengths.tolist() == [1, 3]


def test_so_many_requests_become_rounds_and_not_more():
    up = sent(Channel.REPRESENTATIONS, "customer", [{0: [*range(n)]} for n in range(1, 20)])
    seen = with_requests_as_rounds(Transcript(tuple(up)), ASKED)
    assert seen.rounds(Channel.REPRESENTATIONS, ASKED) == list(range(REQUESTS))
