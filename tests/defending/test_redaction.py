"""Redaction: which texts are trained on."""

from __future__ import annotations

import numpy as np
from cells import load_tiny, session_of
from released import FORM, plan_of, run

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.defending.redaction import deduplicated_rows
from leakboard.bench.tasks.task import Span, Split
from leakboard.defenses.crt import CRT
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.jft import JFT
from leakboard.defenses.none import NoDefense
from leakboard.defenses.redacted import Redacted


def test_canary_is_masked_or_missed_as_the_defense_says():
    class Seen(Redacted):
        """Keeps what it would train on."""

        def fine_tune(self, session):
            spans = self.secret_spans(session)
            kept.append(self.redacted(session, spans)[1].texts)
            return super().fine_tune(session)

    kept: list = []
    plant = Plant(canaries=FORM, copies=(3,), unseen=0)
    for canaries in ("masked", "missed"):
        assert run(plan_of(Seen(detector="exact", canaries=canaries), plant=plant)).status == "ok"
    masked, missed = kept
    assert masked[-1] == "My ID is <MASK>."
    assert missed[-1] != masked[-1]
    assert missed[-1].startswith("My ID is ")
    assert masked[:-3] == missed[:-3]
    assert all(text.startswith("call <MASK> at") for text in masked[:-3])


def test_canary_is_masked_though_its_detector_does_not_find_it():
    session, _ = session_of(Redacted(), limit=2)
    session.texts = Split(("my word is plum", "nothing here"), np.zeros(2, np.int64))
    session.canaries = {0: Span(11, 15, "canary")}
    for canaries, expected in (("masked", (Span(11, 15, "canary"),)), ("found", ())):
        spans = Redacted(detector="patterns", canaries=canaries).secret_spans(session)
        assert [tuple(own) for own in spans] == [expected, ()]


def test_deduplication_keeps_the_first_of_each_text():
    split = Split(("b", "a", "b", "c", "a"), np.zeros(5, np.int64))
    assert deduplicated_rows(split).tolist() == [0, 1, 3]


def test_examples_that_differ_in_second_text_or_label_are_no_copies_and_exact_ones_are():
    texts, pairs = ("q", "q", "q", "q", "q"), ("yes", "no", "yes", "yes", "no")
    labels = np.array([0, 0, 0, 1, 0])
    assert deduplicated_rows(Split(texts, labels, pairs)).tolist() == [0, 1, 3]
    assert deduplicated_rows(Split(texts, labels)).tolist() == [0, 3]


def test_second_texts_of_pairs_are_redacted_as_the_first_are():
    session, _ = session_of(Redacted(), limit=2)
    first, second = ("mail ann@x.org now", "nothing here"), ("call me", "or mail bob@y.org")
    session.texts = Split(first, np.zeros(2, np.int64), second)
    defense = Redacted(detector="patterns")
    tokens, redacted = defense.redacted(session, defense.secret_spans(session))
    assert redacted.texts == ("mail <MASK> now", "nothing here")
    assert redacted.pairs == ("call me", "or mail <MASK>")
    pairs = redacted.texts, redacted.pairs
    expected = load_tiny("tiny-bert").encode(*pairs, session.settings.max_length)
    assert tokens.ids.values.tolist() == expected.ids.values.tolist()
    assert tokens.types.tolist() == expected.types.tolist()


class TestAsTrained:
    def test_is_the_text_without_what_the_public_detector_finds_whatever_a_run_missed(self):
        base = load_tiny("tiny-gpt2")
        split = Split(("mail ann@x.org now", "nothing"), np.zeros(2, np.int64), ("ok", "b@y.org"))
        for defense in (Redacted(), Redacted(misses=0.9), JFT(phase1="manual"), CRT()):
            seen = defense.as_trained(base, split)
            assert seen.texts == ("mail <MASK> now", "nothing")
            assert seen.pairs == ("ok", "<MASK>")
            assert seen.labels is split.labels

    def test_marks_of_a_text_are_known_to_who_holds_it_and_without_any_there_is_nothing_to_mask(
        self,
    ):
        base, marks = load_tiny("tiny-gpt2"), ((Span(3, 7, "name"),),)
        split = Split(("my plum",), np.zeros(1, np.int64), secrets=marks)
        assert Redacted(detector="exact").as_trained(base, split).texts == ("my <MASK>",)
        assert Redacted().as_trained(base, split).texts == ("my plum",)
        unmarked = Split(split.texts, split.labels)
        assert Redacted(detector="exact").as_trained(base, unmarked) is None

    def test_defenses_that_change_no_text_change_none(self):
        split = Split(("mail ann@x.org now",), np.zeros(1, np.int64))
        for defense in (NoDefense(), DPSGD()):
            assert defense.as_trained(load_tiny("tiny-gpt2"), split) is None
