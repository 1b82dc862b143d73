"""Comparison of all secret detectors on the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.defending import DETECTORS, EXACT, LEVELS, Detector, language_note
from leakboard.bench.scoring.detection import (
    Score,
    chosen_split,
    format_estimate,
    load_texts,
    score,
)
from leakboard.bench.tasks import Span, Split

COLUMNS = ("detector", "miss-rate", "precision", "masked words", "in the paper")


def scores(
    texts: Sequence[str], secrets: Sequence[Sequence[Span]] | None, pipeline: str
) -> dict[str, Score | LeakboardError]:
    """Score of every detector by name, or the error if it is not available.

    The detector `exact`, which returns the marked secrets, is left out.
    """
    result: dict[str, Score | LeakboardError] = {}
    for name in DETECTORS:
        if name == EXACT:
            continue
        try:
            spans = Detector(name=name, spacy=pipeline).detect(texts).spans
            result[name] = score(texts, spans, secrets)
        except LeakboardError as error:  # its library or pipeline is not installed
            result[name] = error
    return result


def compare_detectors(
    names: Sequence[str],
    pipeline: str,
    split: str | None = None,
    limit: int | None = None,
    data: Path | None = None,
) -> Iterator[RenderableType]:
    """Output of `leakboard detect` without --detector: a table for each set of texts."""
    for name in names:
        task = load_texts(name, data).limited(limit, 0)
        split_name, texts = chosen_split(task, split)
        results = scores(texts.texts, texts.secrets, pipeline)
        yield _table(
            f"{task.name}, {split_name}, {len(texts)} texts{_secret_count(texts)}", results
        )
        for reason in {
            str(one): None for one in results.values() if isinstance(one, LeakboardError)
        }:
            yield Text(reason)
        if note := language_note("patterns", pipeline, texts.texts):
            yield Text(f"{task.name}: {note}.")
    yield Text(
        "Shares, with 95 % intervals over texts. In the paper (Just Fine-tune Twice, Shi et al. 2022): the share "
        "of WikiText-2 and of ABCD (customer dialogues) that each level masks. "
        "All detectors but exact know English, or the language of their spaCy pipeline."
    )


def _secret_count(texts: Split) -> str:
    if texts.secrets is None:
        return ", no secrets marked"
    return f", {sum(map(len, texts.secrets))} secrets"


def _table(title: str, results: dict[str, Score | LeakboardError]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for column in COLUMNS:
        first = column == COLUMNS[0]
        table.add_column(column, justify="left" if first else "right", no_wrap=first)
    for name, result in results.items():
        level = LEVELS.get(name)
        printed = " / ".join(f"{share:.3f}" for share in level.printed) if level else ""
        cells = ["not installed", "", ""]
        if isinstance(result, Score):
            cells = [format_estimate(e) for e in (result.miss_rate, result.precision, result.words)]
        table.add_row(name, *cells, printed)
    return table
