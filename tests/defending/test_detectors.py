"""Secret detectors: what they mask, and what they miss."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from pydantic import ValidationError
from secret_texts import ANNOTATED, RULES, SENTENCE, pieces

from leakboard.bench.contracts.errors import LeakboardError, MissingExtra
from leakboard.bench.defending import policy_levels
from leakboard.bench.defending.detectors import Detector, mask_text, merge_overlaps
from leakboard.bench.tasks.task import Span


@pytest.mark.parametrize(
    ("level", "first", "second"),
    [
        ("low-entity", "# sent # 5 euros on # , but # in # said she wants the car quickly", RULES),
        ("high-entity", "# sent # on # , but # in # said she wants the car quickly", RULES),
        (
            "low-contextual",
            "# sent # on # , but # in # said # wants the # quickly",
            "now is ready # old # model",
        ),
        (
            "high-contextual",
            "# on # , but # in # the # quickly",
            "now # ready # old # model",
        ),
    ],
)
def test_each_level_masks_what_the_paper_s_code_masks(pipelines, level, first, second):
    texts = [SENTENCE, RULES, ""]
    found = Detector(name=level, spacy=pipelines["whole"]).detect(texts).spans
    assert [mask_text(t, own, "#") for t, own in zip(texts, found, strict=True)] == [
        first,
        second,
        "",
    ]


def test_a_token_of_an_entity_is_one_span_with_it_and_kinds_are_in_lower_case(pipelines):
    detector = Detector(name="low-contextual", spacy=pipelines["whole"])
    (spans,) = detector.detect([SENTENCE]).spans
    assert pieces(SENTENCE, spans) == [
        ("Alice Smith", "person"),
        ("Bob", "person"),
        ("5 euros", "money"),
        ("Monday", "date"),
        ("Acme", "org"),
        ("Paris", "gpe"),
        ("she", "nsubj"),
        ("car", "dobj"),
    ]


def test_spaces_are_never_secrets_even_where_the_parser_calls_them_a_root(monkeypatch, pipelines):
    monkeypatch.setitem(ANNOTATED, " ", ("O", "ROOT", "SPACE"))
    detector = Detector(name="high-contextual", spacy=pipelines["whole"])
    # spaCy makes the second space a token of its own.
    assert detector.detect(["so  it"]).spans == [()]


def test_a_pipeline_reads_a_text_once_for_all_levels(monkeypatch, pipelines):
    nlp = policy_levels._load(pipelines["whole"])
    read, pipe = [], type(nlp).pipe

    def counted(self, texts, **options):
        read.extend(texts := list(texts))
        return pipe(self, texts, **options)

    monkeypatch.setattr(type(nlp), "pipe", counted)
    texts = [f"{SENTENCE} Read once.", f"{SENTENCE} Read anew.", f"{SENTENCE} Read once."]
    alone, *_, copy = Detector(name="low-entity", spacy=pipelines["whole"]).detect(texts).spans
    assert alone == copy != ()
    Detector(name="high-contextual", spacy=pipelines["whole"]).detect([*texts, "More."])
    assert read == [*texts[:2], "More."]


@pytest.mark.parametrize(
    ("pipeline", "level", "lacking"),
    [
        ("blank", "low-entity", "ner"),
        ("entities", "low-contextual", "parser"),
        ("other", "low-entity", "does not name the entities DATE, GPE, ORG, PERSON; it names PER"),
    ],
)
def test_a_pipeline_that_cannot_tell_is_an_error_and_masks_nothing_silently(
    pipelines, pipeline, level, lacking
):
    with pytest.raises(LeakboardError, match=lacking):
        Detector(name=level, spacy=pipelines[pipeline]).detect([SENTENCE])


def test_a_missing_pipeline_or_library_says_how_to_get_it(monkeypatch):
    pytest.importorskip("spacy", reason="needs the extra 'spacy'")
    with pytest.raises(
        LeakboardError, match=r"'no_such' is neither installed nor a folder .*leakboard\[spacy\]"
    ):
        Detector(name="low-entity", spacy="no_such").detect(["x"])
    with monkeypatch.context() as without:
        without.setattr(policy_levels, "PACKAGED", "no_such_either")
        without.setattr("spacy.util.is_package", lambda name: False)
        with pytest.raises(MissingExtra, match=r"pipeline 'en_core_web_sm' .*leakboard\[spacy\]"):
            Detector(name="low-entity").detect(["x"])
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra, match=r"leakboard\[spacy\]"):
        Detector(name="low-entity").detect(["x"])


def test_the_usual_pipeline_is_found_as_itself_or_as_the_package_of_the_extra(
    monkeypatch, pipelines
):
    monkeypatch.setattr(policy_levels, "PACKAGED", pipelines["whole"])
    monkeypatch.setattr("spacy.util.is_package", lambda name: False)
    (spans,) = Detector(name="low-entity").detect([SENTENCE]).spans
    assert ("Alice Smith", "person") in pieces(SENTENCE, spans)


def test_presidio_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtra, match=r"leakboard\[presidio\]"):
        Detector(name="presidio").detect(["x"])


def test_presidio_takes_a_pipeline_by_name_and_refuses_one_without_entities(pipelines):
    pytest.importorskip("presidio_analyzer", reason="needs the extra 'presidio'")
    text = f"{SENTENCE} ann@example.com"
    (spans,) = Detector(name="presidio", spacy=pipelines["named"]).detect([text]).spans
    assert ("Alice Smith", "person") in pieces(text, spans)
    assert ("ann@example.com", "email_address") in pieces(text, spans)
    with pytest.raises(LeakboardError, match=r"lacks a component .*: ner"):
        Detector(name="presidio", spacy=pipelines["blank"]).detect([text])


def test_consecutive_masks_become_one_only_across_white_space():
    text = "Ann  Lee, Bo and Cy"
    spans = [Span(0, 3, "a"), Span(5, 8, "a"), Span(10, 12, "b"), Span(17, 19, "c")]
    assert mask_text(text, spans) == "<MASK>, <MASK> and <MASK>"
    assert mask_text("AnnLee x", [Span(0, 3, "a"), Span(3, 6, "a")]) == "<MASK> x"
    assert mask_text(text, []) == text


def test_overlapping_spans_become_one():
    spans = [Span(4, 9, "b"), Span(0, 5, "a"), Span(6, 7, "c"), Span(9, 10, "d")]
    assert merge_overlaps(spans) == (Span(0, 9, "a"), Span(9, 10, "d"))


def test_exact_returns_the_marked_secrets_and_complains_without_them():
    known = [(Span(0, 2, "name"),), ()]
    assert Detector(name="exact").detect(["Al is", "x"], known).spans == known
    with pytest.raises(LeakboardError, match="'exact' needs marked secrets"):
        Detector(name="exact").detect(["Al is"])


@pytest.mark.parametrize("span", [(3, 9), (-1, 2), (2, 2)])
def test_a_span_outside_its_text_names_the_row(span):
    with pytest.raises(LeakboardError, match=r"data row 2: the span .* 'name' is not in its text"):
        Detector(name="exact").detect(["Al is", "four"], [(), (Span(*span, "name"),)])


def test_misses_are_drawn_by_the_generator_and_kept_apart():
    texts = ["a1234 " * 50] * 100
    found = Detector(name="patterns").detect(texts)
    assert sum(map(len, found.spans)) == 5000
    assert not any(found.dropped)
    thin = Detector(name="patterns", misses=0.2)
    once, again, other = (thin.detect(texts, rng=np.random.default_rng(s)) for s in (0, 0, 1))
    assert once == again
    assert once != other
    # Five standard deviations of a binomial of 5000 at 0.2 are 0.028.
    assert abs(sum(map(len, once.dropped)) / 5000 - 0.2) < 0.028
    for whole, kept, gone in zip(found.spans, once.spans, once.dropped, strict=True):
        assert sorted([*kept, *gone], key=lambda s: s.start) == list(whole)
    assert not any(
        Detector(name="patterns", misses=1).detect(texts, rng=np.random.default_rng(0)).spans
    )
    with pytest.raises(ValueError, match="generator"):
        thin.detect(texts)


def test_an_unknown_detector_gets_the_nearest_name():
    with pytest.raises(ValidationError, match="Did you mean 'high-entity'"):
        Detector(name="high-entitty")
    with pytest.raises(ValidationError):
        Detector(misses=1.5)
