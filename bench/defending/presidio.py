"""Secret detector based on Presidio: patterns with checksums and context words, and named entities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from leakboard.bench.contracts import MissingExtra
from leakboard.bench.defending import policy_levels
from leakboard.bench.tasks import Span

LANGUAGE = "en"


def find(texts: Sequence[str], pipeline: str) -> Iterator[list[Span]]:
    """Spans of each text by Presidio's recognisers at their default thresholds; spans may overlap.

    Raises:
        LeakboardError: Presidio, spaCy or the pipeline is missing, or the pipeline names no entities.
    """
    # Slow to import, and only this detector needs it.
    try:
        import presidio_analyzer  # noqa: F401
    except ImportError as error:
        raise MissingExtra("Presidio", "presidio") from error
    for results in _engine(policy_levels.entities_of(pipeline)).analyze_iterator(
        texts, language=LANGUAGE
    ):
        yield [Span(result.start, result.end, result.entity_type.lower()) for result in results]


@lru_cache(maxsize=2)
def _engine(nlp: Any) -> Any:
    """Presidio with its default settings and another spaCy pipeline."""
    import presidio_analyzer
    import tldextract.tldextract
    from presidio_analyzer import nlp_engine

    # E-mail addresses are checked with the packaged list of domains, since the list on the web changes.
    tldextract.tldextract.TLD_EXTRACTOR.suffix_list_urls = ()
    shipped = nlp_engine.NlpEngineProvider().nlp_configuration["ner_model_configuration"]
    engine = nlp_engine.SpacyNlpEngine(
        ner_model_configuration=nlp_engine.NerModelConfiguration.from_dict(shipped)
    )
    engine.nlp = {LANGUAGE: nlp}  # Presidio would download what is not installed
    analyser = presidio_analyzer.AnalyzerEngine(nlp_engine=engine, supported_languages=[LANGUAGE])
    return presidio_analyzer.BatchAnalyzerEngine(analyser)
