"""The generated task `reviews`: always the same, and neither trivial nor hopeless."""

from __future__ import annotations

import numpy as np
import pytest
from fresh import printed
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from leakboard.bench.tasks.reviews import ATTRIBUTES, SIZES, WORDS, reviews

HASH = "6c4946146b0024c1f135d1332576c458d616d1a533f42c3e7093d793ecd901f2"


def held_out_accuracy(target_of, ngrams=(1, 1)):
    """Accuracy on dev of a linear model on counts of words or word sequences, trained on train."""
    train, dev = reviews().split("train"), reviews().split("dev")
    counts = CountVectorizer(ngram_range=ngrams, min_df=5)
    model = LogisticRegression(C=0.3, max_iter=1000)
    model.fit(counts.fit_transform(train.texts), target_of(train))
    return model.score(counts.transform(dev.texts), target_of(dev))


def test_content_hash_is_pinned_so_that_old_records_stay_comparable():
    assert reviews().hash == HASH


@pytest.mark.parametrize("hash_seed", ["0", "1234"])
def test_content_does_not_depend_on_the_process_or_its_hash_seed(hash_seed):
    code = "from leakboard.bench.tasks.reviews import reviews; print(reviews().hash)"
    assert printed(code, hash_seed) == HASH


def test_no_text_stands_in_two_splits_or_twice_in_one():
    task = reviews()
    assert {name: len(split) for name, split in task.splits.items()} == SIZES
    texts = [text.lower() for split in task.splits.values() for text in split.texts]
    assert len(set(texts)) == len(texts)


def test_texts_are_short_plain_ascii_without_unfilled_slots():
    for split in reviews().splits.values():
        for text in split.texts:
            assert text.isascii()
            assert not set(text) & set("{}\t\n")
            assert len(text.split()) in WORDS


def test_vocabulary_has_several_hundred_frequent_words():
    assert len(CountVectorizer(min_df=20).fit(reviews().split("train").texts).vocabulary_) > 600


def test_labels_and_attributes_are_balanced_and_do_not_predict_each_other():
    train = reviews().split("train")
    assert abs(train.labels.mean() - 0.5) < 0.02
    assert abs(train.attributes["gender"].mean() - 0.5) < 0.03
    assert np.bincount(train.attributes["age_band"]).max() / len(train) < 0.45
    for values in train.attributes.values():
        assert abs(np.corrcoef(values, train.labels)[0, 1]) < 0.04


def test_labels_do_not_follow_from_the_order_of_the_rows():
    labels = reviews().split("train").labels
    assert abs((labels[1:] == labels[:-1]).mean() - 0.5) < 0.03


def test_single_words_solve_part_of_the_sentiment_and_word_order_more():
    unigrams = held_out_accuracy(lambda split: split.labels)
    assert 0.65 < unigrams < 0.88
    assert held_out_accuracy(lambda split: split.labels, ngrams=(1, 2)) > unigrams + 0.015


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_style_gives_the_author_away_in_part(name):
    truth = reviews().split("dev").attributes[name]
    majority = np.bincount(truth).max() / len(truth)
    accuracy = held_out_accuracy(lambda split: split.attributes[name])
    half_width = 1.96 * np.sqrt(accuracy * (1 - accuracy) / len(truth))
    assert accuracy - half_width > majority + 0.1
    assert accuracy < 0.88
