"""The four levels of the policy functions of Just Fine-tune Twice, on the annotations of a spaCy pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.contracts import LeakboardError, MissingExtra
from bench.tasks import Span


@dataclass(frozen=True)
class Level:
    """What is a secret; a token that meets any one condition is."""

    description: str
    entities: frozenset[str] = frozenset()
    """Labels of named entities; empty: all that the pipeline knows, in OntoNotes 18."""
    dependencies: tuple[str, ...] = ()
    """Parts of the names of dependencies."""
    speech: tuple[str, ...] = ()
    """Parts of speech."""

    @property
    def needs(self) -> dict[str, str]:
        """spaCy's annotations that it reads → the component that makes them."""
        context = {"DEP": "parser", "POS": "tagger or morphologizer"} if self.speech else {}
        return {"ENT_IOB": "ner", **context}


NAMED = frozenset({"PERSON", "ORG", "DATE", "GPE"})
# The paper calls the last one "semantic role labelling"; its code runs no such model either.
LEVELS = {
    "low-entity": Level("persons, organisations, dates and places", NAMED),
    "high-entity": Level("all named entities"),
    "low-contextual": Level(
        "all named entities, subjects, objects, proper nouns and pronouns",
        dependencies=("subj", "obj"),
        speech=("PROPN", "PRON"),
    ),
    "high-contextual": Level(
        "all named entities, subjects, objects, proper nouns, pronouns, roots and verbs",
        dependencies=("subj", "obj", "ROOT"),
        speech=("PROPN", "PRON", "VERB"),
    ),
}


def find(texts: Sequence[str], level: Level, pipeline: str) -> Iterator[list[Span]]:
    """Of each text its entities and tokens of the level; a token of an entity is there twice.

    Raises:
        LeakboardError: spaCy or the pipeline is missing, or the pipeline lacks what the level reads.
    """
    nlp = _load(pipeline)
    named = nlp.pipe_labels.get("ner")
    if named is not None and (lacking := level.entities - set(named)):
        raise LeakboardError(
            f"spaCy pipeline '{pipeline}' names no entities {', '.join(sorted(lacking))}; it has "
            f"{', '.join(named)}. Take one with the labels of OntoNotes, such as en_core_web_sm"
        )
    for doc in nlp.pipe(texts):
        for annotation, component in level.needs.items():
            if not doc.has_annotation(annotation):
                raise LeakboardError(
                    f"spaCy pipeline '{pipeline}' lacks a component that this detector needs: "
                    f"{component}. It has {', '.join(nlp.pipe_names) or 'none'}"
                )
        yield [*_entities(doc, level), *_tokens(doc, level)]


def _entities(doc: Any, level: Level) -> Iterator[Span]:
    for entity in doc.ents:
        if not level.entities or entity.label_ in level.entities:
            yield Span(entity.start_char, entity.end_char, entity.label_.lower())


def _tokens(doc: Any, level: Level) -> Iterator[Span]:
    for token in doc:
        if token.is_space:
            continue
        depends = any(part in token.dep_ for part in level.dependencies)
        if depends or token.pos_ in level.speech:
            kind = token.dep_ if depends else token.pos_
            yield Span(token.idx, token.idx + len(token), kind.lower())


def _load(pipeline: str) -> Any:
    # Imported here: it takes seconds, and only these detectors need it.
    try:
        import spacy
    except ImportError as error:
        raise MissingExtra("spaCy", "spacy") from error
    try:
        return spacy.load(pipeline)
    except OSError as error:
        raise LeakboardError(
            f"spaCy pipeline '{pipeline}' is neither installed nor a folder with one. "
            "The usual one comes by: python -m spacy download en_core_web_sm"
        ) from error
