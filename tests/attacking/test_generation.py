"""What a model writes behind a prompt: as its probabilities say, and no more of it than it can read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.bench.attacking.generation import Writer, digits_drawn
from leakboard.bench.contracts.errors import LeakboardError


def drawing(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=["tiny-gpt2", "tiny-llama"])
def base(request):
    return load_tiny(request.param)


def writer_of(base, top_k=40, temperature=1.0, positions=None, sharper=30.0):
    # Small random weights find all words about equally likely; so they do not.
    return Writer(base.model, sharper * base.head, top_k, temperature, positions)


def prompt_of(base, text="my order number is"):
    return base.encode([text], None, 32, opened=True).ids.values


@torch.no_grad()
def next_of(base, ids, sharper=30.0):
    hidden = base.model(input_ids=torch.as_tensor(ids)[None]).last_hidden_state[0, -1]
    return (hidden @ (sharper * base.head).T).double()


def test_greedy_continuation_is_that_of_the_model_without_kept_keys(base):
    prompt = prompt_of(base)
    found = writer_of(base).continued(prompt, 6, 2, drawing())
    assert found.shape == (3, 6)
    ids = prompt.tolist()
    for word in found[0]:
        assert word == next_of(base, ids).argmax()
        ids.append(int(word))


def test_every_drawn_continuation_follows_from_its_own_words(base):
    found = writer_of(base, top_k=2).continued(prompt_of(base), 5, 8, drawing())
    assert len({tuple(row) for row in found[1:].tolist()}) > 1
    for row in found[1:]:
        ids = prompt_of(base).tolist()
        for word in row:
            assert word in next_of(base, ids).topk(2).indices
            ids.append(int(word))


def test_continuations_drawn_together_follow_each_from_its_own_words(base):
    prompt, written = prompt_of(base), []

    def all_turned_round(texts, counts):
        written.extend(texts)
        return list(range(len(texts)))[::-1]

    writer_of(base, top_k=2).draw(prompt, 4, 200, drawing(), all_turned_round)
    assert len({tuple(text) for text in written if len(text) == 4}) > 2
    for text in written:
        known = [*prompt.tolist(), *text[:-1]]
        assert text[-1] in next_of(base, known).topk(2).indices


def test_the_same_seed_writes_the_same_and_another_one_another(base):
    writer, prompt = writer_of(base), prompt_of(base)
    once, again, other = (writer.continued(prompt, 5, 6, drawing(s)) for s in (0, 0, 1))
    assert np.array_equal(once, again)
    assert not np.array_equal(once[1:], other[1:])


@pytest.mark.parametrize(("top_k", "temperature"), [(3, 1.0), (4, 2.0)])
def test_first_words_are_drawn_as_likely_as_they_are_among_the_likeliest(base, top_k, temperature):
    prompt, drawn = prompt_of(base), {}

    def first(texts, counts):
        drawn.update({text[0]: count for text, count in zip(texts, counts, strict=True)})
        return []

    writer_of(base, top_k, temperature).draw(prompt, 4, 4000, drawing(), first)
    top = next_of(base, prompt).topk(top_k)
    expected = (top.values / temperature).softmax(0).tolist()
    assert set(drawn) <= set(top.indices.tolist())
    for word, chance in zip(top.indices.tolist(), expected, strict=True):
        spread = 4 * (chance * (1 - chance) / 4000) ** 0.5
        assert drawn.get(word, 0) / 4000 == pytest.approx(chance, abs=spread + 1e-9)


def test_draws_that_agree_are_counted_together_and_those_that_end_go_no_further(base):
    seen = []

    def longer(texts, counts):
        seen.append((texts, counts))
        return [0]

    writer_of(base, top_k=3).draw(prompt_of(base), 3, 500, drawing(), longer)
    assert sum(seen[0][1]) == 500
    assert len(seen[0][0]) <= 3
    for (before, often), (after, counts) in pairwise(seen):
        assert {tuple(text[:-1]) for text in after} == {tuple(before[0])}
        assert sum(counts) == often[0]


def test_more_tokens_than_the_model_reads_are_refused_with_the_remedy(base):
    with pytest.raises(
        LeakboardError, match=r"a prompt of \d+ tokens and an answer of 30 .*max_length"
    ):
        writer_of(base, positions=20).continued(prompt_of(base), 30, 1, drawing())


class Letters:
    """A tokeniser that is a list of letters, of which `|` says nothing."""

    words = "0123456789 x|"

    def __call__(self, text):
        return {"input_ids": [self.words.index(c) for c in text]}

    def decode(self, ids, skip_special_tokens):
        return "".join(self.words[i] for i in ids).replace("|", "")


class Told:
    """A writer that has drawn these texts, so often."""

    def __init__(self, texts):
        self.texts, self.longest = texts, 0

    def draw(self, prompt, length, draws, draw, going_on):
        assert sum(self.texts.values()) == draws
        going = dict(self.texts)
        for n in range(1, length + 1):
            self.longest = n
            texts = list(dict.fromkeys(text[:n] for text in going))
            counts = [sum(c for t, c in going.items() if t[:n] == text) for text in texts]
            ids = [Letters()(text)["input_ids"] for text in texts]
            kept = {texts[i] for i in going_on(ids, counts)}
            going = {t: c for t, c in going.items() if t[:n] in kept}
            if not going:
                return


def test_digits_count_where_six_stand_first_and_nothing_else_does():
    told = Told({
        "123456xxxxxx": 5, " 00700700000": 3, "12345x000000": 2, "x12345600000": 1, "|||||||||||1": 4,
        "1 2345600000": 1,
    })  # fmt: skip
    found = digits_drawn(told, Letters(), torch.tensor([11, 10]), 6, 16, drawing())
    values, counts = np.unique(found, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {123456: 6, 7007: 3, -1: 7}


def test_digits_of_a_model_are_drawn_as_often_as_it_finds_them_likely():
    base, draws = load_tiny("tiny-gpt2"), 3000
    start = base.tokenizer("my id is")["input_ids"]
    ten = [base.tokenizer.convert_tokens_to_ids(str(n)) for n in range(10)]

    @torch.no_grad()
    def after(*digits):
        ids = torch.tensor([[*start, *(ten[n] for n in digits)]])
        return base.model(input_ids=ids).last_hidden_state[0, -1]

    # A head that knows figures alone, and likes some of them better behind one figure than another.
    usual = torch.stack([after(n) for n in range(10)]).mean(0)
    head = torch.zeros_like(base.head)
    head[ten] = 10 * usual / usual.norm() ** 2 + 2 * torch.randn(
        10, len(usual), generator=drawing(7)
    )
    found = digits_drawn(
        Writer(base.model, head, 10, 1.0), base.tokenizer, torch.tensor(start), 2, draws, drawing()
    )
    first = (after() @ head[ten].T).softmax(0)
    second = torch.stack([(after(n) @ head[ten].T).softmax(0) for n in range(10)])
    expected = (first[:, None] * second).flatten().numpy()
    assert (second - second.mean(0)).abs().max() > 0.05
    assert (found >= 0).all()
    shares = np.bincount(found, minlength=100) / draws
    assert (np.abs(shares - expected) < 5 * np.sqrt(expected / draws) + 2e-3).all()
