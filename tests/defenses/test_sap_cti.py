"""SAP-CTI: which tokens contribute, and that they travel in the clear."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch
from cells import DEEP, fine_tuned, ids_of, run, session_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leakboard.defenses import sap_cti
from leakboard.defenses.sap_cti import SAPCTI, contributing


def chosen(counts, share):
    return np.flatnonzero(contributing(np.array(counts), share)).tolist()


def test_contributing_tokens_of_two_classes_by_hand():
    # Tokens a b c d e; e never occurs, so smoothing gives nothing to it: +1 on four tokens.
    # Class 0: a 5, b 1, c 2, d 0 → 6 2 3 1 of 12.  Class 1: a 0, b 1, c 2, d 1 → 1 2 3 2 of 8.
    # UI(m,0) = ln p(m|0)/p(m|1): a ln(6/12 · 8/1) = ln 4; b ln(2/12 · 8/2) = ln 2/3; c ln(3/12 · 8/3)
    # = ln 2/3; d ln(1/12 · 8/2) = ln 1/3. UI(m,1) is the negative: d ln 3, b and c ln 3/2, a −ln 4.
    # Order 0: a b c d (b and c tie, the smaller id first). Order 1: d b c a.
    # k = 1 takes a and d: 5 + 1 of 12 occurrences. k = 2 adds b: 8. k = 3 adds c: 12.
    counts = [[5, 1, 2, 0, 0], [0, 1, 2, 1, 0]]
    assert chosen(counts, 5 / 12) == []
    assert chosen(counts, 6 / 12) == [0, 3]
    assert chosen(counts, 7 / 12) == [0, 3]
    assert chosen(counts, 8 / 12) == [0, 1, 3]
    assert chosen(counts, 11 / 12) == [0, 1, 3]
    assert chosen(counts, 1) == [0, 1, 2, 3]


def test_contributing_tokens_of_three_classes_by_hand():
    # Smoothed, each row sums to 16: 8 4 2 2 | 2 8 2 4 | 2 2 2 10. With equal sums UI(m,c) is
    # ln of count², over the product of the two others:
    # class 0: 64/4, 16/16, 4/4, 4/40 → token 0;  class 1: 4/16, 64/8, 4/4, 16/20 → token 1;
    # class 2: 4/16, 4/32, 4/4, 100/8 → token 3.
    # k = 1 takes tokens 0, 1 and 3, which are 33 of 36 occurrences; k = 2 takes them all.
    counts = [[7, 3, 1, 1], [1, 7, 1, 3], [1, 1, 1, 9]]
    assert chosen(counts, 32 / 36) == []
    assert chosen(counts, 33 / 36) == [0, 1, 3]
    assert chosen(counts, 35 / 36) == [0, 1, 3]
    assert chosen(counts, 1) == [0, 1, 2, 3]


counts_of_some_tokens = arrays(
    np.int64, st.tuples(st.integers(2, 4), st.integers(1, 12)), elements=st.integers(0, 9)
).filter(lambda counts: counts.sum() > 0)


@given(counts_of_some_tokens, st.floats(0, 1))
def test_share_is_never_exceeded_and_k_is_the_largest_possible(counts, share):
    # A plain restatement: the smallest k over the limit, found by trying all of them.
    used = np.flatnonzero(counts.sum(0))
    smooth = counts[:, used] + 1.0
    p = smooth / smooth.sum(1, keepdims=True)
    importance = [
        [sum(np.log(p[c, m] / p[other, m]) for other in range(len(p)) if other != c)
         for m in range(len(used))]
        for c in range(len(p))
    ]  # fmt: skip
    order = np.argsort(-np.round(importance, 9), axis=1, kind="stable")
    best = set()
    for k in range(1, len(used) + 1):
        tokens = {int(used[m]) for m in order[:, :k].ravel()}
        if sum(int(counts[:, m].sum()) for m in tokens) <= Fraction(share) * int(counts.sum()):
            best = tokens
    got = set(chosen(counts, share))
    taken = sum(int(counts[:, m].sum()) for m in got)
    assert taken <= Fraction(share) * int(counts.sum())
    assert taken == sum(int(counts[:, m].sum()) for m in best)


@given(counts_of_some_tokens)
def test_share_zero_takes_nothing_and_share_one_all_that_occurs(counts):
    assert chosen(counts, 0) == []
    assert chosen(counts, 1) == np.flatnonzero(counts.sum(0)).tolist()


def test_contributing_tokens_are_sent_as_they_are_and_others_are_not():
    defense = SAPCTI(eta=20, share=0.2)
    session, inputs, tuned = fine_tuned(defense)
    clear = defense.in_clear(session)
    for split in ("train", "dev"):
        tokens = inputs.tokens[split]
        tuned.predict(tokens, split) if split == "dev" else None
        sent, ids = ids_of(session, split=split), tokens.ids.values
        kept = clear[ids] & ~tokens.special
        assert 0.05 < kept.float().mean() < 0.3
        assert (sent[kept] == ids[kept]).all()
        assert (sent == ids)[~kept & ~tokens.special].float().mean() < 0.1


def test_contributing_tokens_are_counted_by_class_without_special_tokens(monkeypatch):
    counted = []
    monkeypatch.setattr(
        sap_cti, "contributing", lambda counts, share: counted.append(counts) or counts[0] < 0
    )
    session, inputs = session_of(SAPCTI())
    SAPCTI().in_clear(session)
    expected = np.zeros_like(counted[0])
    tokens, labels = inputs.tokens["train"], inputs.task.splits["train"].labels
    for row, label in enumerate(labels):
        one = tokens.take(torch.tensor([row]))
        for token in one.ids.values[~one.special].tolist():
            expected[label, token] += 1
    assert (counted[0] == expected).all()


def test_contributing_tokens_at_depth_are_a_skipped_record_with_its_reason(tmp_path):
    (record,) = run(tmp_path, SAPCTI(), **DEEP)
    assert record.status == "skipped"
    assert "embedding cut only" in record.reason
