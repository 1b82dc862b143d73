"""Public text and the customer's are cut apart by source, so that no sentence is on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from folders import DATA, needs_data
from hypothesis import given, settings
from hypothesis import strategies as st

from leakboard.bench.tasks import shares_source
from leakboard.bench.tasks.loading import load_task
from leakboard.bench.tasks.reviews import reviews
from leakboard.bench.tasks.sources import RUN, public_rows
from leakboard.bench.tasks.task import Split


def split(*texts, pairs=None):
    return Split(tuple(texts), np.zeros(len(texts), np.int64), pairs)


def sentence(number, words=20):
    return " ".join(f"w{number}x{i}" for i in range(words))


def phrase(text, start, end):
    return " ".join(text.split()[start:end])


def inside(text, other):
    return f" {text} " in f" {other} "


def test_all_phrases_of_a_sentence_go_where_it_goes():
    whole = [sentence(i) for i in range(20)]
    cut = [phrase(text, a, b) for text in whole for a, b in ((0, 20), (0, 12), (9, 20), (3, 5))]
    public = public_rows(split(*cut), [], 0.3).reshape(20, 4)
    assert (public.all(1) | ~public.any(1)).all()
    assert public[:, 0].sum() == 6


def test_long_phrases_that_overlap_are_of_one_source_even_without_their_sentence():
    whole = [sentence(i) for i in range(20)]
    cut = [phrase(text, a, b) for text in whole for a, b in ((0, 6 + RUN), (6, 20))]
    public = public_rows(split(*cut), [], 0.5).reshape(20, 2)
    assert (public[:, 0] == public[:, 1]).all()
    assert public.any()
    assert not public.all()
    apart = [phrase(text, a, b) for text in whole for a, b in ((0, 5 + RUN), (6, 20))]
    assert shares_source(split(*cut[::2]), [split(*cut[1::2])]).all()
    assert not shares_source(split(*apart[::2]), [split(*apart[1::2])]).any()


def test_what_stands_on_both_sides_stays_with_the_customer():
    whole = [f"{sentence(i)} the end" for i in range(10)]
    public = public_rows(split(*whole, "the end", "THE  end"), [], 0.5)
    assert 0 < public[:10].sum() < 10
    assert not public[10:].any()


def test_a_word_alone_that_no_other_text_holds_may_become_public():
    words = [f"word{i}" for i in range(10)]
    assert public_rows(split(*words), [], 0.5).sum() == 5


def test_pairs_with_a_text_in_common_are_one_source():
    premises = [sentence(i // 3, 4) for i in range(60)]
    hypotheses = tuple(f"guess {i}" for i in range(60))
    public = public_rows(split(*premises, pairs=hypotheses), [], 0.25).reshape(20, 3)
    assert (public.all(1) | ~public.any(1)).all()
    assert public.sum() == 15
    # Also where it is the first text of one and the second of the other.
    crossed = split("one", "two", pairs=("two", "three"))
    assert shares_source(crossed.take(np.array([0])), [crossed.take(np.array([1]))]).all()


def test_sentences_of_another_split_are_never_public_nor_are_their_parts():
    whole = [sentence(i) for i in range(10)]
    parts = [phrase(text, 2, 14) for text in whole] + [phrase(text, 2, 4) for text in whole]
    assert not public_rows(split(*parts), [split(*whole)], 0.9).any()
    short = split("a b c", "x y", "d e f", "u v", "g h i")
    public = public_rows(short, [split("A B C"), split("p x y q")], 0.9)
    assert public.tolist() == [False, False, True, True, True]


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_no_public_text_is_part_of_a_customers_nor_one_of_theirs_of_it_alone(seed):
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(25):
        words = " ".join(f"w{n}" for n in rng.integers(0, 40, rng.integers(2, 25)))
        for _ in range(rng.integers(1, 4)):
            a, b = np.sort(rng.integers(0, len(words.split()) + 1, 2))
            texts.append(phrase(words, a, b) or words)
    flags = public_rows(split(*texts), [], 0.4)
    public = [t for t, flag in zip(texts, flags, strict=True) if flag]
    own = [t for t, flag in zip(texts, flags, strict=True) if not flag]
    assert not [(p, t) for p in public for t in own if inside(p, t)]
    for text in own:
        if any(inside(text, p) for p in public):
            assert any(inside(text, other) for other in own if other != text)


def test_which_texts_are_public_does_not_depend_on_their_order():
    texts = [sentence(i) for i in range(30)]
    public = public_rows(split(*texts), [], 0.2)
    turned = public_rows(split(*texts[::-1]), [], 0.2)
    assert public.tolist() == turned[::-1].tolist()


def test_a_limit_is_the_customers_and_leaves_public_text_whole():
    task = reviews().limited(7, 0)
    assert {name: len(one) for name, one in task.splits.items()} == {
        "train": 7,
        "dev": 7,
        "test": 7,
        "auxiliary": len(reviews().split("auxiliary")),
    }


@needs_data
@pytest.mark.parametrize(("name", "least", "most"), [("sst2", 0.15, 0.2), ("mnli", 0.19, 0.2)])
def test_no_eight_words_in_a_row_of_real_public_text_are_the_customers(name, least, most):
    task = load_task(name, DATA)
    splits = {key: one for key, one in task.splits.items() if key != "auxiliary"}
    public = task.split("auxiliary")
    assert least < len(public) / (len(public) + len(splits["train"])) <= most

    def runs(texts):
        words = [text.lower().split() for text in texts]
        return {tuple(w[i : i + RUN]) for w in words for i in range(len(w) - RUN + 1)}

    own = set().union(*(runs(s.texts) | runs(s.pairs or ()) for s in splits.values()))
    assert len(own) > 10_000
    assert not own & (runs(public.texts) | runs(public.pairs or ()))
