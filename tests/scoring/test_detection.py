"""Scores of a detector, against a sheet of paper."""

from __future__ import annotations

import pytest

from leakboard.bench.defending.detectors import Detector
from leakboard.bench.scoring.detection import score
from leakboard.bench.tasks.annotated import load_annotated
from leakboard.bench.tasks.task import Span


def test_scores_agree_with_a_sheet_of_paper():
    # Secrets in [], found spans in <>, by hand:
    #   "[<Ann> <Lee>] met [Bo] <today>"     found: Ann Lee, as its two masks become one; missed: Bo
    #   "[<Cy Dee>]"                         found
    #   "[Ed <Fox>] ran"                     missed, as only a half of it is masked
    #   "so it goes"                         nothing there, nothing found
    texts = ["Ann Lee met Bo today", "Cy Dee", "Ed Fox ran", "so it goes"]
    secrets = [
        (Span(0, 7, "full"), Span(12, 14, "first")),
        (Span(0, 6, "full"),),
        (Span(0, 6, "full"),),
        (),
    ]
    found = [
        (Span(0, 3, "x"), Span(4, 7, "x"), Span(15, 20, "x")),
        (Span(0, 6, "x"),),
        (Span(3, 6, "x"),),
        (),
    ]
    result = score(texts, found, secrets)
    assert result.recall.value == pytest.approx(2 / 4)
    assert result.recall.n == 3  # texts with secrets
    assert result.miss_rate.value == pytest.approx(2 / 4)
    assert result.miss_rate.low == pytest.approx(1 - result.recall.high)
    assert {kind: (n, e.value) for kind, (n, e) in result.kinds.items()} == {
        "first": (1, 0.0),
        "full": (3, pytest.approx(2 / 3)),
    }
    # Masked: Ann, Lee, today, Cy, Dee, Fox of 13 tokens; all of them secret but "today".
    assert result.precision.value == pytest.approx(5 / 6)
    assert result.precision.chance == pytest.approx(7 / 13)
    assert result.tokens.value == pytest.approx(6 / 13)
    m = 6 / 13
    assert result.recall.chance == pytest.approx((3 * m**2 + m) / 4)
    assert result.recall.low < 0.5 < result.recall.high


def test_tokens_are_cut_at_spaces_and_words_at_punctuation():
    result = score(["mail a@b.c now"], [(Span(5, 10, "email"),)], None)
    assert result.tokens.value == pytest.approx(1 / 3)
    assert result.words.value == pytest.approx(3 / 5)
    assert result.precision is None
    assert result.recall is None


def test_a_detector_that_finds_nothing_has_no_precision_and_one_that_masks_all_earns_chance():
    texts, secrets = ["Ann met Bo", "it rains"], [(Span(0, 3, "a"), Span(8, 10, "a")), ()]
    nothing = score(texts, [(), ()], secrets)
    assert nothing.precision is None
    assert nothing.recall.value == 0
    everything = score(texts, [(Span(0, 10, "x"),), (Span(0, 8, "x"),)], secrets)
    assert everything.recall.value == everything.recall.chance == 1
    assert everything.precision.value == everything.precision.chance == pytest.approx(2 / 5)


def test_exact_is_perfect_on_real_annotations(data):
    if not (data / "wnut17").is_dir():
        pytest.skip(f"needs wnut17; it is not in {data}")
    split = load_annotated("wnut17", data).split("dev")
    assert sum(map(len, split.secrets)) == 836  # as its source counts
    found = Detector(name="exact").detect(split.texts, split.secrets).spans
    result = score(split.texts, found, split.secrets)
    assert result.recall.value == result.precision.value == 1
    assert result.recall.chance < 0.1
